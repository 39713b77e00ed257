"""Length-controlled beam search: outputs with a largest number of characters, which end where the model would end them.

A beam search that only forbids what exceeds a limit has a beam full of long beginnings when it gets there: what is left
is to break off. So the search knows the characters that each partial output has left, and

- a token that has more characters is not a candidate, and neither is one with less than the probability `LEAST`, so
  that no output breaks off in the middle of a clause;
- each character costs a few nats more, so that short beginnings keep their slots (a Lagrangian relaxation of the limit:
  the output with the highest log p(y | x) - λ |y| has the highest log p(y | x) of all that are not longer).

Several searches of one source, with different λ, find outputs of different lengths. If no output fits, a search finds
none. The model itself knows no lengths: the tokens of Lakew et al. (2019, arXiv 1910.10408) need a training of their
own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from translucid.decoding.beam import likeliest
from translucid.decoding.constrained_decoding import Choices, Constraint
from translucid.decoding.decoding_options import LengthLimit
from translucid.decoding.rows import Rows
from translucid.kernels.upload import upload

LEAST = 0.01
"""The least probability of a token, the end token included, among all tokens."""
UNLIMITED = 1 << 30
"""More characters than any output has."""


class PieceLengths(NamedTuple):
    """The lengths of the pieces of a vocabulary, in characters."""

    characters: Tensor
    """[V] the characters of each piece within an output, the space before it included."""
    spaces: Tensor
    """[V] the spaces at the beginning of each piece, which an output does not begin with."""


class LengthControl(NamedTuple):
    """The limits of the outputs of B sentences."""

    limits: Sequence[LengthLimit]
    """The limit of each sentence."""
    lengths: PieceLengths

    def of(self, sentences: Sequence[int]) -> LengthControl:
        """Return the limits of some of the sentences."""
        return LengthControl([self.limits[i] for i in sentences], self.lengths)


class LengthConstraint:
    """The `Constraint` of one beam search that counts characters, around another one, such as that of terms."""

    def __init__(
        self, control: LengthControl, constrain: Callable[[Rows], Constraint], prefix: int, rows: Rows
    ) -> None:
        """Begin with the first rows of a search.

        Args:
            control: the limits of the sentences.
            constrain: returns the other constraint for the first rows.
            prefix: the number of tokens at the beginning of every output that are not text.
            rows: the first rows.
        """
        device = rows.tokens.device
        self.other, self.prefix = constrain(rows), prefix
        self.characters, self.spaces = (upload(values, device) for values in control.lengths)
        limits = [UNLIMITED if limit.characters is None else limit.characters for limit in control.limits]
        self.left = upload(torch.tensor(limits), device)[rows.sentence]  # [N]
        self.cost = upload(torch.tensor([limit.cost for limit in control.limits]), device)  # [B]
        self.left_after = self.left[:, None]  # [N, M] with each of the choices

    def choices(self, rows: Rows, log_probs: Tensor, gain: Tensor, token: Tensor) -> Choices:
        """Return the tokens that fit, those of the highest log-probability minus the cost of their characters."""
        if rows.length < self.prefix:
            choices = self.other.choices(rows, log_probs, gain, token)
            self.left_after = self.left[:, None].expand(choices.token.shape)
            return choices
        characters = self.characters - self.spaces if rows.length == self.prefix else self.characters  # [V]
        allowed = (characters <= self.left[:, None]) & (log_probs >= math.log(LEAST))  # [N, V]
        log_probs = log_probs.masked_fill(~allowed, -torch.inf)
        cost = self.cost[rows.sentence][:, None]  # [N, 1]
        _, token = likeliest(log_probs - cost * characters, token.size(1))
        choices = self.other.choices(rows, log_probs, log_probs.gather(1, token), token)
        self.left_after = self.left[:, None] - characters[choices.token]
        return choices._replace(adjusted_score=choices.adjusted_score - cost * characters[choices.token])

    def unsatisfied(self, sentence: Tensor, parent: Tensor, choice: Tensor) -> Tensor:
        """Return whether outputs [B, K] would end without satisfying the other constraint."""
        return self.other.unsatisfied(sentence, parent, choice)

    def follow(self, rows: Rows, parent: Tensor, choice: Tensor) -> None:
        """Record the characters that the rows that continue have left."""
        self.left = self.left_after[parent, choice]
        self.other.follow(rows, parent, choice)
