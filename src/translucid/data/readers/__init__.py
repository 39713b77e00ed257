"""Corpus files: sentence pairs, texts, captions and labels."""
