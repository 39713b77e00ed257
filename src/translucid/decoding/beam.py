"""Beam search over a batch from which finished sentences and hypotheses leave.

At each step a sentence keeps its likeliest partial outputs (Sutskever et al. 2014, arXiv 1409.3215, section 3.2),
K of them, less one for each that has ended: so a beam of 1 is greedy search. Only what can still be among the n best
is kept, which changes no result: a partial output with log-probability L can't score more than L / lp(its limit).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import torch
from torch import Tensor

from translucid.decoding.constraints import Constraints, Steering, by_turns
from translucid.decoding.problem import Problem
from translucid.decoding.rows import Finished, Rows
from translucid.decoding.trace import BeamTrace


def beam_search(
    problem: Problem,
    beam: int,
    nbest: int,
    trace: BeamTrace | None = None,
    constraints: Constraints | None = None,
) -> Finished:
    """Search with `beam` K hypotheses a sentence for the `nbest` of highest score.

    The N rows are the live hypotheses of all sentences, sentence by sentence and the likeliest first; each has a slot
    of its own among the K of its sentence. A `trace` is for one sentence. Where there are `constraints`, what lacks
    something of them is found only if nothing else is.
    """
    sentences, device = len(problem.limits), problem.limits.device
    rows, state = problem.begin()
    finished, goal = Finished(sentences), Goal.begin(sentences, beam, nbest, device)
    if trace is not None:
        trace.begin(problem.model.bos)
    steering = Steering.by(constraints, problem.model.bos, problem.model.eos, device) if constraints else None
    met, lacking = steering and steering.begin(rows), Finished(sentences)
    rank = torch.arange(beam, device=device)  # [K]
    longest_penalty = problem.penalties[problem.limits + 1][:, None]  # [B, 1]

    while len(rows):
        log_probs, state = problem.predict(rows, state)
        gain, choice = likeliest(log_probs, beam)  # [N, k]
        price, steered = gain, None
        if steering and met:
            steered = steering.candidates(rows, met, log_probs, gain, choice)
            gain, choice, price = steered.gain, steered.token, steered.price
        total, parent, place = merge(rows, rows.log_prob[:, None] + price, sentences, beam, steered and steered.bank)
        token, gain, price = choice[parent, place], gain[parent, place], price[parent, place]  # [B, K]
        # A candidate that can't be among the n best takes no slot when it ends, or what is dropped would matter.
        kept = (total > -torch.inf) & (rank < goal.width[:, None]) & (total / longest_penalty >= goal.worst)
        ends = kept & (token == problem.model.eos)
        live = kept & ~ends
        if steering and steered and ends.any():
            lacks = ends & steering.lacks(rows.sentence[parent], steered.times[parent, place])
            if lacks.any():
                ended = rows.select(parent[lacks]).extended(token[lacks], gain[lacks], price[lacks])
                lacking.add(ended, (total / problem.penalties[ended.length])[lacks])
                ends &= ~lacks
        if ends.any():
            ended = rows.select(parent[ends]).extended(token[ends], gain[ends], price[ends])
            score = total / problem.penalties[ended.length]
            finished.add(ended, score[ends])
            goal = goal.after(ends, score)
            live &= total / longest_penalty >= goal.worst
        if trace is not None:
            trace.step(total, parent, token, ends, live)
        moved = parent[live]  # [N] anew
        if not torch.equal(moved, torch.arange(len(rows), device=device)):
            state = state.select(moved)
        rows = replace(rows.select(moved).extended(token[live], gain[live], price[live]), slot=live.nonzero()[:, 1])
        if steering and steered:
            come = parent[live], place[live]
            met = steering.after(rows, steered.times[come], steered.fresh[come])
    return finished.or_else(lacking)


@dataclass(frozen=True)
class Goal:
    """What the finished hypotheses of B sentences leave to be searched for."""

    width: Tensor
    """[B] slots that they have not taken."""
    scores: Tensor
    """[B, n] of the best of them, sorted; -inf where there are fewer."""

    @classmethod
    def begin(cls, sentences: int, beam: int, nbest: int, device: torch.device) -> Self:
        """Return what there is to search for when nothing is finished."""
        width = torch.full((sentences,), beam, device=device)
        return cls(width, torch.full((sentences, nbest), -torch.inf, device=device))

    @property
    def worst(self) -> Tensor:
        """[B, 1] the score that is to be reached."""
        return self.scores[:, -1:]

    def after(self, ends: Tensor, score: Tensor) -> Goal:
        """Return what is left to search for when those of the candidates [B, K] that have ended are finished too."""
        scores = torch.cat([self.scores, score.masked_fill(~ends, -torch.inf)], 1)
        return Goal(self.width - ends.sum(1), scores.topk(self.scores.size(1)).values)


def likeliest(log_probs: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Return the k highest of each row [N, V] and their ids, [N, k] each, sorted; of equal ones the lower id first.

    `topk` alone takes any of several equal ones. One more than k shows whether that has happened, which is rare.
    """
    values, ids = log_probs.topk(min(k + 1, log_probs.size(1)))
    tied = ((values[:, 1:] == values[:, :-1]) & (values[:, 1:] > -torch.inf)).any(1)
    if tied.any():
        (rows,) = tied.nonzero(as_tuple=True)
        in_order = log_probs[rows].sort(dim=1, descending=True, stable=True)
        values[rows], ids[rows] = in_order.values[:, : values.size(1)], in_order.indices[:, : values.size(1)]
    return values[:, :k], ids[:, :k]


def merge(
    rows: Rows, totals: Tensor, sentences: int, beam: int, banks: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """Find the K likeliest candidates of each sentence among k from each of its rows.

    Args:
        rows: N of them.
        totals: [N, k] log-probabilities of their candidates.
        sentences: B.
        beam: K.
        banks: [N, k] if the K places are shared out among them; see `by_turns`.

    Returns:
        For each sentence [B, K], the likeliest first, of equal ones that of the earlier slot, then the earlier one:
        the log-probability (-inf where there are fewer than K), the row, and the place among the row's k.
    """
    n, k = totals.shape
    table = totals.new_full((sentences, beam, k), -torch.inf)
    table[rows.sentence, rows.slot] = totals
    row = rows.slot.new_zeros(sentences, beam)
    row[rows.sentence, rows.slot] = torch.arange(n, device=row.device)
    best, place = table.flatten(1).sort(dim=1, descending=True, stable=True)
    if banks is not None:
        bank = banks.new_zeros(sentences, beam, k)
        bank[rows.sentence, rows.slot] = banks
        turns = by_turns(bank.flatten(1).gather(1, place), best > -torch.inf)
        best, place = best.gather(1, turns), place.gather(1, turns)
    best, place = best[:, :beam], place[:, :beam]
    return best, row.gather(1, place // k), place % k
