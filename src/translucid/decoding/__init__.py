"""Greedy search, beam search, sampling and forced decoding for any sequence model."""

from bitext.public_names import public_names

__getattr__, __dir__ = public_names(__name__)
