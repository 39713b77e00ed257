"""Import and export of other toolkits' models."""
