"""Recurrent encoder-decoders: without attention, with Bahdanau's or with Luong's.

Read `encoder.py`, then `luong.py` or `bahdanau.py` next to its paper. `model.py` combines encoder and decoder.
"""

from translucid.models.recurrent.model import RecurrentModel

__all__ = ["RecurrentModel"]
