"""Corpora that we generate."""
