"""Where the attention of each head goes: start and end token, punctuation, language tokens, the query's own position.

A head that has nothing to do puts its weight where it does no harm, on tokens without content: their values are small
(Kobayashi et al. 2020, arXiv 2004.10102, section 4). A map of such weights shows little about the translation.

For multilingual models, a table has the heads that read the language piece most.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

import torch
from rich.table import Table
from torch import Tensor

from translucid.data.tokenizing.pieces import SEPARATOR
from translucid.decoding.hypothesis import percent
from translucid.ground.console import table_of
from translucid.ground.errors import UserError
from translucid.ground.special import SPELLINGS
from translucid.inspection.words import content_pieces

if TYPE_CHECKING:
    from translucid.inspection.inspected import Inspected


class AttentionShares(NamedTuple):
    """The means over all queries of some sentences. Shares are from 0 to 1 and may overlap."""

    ends: float
    """The share of the end token and, in the self-attention of a decoder, of the start token."""
    punctuation: float
    """The share of pieces without a letter or a digit."""
    language: float
    """The share of language tokens, and of separators after previous sentences."""
    itself: float
    """In self-attention, the share of the query's own position."""
    entropy: float
    """In nats."""


def attention_shares(sentences: Iterable[Inspected]) -> dict[str, AttentionShares]:
    """Return the shares of each head and, under `encoder.self` and so on, those of uniform attention to the same keys.

    Args:
        sentences: inspections with attention; the rows of the target's opening are left out.
    """
    sums: dict[str, Tensor] = {}
    queries: dict[str, int] = {}
    for sentence in sentences:
        for attention, weights in sentence.maps.items():
            side, _, kind = attention.split(".")
            first = 0 if side == "encoder" else sentence.opening[1]
            seen = weights.sum(0) > 0
            uniform = seen / seen.sum(-1, keepdim=True).clamp(min=1)
            rows = torch.cat([weights.double(), uniform.double()[None]])[:, first:]  # [H + 1, T, S]
            names = [*(f"{attention}.head.{head}" for head in range(len(weights))), f"{side}.{kind}"]
            for name, total in zip(names, _summed(rows, _key_kinds(sentence, side, kind), first, kind), strict=True):
                sums[name] = sums.get(name, torch.zeros_like(total)) + total
                queries[name] = queries.get(name, 0) + rows.size(1)
    return {name: AttentionShares(*(total / queries[name]).tolist()) for name, total in sums.items()}


def _summed(rows: Tensor, keys: Tensor, first: int, kind: str) -> Tensor:
    """Return the sums over queries [H, 5], in the order of `AttentionShares`.

    Args:
        rows: weights [H, T, S].
        keys: 1 for each kind of keys [3, S].
        first: the position of the first query.
        kind: `self` or `cross`.
    """
    itself = rows.new_zeros(len(rows))
    if kind == "self":
        itself = rows.diagonal(first, 1, 2).sum(-1)
    entropy = -torch.special.xlogy(rows, rows).sum((1, 2))
    return torch.cat([torch.einsum("hts,ks->hk", rows, keys), itself[:, None], entropy[:, None]], 1)


def _key_kinds(sentence: Inspected, side: str, kind: str) -> Tensor:
    """Return whether each key is start or end token, punctuation, or a language token [3, S]."""
    pieces, (opening, _), context = sentence.source, sentence.opening, sentence.context
    if (side, kind) == ("decoder", "self"):
        pieces, opening, context = [SPELLINGS.start, *sentence.target[:-1]], sentence.opening[1], 1
    ends, language = {SPELLINGS.start, SPELLINGS.end}, {SEPARATOR, *pieces[context : context + opening]}
    is_end = [piece in ends for piece in pieces]
    is_language = [piece in language for piece in pieces]
    has_content = content_pieces(pieces, opening, context)
    is_punctuation = [not any(kinds) for kinds in zip(is_end, is_language, has_content, strict=True)]
    return torch.tensor([is_end, is_punctuation, is_language], dtype=torch.float64)


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
