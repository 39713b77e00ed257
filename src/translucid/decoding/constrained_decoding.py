"""Constrained beam search: phrases that the output must contain (Post and Vilar 2018, arXiv 1804.06609).

A partial output that has more of the required phrases is less probable than one that has not begun them, and would lose
its slot to it. So the slots of a beam are distributed among banks, by how many phrases a partial output has (section
3.2): the best of each bank, then the second of each, and so on, the fullest bank first (as in Hu et al. 2019, N19-1090,
section 3.1, without a loop over sentences). There is a bank for each number of complete phrases, and another for that
number and a phrase that has begun; the single pieces of phrases have none, so that one long phrase does not use up a
narrow beam. No output ends before it has all phrases.

If a model would not choose a phrase, the phrase is about equally improbable everywhere, and least improbable at the
end of the output. So a phrase may come `instead` of tokens that the model would choose: then the search exchanges their
scores.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from translucid.decoding.rows import Rows
from translucid.kernels.upload import upload


class Shares(NamedTuple):
    """The distribution of the slots of a beam among banks of candidates; see `by_turns`."""

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
    adjusted_score: Tensor
    """[N, M] the values that the search adds up, which may differ from the log-probabilities."""
    shares: Shares | None = None
    """The distribution of the slots of the beam among them; None if the most probable ones get the slots."""


class Constraint(Protocol):
    """Adds candidates to one beam search, and determines which outputs do not satisfy the constraint."""

    def choices(self, rows: Rows, log_probs: Tensor, gain: Tensor, token: Tensor) -> Choices:
        """Return the candidates for the next token of each row.

        Args:
            rows: the N rows.
            log_probs: [N, V] the log-probabilities of the next token.
            gain: [N, k] those of the most probable tokens.
            token: [N, k] the most probable tokens.
        """

    def unsatisfied(self, sentence: Tensor, parent: Tensor, choice: Tensor) -> Tensor:
        """Return whether outputs [B, K] would end without satisfying the constraint.

        Args:
            sentence: [B, K] the sentence of each.
            parent: [B, K] the row that each extends.
            choice: [B, K] the index of its last token among the choices of that row.
        """

    def follow(self, rows: Rows, parent: Tensor, choice: Tensor) -> None:
        """Record which rows continue: the rows [N] that they extend, and the choices [N] of their last tokens."""


class Unconstrained:
    """No constraint: the most probable tokens are the candidates, and every output may end."""

    def __init__(self, rows: Rows) -> None:
        """The first rows need no preparation."""

    def choices(self, rows: Rows, log_probs: Tensor, gain: Tensor, token: Tensor) -> Choices:
        """Return the most probable tokens."""
        return Choices(token, gain, gain)

    def unsatisfied(self, sentence: Tensor, parent: Tensor, choice: Tensor) -> Tensor:
        """Return False for all outputs."""
        return torch.zeros_like(parent, dtype=torch.bool)

    def follow(self, rows: Rows, parent: Tensor, choice: Tensor) -> None:
        """Do nothing: there is no progress to record."""


def by_turns(bank: Tensor, valid: Tensor, banks: int) -> Tensor:
    """Return the order in which candidates get slots: the best of each bank, the fullest first, then the second best.

    Args:
        bank: [B, X] the banks of candidates that are sorted, the best first.
        valid: [B, X] boolean; candidates where it is False come last.
        banks: the number of banks.
    """
    in_bank = torch.nn.functional.one_hot(bank, banks) * valid[:, :, None]  # [B, X, banks]
    turn = in_bank.cumsum(1).gather(2, bank[:, :, None])[:, :, 0]  # counted from 1 in each bank
    key = torch.where(valid, turn * banks - bank, (bank.size(1) + 1) * banks)
    return key.argsort(dim=1, stable=True)


class Form(NamedTuple):
    """One way to write a phrase."""

    pieces: tuple[int, ...]
    """Target ids, at least one."""
    inside: bool = False
    """Whether the form has no space in front: it is allowed at the beginning of an output, and after a piece of
    `Edges.opens_word`."""
    instead: tuple[int, ...] = ()
    """The first tokens of what the model would choose instead of the phrase."""


class RequiredPhrase(NamedTuple):
    """A phrase that an output must contain."""

    forms: tuple[Form, ...]
    """The allowed forms; different occurrences may have different ones."""
    times: int = 1
    """The minimum number of occurrences."""


class Edges(NamedTuple):
    """Where words begin and end among the pieces of a vocabulary."""

    continues_word: Tensor
    """[V] boolean, True where a piece continues the word before it, so that a phrase before it does not end there."""
    opens_word: Tensor
    """[V] boolean, True where a word may begin right after a piece, as after a bracket."""


class Constraints(NamedTuple):
    """The phrases that the outputs of B sentences must contain."""

    phrases: Sequence[Sequence[RequiredPhrase]]
    """The phrases of each sentence."""
    edges: Edges

    def of(self, sentences: Sequence[int]) -> Constraints:
        """Return the constraints of some of the sentences."""
        return Constraints([self.phrases[i] for i in sentences], self.edges)


class PhraseProgress(NamedTuple):
    """The progress of N partial outputs."""

    times: Tensor
    """[N, C] the occurrences of each phrase, at most as many as required."""
    fresh: Tensor
    """[N, C] boolean, whether the last token completed an occurrence: it does not count if the word continues."""
    progress: Tensor
    """[N, P] the number of pieces of each form that the output ends in, less than all."""


@dataclass
class PhraseConstraint:
    """The `Constraint` of one beam search: phrases as tensors, for B sentences with at most P forms of C phrases."""

    forms: Tensor
    """[B, P, L] ids; -1 after the end."""
    lengths: Tensor
    """[B, P] the lengths of the forms; 0 where there is none."""
    inside: Tensor
    """[B, P] boolean, whether a form has no space in front."""
    membership: Tensor
    """[B, P, C] 1 where a form belongs to a phrase, float32."""
    required: Tensor
    """[B, C] the required occurrences of each phrase."""
    instead: Tensor
    """[B, P, R] the tokens that each form may replace; -1 after the end."""
    edges: Edges
    eos: int
    banks: int
    """The number of banks."""
    state: PhraseProgress
    """The progress of the rows before their next tokens."""
    times: Tensor = field(init=False)
    """[N, M, C] the occurrences of each phrase with each of the choices; see `PhraseProgress`."""
    fresh: Tensor = field(init=False)
    """[N, M, C] boolean, whether each of the choices completes an occurrence."""

    @classmethod
    def begin(cls, constraints: Constraints, bos: int, eos: int, rows: Rows) -> PhraseConstraint:
        """Convert constraints to tensors, and begin with the first rows of a search."""
        phrases, device = list(map(_numbered_forms, constraints.phrases)), rows.tokens.device
        all_forms = [form for _, form in chain.from_iterable(phrases)]
        b, c = len(phrases), max(1, *map(len, constraints.phrases))
        p = max(1, *map(len, phrases))
        max_pieces = max((len(form.pieces) for form in all_forms), default=1)
        max_replaced = max((len(form.instead) for form in all_forms), default=0)
        forms, instead = torch.full((b, p, max_pieces), -1), torch.full((b, p, max(1, max_replaced)), -1)
        lengths, inside = torch.zeros(b, p, dtype=torch.long), torch.zeros(b, p, dtype=torch.bool)
        membership, required = torch.zeros(b, p, c), torch.zeros(b, c, dtype=torch.long)
        for sentence, sentence_forms in enumerate(phrases):
            for phrase, constraint in enumerate(constraints.phrases[sentence]):
                required[sentence, phrase] = constraint.times
            for number, (phrase, form) in enumerate(sentence_forms):
                forms[sentence, number, : len(form.pieces)] = torch.tensor(form.pieces)
                lengths[sentence, number], inside[sentence, number] = len(form.pieces), form.inside
                membership[sentence, number, phrase] = 1
                instead[sentence, number, : len(form.instead)] = torch.tensor(form.instead, dtype=torch.long)
        continues_word, opens_word = constraints.edges.continues_word, constraints.edges.opens_word.clone()
        opens_word[bos] = True  # a form without a space may begin an output
        times = torch.zeros(len(rows), c, dtype=torch.long, device=device)
        return cls(
            upload(forms, device),
            upload(lengths, device),
            upload(inside, device),
            upload(membership, device),
            upload(required, device),
            upload(instead, device),
            Edges(upload(continues_word, device), upload(opens_word, device)),
            eos,
            2 * int(required.sum(1).max()) + 1,
            PhraseProgress(times, times.bool(), times.new_zeros(len(rows), p)),
        )

    def choices(self, rows: Rows, log_probs: Tensor, gain: Tensor, token: Tensor) -> Choices:
        """Add to the most probable tokens of each row those that begin or continue a required phrase.

        Args:
            rows: the N rows.
            log_probs: [N, V] the log-probabilities of the next token.
            gain: [N, k] those of the most probable tokens.
            token: [N, k] the most probable tokens.
        """
        state = self.state
        forms, lengths = self.forms[rows.sentence], self.lengths[rows.sentence]
        membership, required = self.membership[rows.sentence], self.required[rows.sentence]
        missing = (state.times < required)[:, None].logical_and(membership > 0).any(-1)  # [N, P]
        may_begin = ~self.inside[rows.sentence] | self.edges.opens_word[rows.last][:, None]
        following = forms.gather(2, state.progress[:, :, None])[:, :, 0]  # [N, P] the next piece of each form
        may_follow = (lengths > 0) & ((state.progress > 0) | may_begin)

        # An output that lacks a phrase may end only if no other token is possible, as at its limit.
        incomplete = (state.times < required).any(1)
        has_alternative = torch.where(token == self.eos, -torch.inf, gain).amax(1) > -torch.inf
        gain = gain.masked_fill((token == self.eos) & (incomplete & has_alternative)[:, None], -torch.inf)

        # A piece becomes a candidate once: not if it is among the choices, nor if an earlier form has the same one.
        is_new = missing & may_follow & (following[:, :, None] != token[:, None]).all(-1)
        same = (following[:, :, None] == following[:, None]) & is_new[:, None]
        is_new &= ~same.tril(-1).any(-1)
        added = log_probs.gather(1, following.clamp(min=0)).masked_fill(~is_new, -torch.inf)
        gain, token = torch.cat([gain, added], 1), torch.cat([token, following.clamp(min=0)], 1)

        hit = (token[:, :, None] == following[:, None]) & may_follow[:, None]  # [N, M, P]
        completes = hit & (state.progress + 1 == lengths)[:, None]
        broken = state.fresh[:, None] & self.edges.continues_word[token][:, :, None]  # [N, M, C]
        exchanged = ((self.instead[rows.sentence][:, :, :1] >= 0) & (membership > 0)).any(1)  # [N, C]
        # Otherwise a phrase could take the place of other tokens and then become part of a longer word.
        gain = gain.masked_fill((broken & exchanged[:, None]).any(-1), -torch.inf)
        adjusted_score = self._adjusted_scores(rows, log_probs, gain, token, following, missing & may_follow)
        before = state.times[:, None] - broken.long()
        fresh = (completes.float() @ membership > 0) & (before < required[:, None])
        times = before + fresh
        begun = (token[:, :, None] == forms[:, None, :, 0]) & may_begin[:, None]
        partly = ((hit | begun) & ~completes & (lengths > 0)[:, None]).float() @ membership > 0
        bank = 2 * times.sum(-1) + (partly & (times < required[:, None])).any(-1)
        self.times, self.fresh = times, fresh
        return Choices(token, gain, adjusted_score, Shares(bank, self.banks))

    def _adjusted_scores(
        self, rows: Rows, log_probs: Tensor, gain: Tensor, token: Tensor, following: Tensor, missing: Tensor
    ) -> Tensor:
        """Return the adjusted scores of candidates [N, M]: log-probabilities, unless a form has something `instead`.

        The first token of the form has the score of the token that it replaces, and vice versa: they are exchanged. The
        other tokens of the form cost nothing. Of several forms of a phrase, this holds for the most probable one; the
        others cost as much more as they are less probable.

        Args:
            rows: the N rows.
            log_probs: [N, V] the log-probabilities of the next token.
            gain: [N, M] those of the candidates.
            token: [N, M] the candidates.
            following: [N, P] the next piece of each form.
            missing: [N, P] boolean, whether that piece is allowed and its phrase is missing.
        """
        instead, membership = self.instead[rows.sentence], self.membership[rows.sentence]  # [N, P, R], [N, P, C]
        exchanged = missing & (instead[:, :, 0] >= 0)  # [N, P]
        replaced_score = log_probs.gather(1, instead.clamp(min=0).flatten(1)).view(instead.shape)
        replaced_score = replaced_score.masked_fill(instead < 0, -torch.inf).amax(-1)  # [N, P]
        score = log_probs.gather(1, following.clamp(min=0))  # [N, P]
        continues = self.state.progress > 0
        begins = exchanged & ~continues
        for group in (begins, exchanged & continues):
            members = group[:, :, None] & (membership > 0)  # [N, P, C]
            best = score[:, :, None].masked_fill(~members, -torch.inf).amax(1, keepdim=True)  # [N, 1, C]
            best = best.expand_as(members).masked_fill(~members, -torch.inf).amax(-1)  # [N, P]
            cost = score - best + torch.where(continues, 0.0, replaced_score)
            cost = cost.masked_fill(~group | (score == -torch.inf), -torch.inf)
            hit = token[:, :, None] == following[:, None]  # [N, M, P]
            cheap = cost[:, None].masked_fill(~hit, -torch.inf).amax(-1)
            gain = torch.where(gain > -torch.inf, torch.maximum(gain, cheap), gain)
        # A form may begin with the token that it replaces, which then keeps its score.
        itself = ((token[:, :, None] == following[:, None]) & missing[:, None]).any(-1)
        replaced = (token[:, :, None, None] == instead[:, None]).any(-1) & begins[:, None] & ~itself[:, :, None]
        return torch.minimum(gain, score[:, None].masked_fill(~replaced, torch.inf).amin(-1))

    def unsatisfied(self, sentence: Tensor, parent: Tensor, choice: Tensor) -> Tensor:
        """Return whether outputs [B, K] would end without all of their phrases."""
        return (self.times[parent, choice] < self.required[sentence]).any(-1)

    def follow(self, rows: Rows, parent: Tensor, choice: Tensor) -> None:
        """Record the progress of the rows that continue."""
        forms, lengths, inside = self.forms[rows.sentence], self.lengths[rows.sentence], self.inside[rows.sentence]
        progress = torch.zeros_like(lengths)
        # The longest beginning of a form that the output ends in counts: later lengths overwrite earlier ones.
        for length in range(1, min(forms.size(2) - 1, rows.length) + 1):
            matches = (forms[:, :, :length] == rows.tokens[:, None, -length:]).all(-1)
            begins = ~inside | self.edges.opens_word[rows.tokens[:, -length - 1]][:, None]
            progress = torch.where(matches & begins & (length < lengths), length, progress)
        self.state = PhraseProgress(self.times[parent, choice], self.fresh[parent, choice], progress)


def _numbered_forms(phrases: Sequence[RequiredPhrase]) -> list[tuple[int, Form]]:
    """Return the forms of all phrases of a sentence, each with the number of its phrase."""
    numbered = []
    for number, phrase in enumerate(phrases):
        for form in phrase.forms:
            numbered.append((number, form))
    return numbered
