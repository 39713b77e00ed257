"""Encoded corpora on disk, mapped into memory."""
