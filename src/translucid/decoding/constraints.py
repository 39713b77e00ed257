"""Constrained beam search: phrases that the output must contain (Post and Vilar 2018, arXiv 1804.06609).

A partial output that has more of what is wanted is less likely than one that has not begun, and would lose its place
to it. So the places of a beam are shared out among banks, by how much of it a partial output has (section 3.2): the
best of each bank, then the second of each, and so on, the fullest bank first (as in Hu et al. 2019, N19-1090, section
3.1, without a loop over sentences). A bank is for a number of phrases that are there, and one for so many and another
one begun; single pieces of phrases have none, so that a narrow beam is not used up by one long phrase. No output ends
before it has all.

To a model that would not say a phrase, it is as unlikely in one place as in another, and most likely behind all else.
So a phrase may come `instead` of tokens that the model would say: then the search exchanges what the two cost.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from translucid.decoding.constrained_beam import Choices, Shares
from translucid.decoding.rows import Rows
from translucid.kernels.transfer import upload


class Form(NamedTuple):
    """One way to write a phrase."""

    pieces: tuple[int, ...]
    """Target ids, at least one."""
    inside: bool = False
    """Whether it is the way without a space in front: only where an output begins, and behind pieces that open."""
    instead: tuple[int, ...] = ()
    """Tokens with which begins what the model would say."""


class Wanted(NamedTuple):
    """A phrase that an output has to have."""

    forms: tuple[Form, ...]
    """Any of them will do; different occurrences may have different ones."""
    times: int = 1
    """How often, at least."""


class Edges(NamedTuple):
    """Where words begin and end among the pieces of a vocabulary."""

    goes_on: Tensor
    """[V] boolean, True where a piece goes on with the word before it: a phrase in front of it is not whole words."""
    opens: Tensor
    """[V] boolean, True where a word may begin right behind a piece, as behind a bracket."""


class Constraints(NamedTuple):
    """What the outputs of B sentences have to have."""

    wanted: Sequence[Sequence[Wanted]]
    """For each sentence."""
    edges: Edges

    def of(self, sentences: Sequence[int]) -> Constraints:
        """Return those of some of the sentences."""
        return Constraints([self.wanted[i] for i in sentences], self.edges)


class Met(NamedTuple):
    """How far N partial outputs have come."""

    times: Tensor
    """[N, C] how often each phrase is there, at most as often as it is wanted."""
    fresh: Tensor
    """[N, C] boolean, whether the last token made it one more: if the word goes on, it was none."""
    progress: Tensor
    """[N, P] how many pieces of each form the output ends in, less than all."""


class Candidates(NamedTuple):
    """M tokens for each of N partial outputs, and what comes of them."""

    gain: Tensor
    """[N, M] log-probabilities."""
    price: Tensor
    """[N, M] what they are searched by: the same, but where a phrase comes instead of something else."""
    token: Tensor
    """[N, M]."""
    times: Tensor
    """[N, M, C] see `Met`."""
    fresh: Tensor
    """[N, M, C]."""
    bank: Tensor
    """[N, M] twice the number of phrases that are there, and one if another is begun."""


@dataclass(frozen=True)
class Steering:
    """Constraints as tensors, P forms of C phrases for each of B sentences at most."""

    forms: Tensor
    """[B, P, L] ids; -1 behind the end."""
    lengths: Tensor
    """[B, P] of the forms; 0 where there is none."""
    inside: Tensor
    """[B, P] see `Form`."""
    of: Tensor
    """[B, P, C] 1 where a form is one of a phrase, float32."""
    wanted: Tensor
    """[B, C] how often each phrase is wanted."""
    instead: Tensor
    """[B, P, R] see `Form`; -1 behind the end."""
    edges: Edges
    eos: int
    banks: int
    """How many banks there can be."""

    @classmethod
    def by(cls, constraints: Constraints, bos: int, eos: int, device: torch.device) -> Steering:
        """Put constraints into tensors."""
        phrases = [[(i, form) for i, one in enumerate(each) for form in one.forms] for each in constraints.wanted]
        b, c = len(phrases), max(1, *map(len, constraints.wanted))
        p = max(1, *map(len, phrases))
        longest = max((len(form.pieces) for each in phrases for _, form in each), default=1)
        forms = torch.full((b, p, longest), -1)
        lengths, inside = torch.zeros(b, p, dtype=torch.long), torch.zeros(b, p, dtype=torch.bool)
        of, wanted = torch.zeros(b, p, c), torch.zeros(b, c, dtype=torch.long)
        most = max((len(form.instead) for each in phrases for _, form in each), default=0)
        instead = torch.full((b, p, max(1, most)), -1)
        for sentence, each in enumerate(phrases):
            wanted[sentence, : len(constraints.wanted[sentence])] = torch.tensor(
                [one.times for one in constraints.wanted[sentence]], dtype=torch.long
            )
            for place, (phrase, form) in enumerate(each):
                forms[sentence, place, : len(form.pieces)] = torch.tensor(form.pieces)
                lengths[sentence, place], inside[sentence, place] = len(form.pieces), form.inside
                of[sentence, place, phrase] = 1
                instead[sentence, place, : len(form.instead)] = torch.tensor(form.instead, dtype=torch.long)
        goes_on, opens = constraints.edges.goes_on.cpu(), constraints.edges.opens.cpu().clone()
        opens[bos] = True
        return cls(
            upload(forms, device),
            upload(lengths, device),
            upload(inside, device),
            upload(of, device),
            upload(wanted, device),
            upload(instead, device),
            Edges(upload(goes_on, device), upload(opens, device)),
            eos,
            2 * int(wanted.sum(1).max()) + 1,
        )

    def begin(self, rows: Rows) -> Met:
        """Return how far empty outputs have come."""
        n, c, p = len(rows), self.wanted.size(1), self.lengths.size(1)
        times = self.wanted.new_zeros(n, c)
        return Met(times, times.bool(), times.new_zeros(n, p))

    def candidates(self, rows: Rows, met: Met, log_probs: Tensor, gain: Tensor, choice: Tensor) -> Candidates:
        """Add to the likeliest tokens of each row those that begin a wanted phrase or go on with it.

        Args:
            rows: N of them.
            met: how far they have come.
            log_probs: [N, V] of the next token.
            gain: [N, k] those of the likeliest.
            choice: [N, k] the likeliest.
        """
        forms, lengths, of = self.forms[rows.sentence], self.lengths[rows.sentence], self.of[rows.sentence]
        wanted = self.wanted[rows.sentence]
        missing = (met.times < wanted)[:, None].logical_and(of > 0).any(-1)  # [N, P]
        may_begin = ~self.inside[rows.sentence] | self.edges.opens[rows.last][:, None]
        following = forms.gather(2, met.progress[:, :, None])[:, :, 0]  # [N, P]
        open_ = (lengths > 0) & ((met.progress > 0) | may_begin)

        # An output that lacks something ends only where nothing else is left to it, as at its limit.
        lacking = (met.times < wanted).any(1)
        others = torch.where(choice == self.eos, -torch.inf, gain).amax(1) > -torch.inf
        gain = gain.masked_fill((choice == self.eos) & (lacking & others)[:, None], -torch.inf)

        new = missing & open_ & (following[:, :, None] != choice[:, None]).all(-1)
        same = (following[:, :, None] == following[:, None]) & new[:, None]
        new &= ~same.tril(-1).any(-1)
        further = log_probs.gather(1, following.clamp(min=0)).masked_fill(~new, -torch.inf)
        gain, token = torch.cat([gain, further], 1), torch.cat([choice, following.clamp(min=0)], 1)

        hit = (token[:, :, None] == following[:, None]) & open_[:, None]  # [N, M, P]
        whole = hit & (met.progress + 1 == lengths)[:, None]
        broken = met.fresh[:, None] & self.edges.goes_on[token][:, :, None]  # [N, M, C]
        exchanged = ((self.instead[rows.sentence][:, :, :1] >= 0) & (of > 0)).any(1)  # [N, C]
        gain = gain.masked_fill((broken & exchanged[:, None]).any(-1), -torch.inf)  # or it had its place for nothing
        price = self._price(rows, met, log_probs, gain, token, following, missing & open_)
        before = met.times[:, None] - broken.long()
        fresh = (whole.float() @ of > 0) & (before < wanted[:, None])
        times = before + fresh
        begun = (token[:, :, None] == forms[:, None, :, 0]) & may_begin[:, None]
        partly = ((hit | begun) & ~whole & (lengths > 0)[:, None]).float() @ of > 0
        bank = 2 * times.sum(-1) + (partly & (times < wanted[:, None])).any(-1)
        return Candidates(gain, price, token, times, fresh, bank)

    def _price(
        self, rows: Rows, met: Met, log_probs: Tensor, gain: Tensor, token: Tensor, following: Tensor, missing: Tensor
    ) -> Tensor:
        """Return what candidates cost, [N, M]: their log-probabilities, but where a form has something `instead`.

        Its first token costs what that would cost, and that what the first token would cost: they are exchanged. The
        other tokens cost nothing. Of several forms of a phrase, this holds for the likeliest one; the others cost as
        much more as they are less likely.

        Args:
            rows: N of them.
            met: how far they have come.
            log_probs: [N, V] of the next token.
            gain: [N, M] of the candidates.
            token: [N, M] they.
            following: [N, P] what begins each form or goes on with it.
            missing: [N, P] whether it may come now and is missing.
        """
        instead, of = self.instead[rows.sentence], self.of[rows.sentence]  # [N, P, R], [N, P, C]
        exchanged = missing & (instead[:, :, 0] >= 0)  # [N, P]
        there = log_probs.gather(1, instead.clamp(min=0).flatten(1)).view(instead.shape)
        there = there.masked_fill(instead < 0, -torch.inf).amax(-1)  # [N, P]
        own = log_probs.gather(1, following.clamp(min=0))  # [N, P]
        on = met.progress > 0
        begins = exchanged & ~on
        for group in (begins, exchanged & on):
            members = group[:, :, None] & (of > 0)  # [N, P, C]
            best = own[:, :, None].masked_fill(~members, -torch.inf).amax(1, keepdim=True)  # [N, 1, C]
            best = best.expand_as(members).masked_fill(~members, -torch.inf).amax(-1)  # [N, P]
            cost = (own - best + torch.where(on, 0.0, there)).masked_fill(~group | (own == -torch.inf), -torch.inf)
            hit = token[:, :, None] == following[:, None]  # [N, M, P]
            cheap = cost[:, None].masked_fill(~hit, -torch.inf).amax(-1)
            gain = torch.where(gain > -torch.inf, torch.maximum(gain, cheap), gain)
        itself = ((token[:, :, None] == following[:, None]) & missing[:, None]).any(
            -1
        )  # it may begin as the other does
        replaced = (token[:, :, None, None] == instead[:, None]).any(-1) & begins[:, None] & ~itself[:, :, None]
        return torch.minimum(gain, own[:, None].masked_fill(~replaced, torch.inf).amin(-1))

    def lacks(self, sentence: Tensor, times: Tensor) -> Tensor:
        """Whether outputs of sentences lack something; `sentence` any shape, `times` the same and [C]."""
        return (times < self.wanted[sentence]).any(-1)

    def after(self, rows: Rows, times: Tensor, fresh: Tensor) -> Met:
        """Return how far rows have come whose last tokens led to these `times` [N, C] and `fresh` [N, C]."""
        forms, lengths, inside = self.forms[rows.sentence], self.lengths[rows.sentence], self.inside[rows.sentence]
        progress = torch.zeros_like(lengths)
        for length in range(1, min(forms.size(2) - 1, rows.length) + 1):
            alike = (forms[:, :, :length] == rows.tokens[:, None, -length:]).all(-1)
            begins = ~inside | self.edges.opens[rows.tokens[:, -length - 1]][:, None]
            progress = torch.where(alike & begins & (length < lengths), length, progress)
        return Met(times, fresh, progress)


class Phrases:
    """The `Constraint` of one beam search whose outputs have to have phrases."""

    def __init__(self, steering: Steering, rows: Rows) -> None:
        """`steering`: the constraints as tensors; `rows`: the first ones."""
        self.steering, self.met = steering, steering.begin(rows)

    def choices(self, rows: Rows, log_probs: Tensor, gain: Tensor, token: Tensor) -> Choices:
        """See `Constraint`."""
        self.candidates = self.steering.candidates(rows, self.met, log_probs, gain, token)
        shares = Shares(self.candidates.bank, self.steering.banks)
        return Choices(self.candidates.token, self.candidates.gain, self.candidates.price, shares)

    def lacks(self, sentence: Tensor, parent: Tensor, place: Tensor) -> Tensor:
        """See `Constraint`."""
        return self.steering.lacks(sentence, self.candidates.times[parent, place])

    def follow(self, rows: Rows, parent: Tensor, place: Tensor) -> None:
        """See `Constraint`."""
        times, fresh = self.candidates.times[parent, place], self.candidates.fresh[parent, place]
        self.met = self.steering.after(rows, times, fresh)
