"""Documents that people translate: the spans of text are found and changed, every other byte is kept."""
