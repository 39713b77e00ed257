"""Pieces of words as SentencePiece writes them."""

from __future__ import annotations

from collections.abc import Sequence

import sentencepiece

from translucid.ground.special import SPECIAL

SPACE = "▁"
"""What SentencePiece writes for a space: a piece that begins with it begins a word."""
MOST_OPENING = 3
"""Tokens before a text, at most, such as those of languages and the start token."""


def as_read(text: str) -> str:
    """Return text that SentencePiece takes: no sign of its own, no lone surrogates (a JSON file may hold some)."""
    return text.encode("utf-8", "replace").decode("utf-8").replace(SPACE, "_")


def named_pieces(
    processor: sentencepiece.SentencePieceProcessor, ids: Sequence[int], text: str | None = None
) -> list[str]:
    """Return pieces as they are written in the vocabulary.

    Args:
        processor: with the vocabulary.
        ids: of any pieces.
        text: the text that they encode, if unknown pieces are to be shown as they stand there.
    """
    numbers = [int(i) for i in ids]
    pieces = [processor.id_to_piece(i) for i in numbers]
    if text is None or SPECIAL.unknown not in numbers:
        return pieces
    whole = as_read(text)
    encoded, written = processor.encode(whole), processor.encode(whole, out_type=str)
    for first in range(MOST_OPENING + 1):
        part = numbers[first : first + len(encoded)]  # fewer if the text was cut off; the end token may be the last
        if part and part[:-1] == encoded[: len(part) - 1]:
            shown = zip(part, written, pieces[first:], strict=False)
            pieces[first : first + len(part)] = [new if i == SPECIAL.unknown else old for i, new, old in shown]
            return pieces
    return pieces  # the ids are not those of this text
