"""Readers of corpus files: sentence pairs, texts, captions and labels."""
