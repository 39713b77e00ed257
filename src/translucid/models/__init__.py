"""Sequence models that speak one protocol (`protocol.py`)."""
