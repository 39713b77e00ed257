"""The lowest layer: errors, files, the console, cancellation, the base of options, special tokens, tensor shapes."""
