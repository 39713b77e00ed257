"""Pieces of words as SentencePiece writes them."""

from __future__ import annotations

from collections.abc import Sequence

import sentencepiece

from translucid.ground.special import SPECIAL

SPACE = "▁"
"""SentencePiece's sign for a space: a piece that begins with it begins a word."""
MAX_OPENING = 3
"""The most tokens before a text, such as language tokens and the start token."""


def sanitised(text: str) -> str:
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
    sanitised_text = sanitised(text)
    encoded, surface_pieces = processor.encode(sanitised_text), processor.encode(sanitised_text, out_type=str)
    for start in range(MAX_OPENING + 1):
        # There are fewer ids if the text was cut off; the last one may then be the end token.
        text_ids = numbers[start : start + len(encoded)]
        if text_ids and text_ids[:-1] == encoded[: len(text_ids) - 1]:
            for position, (number, piece) in enumerate(zip(text_ids, surface_pieces, strict=False), start):
                if number == SPECIAL.unknown:
                    pieces[position] = piece
            break
    return pieces
