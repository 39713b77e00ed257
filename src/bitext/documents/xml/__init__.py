"""XLIFF, TMX and XML fragments."""
