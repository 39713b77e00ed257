"""What every room stands on: errors, files, the console, stopping, the base of options, the letters of shapes."""
