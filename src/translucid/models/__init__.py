"""Sequence models with one interface (`protocol.py`)."""
