"""Sequence models with one interface (`protocol.py`)."""

from bitext.public_names import public_names

__getattr__, __dir__ = public_names(__name__)
