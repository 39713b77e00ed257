"""What a beam search asks a constraint, and what it asks where there is none."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from translucid.decoding.rows import Rows


class Shares(NamedTuple):
    """How the places of a beam are shared out; see `by_turns`."""

    bank: Tensor
    """[N, k] of each candidate."""
    banks: int
    """How many there can be."""


class Choices(NamedTuple):
    """M tokens that may come next of each of N partial outputs."""

    token: Tensor
    """[N, M]."""
    gain: Tensor
    """[N, M] log-probabilities."""
    price: Tensor
    """[N, M] what they are searched by, which may be something else."""
    shares: Shares | None = None
    """How the places of the beam are shared out among them, if they are."""


class Constraint(Protocol):
    """Says during one search what may come next, and what an output lacks."""

    def choices(self, rows: Rows, log_probs: Tensor, gain: Tensor, token: Tensor) -> Choices:
        """Return what may come next of each row.

        Args:
            rows: N of them.
            log_probs: [N, V] of the next token.
            gain: [N, k] those of the likeliest.
            token: [N, k] the likeliest.
        """

    def lacks(self, sentence: Tensor, parent: Tensor, place: Tensor) -> Tensor:
        """Return whether outputs [B, K] lack something if they end now.

        Args:
            sentence: [B, K] whose they are.
            parent: [B, K] the row that each goes on from.
            place: [B, K] its last token, as a place among the choices of that row.
        """

    def follow(self, rows: Rows, parent: Tensor, place: Tensor) -> None:
        """Note which rows [N] go on: the rows that they go on from [N], and the places of their last tokens [N]."""


class Unconstrained:
    """The likeliest tokens come next, and no output lacks anything."""

    def __init__(self, rows: Rows) -> None:
        """Nothing is to be known of the first rows."""

    def choices(self, rows: Rows, log_probs: Tensor, gain: Tensor, token: Tensor) -> Choices:
        """See `Constraint`."""
        return Choices(token, gain, gain)

    def lacks(self, sentence: Tensor, parent: Tensor, place: Tensor) -> Tensor:
        """See `Constraint`."""
        return torch.zeros_like(parent, dtype=torch.bool)

    def follow(self, rows: Rows, parent: Tensor, place: Tensor) -> None:
        """See `Constraint`."""


def by_turns(bank: Tensor, valid: Tensor, banks: int) -> Tensor:
    """Return the order in which candidates get places: the best of each bank, the fullest first, then the second best.

    Args:
        bank: [B, X] of candidates that are sorted, the best first.
        valid: [B, X] boolean; the others come last.
        banks: more than any number of a bank.
    """
    mine = torch.nn.functional.one_hot(bank, banks) * valid[:, :, None]
    turn = mine.cumsum(1).gather(2, bank[:, :, None])[:, :, 0]  # counted from 1 in each bank
    key = torch.where(valid, turn * banks - bank, (bank.size(1) + 1) * banks)
    return key.argsort(dim=1, stable=True)
