"""Pieces of words as SentencePiece writes them, and reserved pieces, such as placeholders and marks of terms.

`DataOptions.reserved` says which reserved pieces a run needs. A vocabulary is learned with them (`Tokenizer.learn`), or
they are added after its other pieces (`extending.with_reserved`). Each is a piece by itself wherever it occurs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import sentencepiece

from bitext.protected_spans import PLACEHOLDERS
from translucid.ground.special import SPECIAL


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


SPACE = "▁"
"""SentencePiece's sign for a space: a piece that begins with it begins a word."""
MAX_OPENING = 3
"""The most tokens before a text, such as language tokens and the start token."""


def sanitized(text: str) -> str:
    """Return text that SentencePiece accepts: without its sign for a space and without lone surrogates.

    A JSON file may contain lone surrogates.
    """
    return text.encode("utf-8", "replace").decode("utf-8").replace(SPACE, "_")


def named_pieces(
    processor: sentencepiece.SentencePieceProcessor, ids: Sequence[int], text: str | None = None
) -> list[str]:
    """Return pieces as they are written in the vocabulary.

    Args:
        processor: the SentencePiece model with the vocabulary.
        ids: ids of any pieces.
        text: the text that they encode, if unknown pieces should be shown as they are in the text.
    """
    numbers = [int(i) for i in ids]
    pieces = [processor.id_to_piece(i) for i in numbers]
    if text is None or SPECIAL.unknown not in numbers:
        return pieces
    sanitized_text = sanitized(text)
    encoded, surface_pieces = processor.encode(sanitized_text), processor.encode(sanitized_text, out_type=str)
    for start in range(MAX_OPENING + 1):
        # There are fewer ids if the text was cut off; the last one may then be the end token.
        text_ids = numbers[start : start + len(encoded)]
        if text_ids and text_ids[:-1] == encoded[: len(text_ids) - 1]:
            for position, (number, piece) in enumerate(zip(text_ids, surface_pieces, strict=False), start):
                if number == SPECIAL.unknown:
                    pieces[position] = piece
            break
    return pieces
