"""Reserved pieces of a vocabulary, which stand for placeholders, marks of terms and near matches, and a separator.

`DataOptions.reserved` says which ones a run needs. A vocabulary is learned with them (`Tokenizer.learn`), or they are
added after its other pieces (`extending.with_reserved`). Each is a piece by itself wherever it occurs.
"""

from __future__ import annotations

from typing import NamedTuple

from bitext.protected_spans import PLACEHOLDERS


class TermMarks(NamedTuple):
    """Private-use characters that mark terms and their translations in a source (`terminology/marking.py`)."""

    source: str
    """The mark before the term."""
    target: str
    """The mark between the term and its translation."""
    end: str
    """The mark after the translation."""


TERM = TermMarks("\ue0f0", "\ue0f1", "\ue0f2")

MATCH = "\ue0f3"
"""The private-use character between a source and the translation of a near match (`memory/augmenting.py`)."""

SEPARATOR = "\ue0f4"
"""The private-use character after each sentence that precedes the one to translate (`data/document_context.py`)."""

RESERVED_PIECES = frozenset((*PLACEHOLDERS, *TERM, MATCH, SEPARATOR))
"""All reserved pieces."""
