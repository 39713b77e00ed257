"""Which attention heads of a multilingual model read the language piece."""

from __future__ import annotations

from typing import NamedTuple

from rich.table import Table

from translucid.decoding.hypothesis import percent
from translucid.ground.console import table_of
from translucid.ground.errors import UserError
from translucid.inspection.inspected import Inspected

MAX_HEADS = 10
"""The maximum number of heads in a table."""


class Reader(NamedTuple):
    """An attention head and its weight on the language piece."""

    head: str
    """Its name, such as `encoder.0.self.head.1`."""
    piece: str
    weight: float
    """The mean attention weight, from 0 to 1."""


def language_readers(inspected: Inspected) -> list[Reader]:
    """Return all heads that can read the language piece of a sentence, those with the largest weight first.

    The weight is the mean over the words that attend: those of the sentence in the encoder, those of the translation in
    the decoder, end tokens included. Cross-attention and the encoder read the piece before the source. The decoder's
    self-attention reads the piece before the target, if the model has one.

    Raises:
        UserError: the model has no language piece.
    """
    source_opening, target_opening = inspected.opening
    if not source_opening and not target_opening:
        fix = "Leave out `language_piece`, which is for multilingual models."
        raise UserError("the model has no language piece", file=inspected.run or None, fix=fix)
    readers = []
    for name, weights in inspected.maps.items():
        side, _, kind = name.split(".")
        pieces, first, count = inspected.source, inspected.context, source_opening
        queries = weights[:, target_opening:]  # [H, T, S]
        if side == "encoder":
            queries = weights[:, first + count :]
        elif kind == "self":
            # The decoder reads a start token before the target.
            pieces, first, count = ["", *inspected.target], 1, target_opening
        for position in range(first, first + count):
            for head, weight in enumerate(queries[..., position].float().mean(1).tolist()):
                readers.append(Reader(f"{name}.head.{head}", pieces[position], weight))
    return sorted(readers, key=lambda reader: -reader.weight)


def readers_table(inspected: Inspected) -> Table:
    """Return a table of the heads with the largest weights on the language piece.

    Raises:
        UserError: the model has no language piece.
    """
    table = table_of("head", "language piece", figures=("mean weight",))
    for head, piece, weight in language_readers(inspected)[:MAX_HEADS]:
        table.add_row(head, piece, percent(weight))
    return table
