"""Pieces that a vocabulary keeps for what is no word: placeholders, terms that are pointed out, near matches.

Who needs some asks for them with `DataOptions.reserved`. A vocabulary is learned with them (`Tokenizer.learn`), or gets
them behind its other pieces (`extending.reserving`). Each is one piece wherever it stands, and part of no other.
"""

from __future__ import annotations

from typing import NamedTuple

PLACEHOLDERS = tuple(f"⟦{number}⟧" for number in range(1, 17))
"""Stand for what no translation may change; see `data/placeholders.py`."""


class TermMarks(NamedTuple):
    """Characters for private use that point terms out in a source; see `terminology/marking.py`."""

    source: str
    """Before the term."""
    target: str
    """Between it and its translation."""
    end: str


TERM = TermMarks("\ue0f0", "\ue0f1", "\ue0f2")

MATCH = "\ue0f3"
"""Between a source and the translation of a near match; see `memory/augmenting.py`. A character for private use."""

EVERY = frozenset((*PLACEHOLDERS, *TERM, MATCH))
