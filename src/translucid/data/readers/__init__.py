"""Readers of corpus files: sentence pairs and texts."""
