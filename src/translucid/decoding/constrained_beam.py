"""The interface between beam search and its constraints, and the search without any."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from translucid.decoding.rows import Rows


class Shares(NamedTuple):
    """How the places of a beam are distributed among banks of candidates; see `by_turns`."""

    bank: Tensor
    """[N, k] the bank of each candidate."""
    banks: int
    """The number of banks."""


class Choices(NamedTuple):
    """M candidates for the next token of each of N partial outputs."""

    token: Tensor
    """[N, M] ids."""
    gain: Tensor
    """[N, M] log-probabilities."""
    price: Tensor
    """[N, M] the values that the search adds up, which may differ from the log-probabilities."""
    shares: Shares | None = None
    """How the places of the beam are distributed among them; None if the most probable ones get them."""


class Constraint(Protocol):
    """Adds candidates to one beam search, and tells which outputs do not satisfy the constraint."""

    def choices(self, rows: Rows, log_probs: Tensor, gain: Tensor, token: Tensor) -> Choices:
        """Return the candidates for the next token of each row.

        Args:
            rows: the N rows.
            log_probs: [N, V] the log-probabilities of the next token.
            gain: [N, k] those of the most probable tokens.
            token: [N, k] the most probable tokens.
        """

    def lacks(self, sentence: Tensor, parent: Tensor, place: Tensor) -> Tensor:
        """Return whether outputs [B, K] would end without satisfying the constraint.

        Args:
            sentence: [B, K] the sentence of each.
            parent: [B, K] the row that each extends.
            place: [B, K] its last token, as a place among the choices of that row.
        """

    def follow(self, rows: Rows, parent: Tensor, place: Tensor) -> None:
        """Note the rows that go on: the rows [N] that they extend, and the places [N] of their last tokens."""


class Unconstrained:
    """No constraint: the most probable tokens are the candidates, and every output may end."""

    def __init__(self, rows: Rows) -> None:
        """The first rows need no preparation."""

    def choices(self, rows: Rows, log_probs: Tensor, gain: Tensor, token: Tensor) -> Choices:
        """Return the most probable tokens."""
        return Choices(token, gain, gain)

    def lacks(self, sentence: Tensor, parent: Tensor, place: Tensor) -> Tensor:
        """Return that no output lacks anything."""
        return torch.zeros_like(parent, dtype=torch.bool)

    def follow(self, rows: Rows, parent: Tensor, place: Tensor) -> None:
        """There is nothing to note."""


def by_turns(bank: Tensor, valid: Tensor, banks: int) -> Tensor:
    """Return the order in which candidates get places: the best of each bank, the fullest first, then the second best.

    Args:
        bank: [B, X] the banks of candidates that are sorted, the best first.
        valid: [B, X] boolean; candidates where it is False come last.
        banks: the number of banks.
    """
    mine = torch.nn.functional.one_hot(bank, banks) * valid[:, :, None]  # [B, X, banks]
    turn = mine.cumsum(1).gather(2, bank[:, :, None])[:, :, 0]  # counted from 1 in each bank
    key = torch.where(valid, turn * banks - bank, (bank.size(1) + 1) * banks)
    return key.argsort(dim=1, stable=True)
