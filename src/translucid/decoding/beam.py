"""Batched beam search; finished sentences and hypotheses leave the batch.

At each step a sentence keeps its most probable partial outputs (Sutskever et al. 2014, arXiv 1409.3215, section 3.2),
K of them, minus one for each that has ended, so that a beam of 1 is greedy search. Only those that can still be among
the n best are kept, which changes no result: a partial output with log-probability L scores at most L / lp(its limit).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Self

import torch
from torch import Tensor

from translucid.decoding.constrained_decoding import Constraint, Shares, Unconstrained, by_turns
from translucid.decoding.problem import Problem, refuse_unless_finite
from translucid.decoding.rows import Finished, Rows, indices_by_kind, known_empty
from translucid.decoding.trace import BeamTrace


def beam_search(
    problem: Problem,
    beam: int,
    nbest: int,
    trace: BeamTrace | None = None,
    constrain: Callable[[Rows], Constraint] = Unconstrained,
) -> Finished:
    """Search with `beam` K hypotheses a sentence for the `nbest` of highest score.

    The N rows are the live hypotheses of all sentences, sentence by sentence and the most probable first; each has a
    slot among the K of its sentence. A `trace` is for one sentence. `constrain`, given the first rows, returns the
    constraint; outputs that do not satisfy it are returned only if no other is found.
    """
    sentences, device, eos = len(problem.limits), problem.limits.device, problem.model.eos
    rows, state = problem.begin()
    constraint = constrain(rows)
    if trace is not None:
        trace.begin(problem.model.bos)
    incomplete = Finished(sentences)
    finished = Finished(sentences, incomplete)
    bound = PruningBound.begin(sentences, beam, nbest, device)
    rank = torch.arange(beam, device=device)  # [K]
    longest_penalty = problem.penalties[problem.limits + 1][:, None]  # [B, 1]

    while len(rows):
        log_probs, state, finite = problem.predict(rows, state)
        choices = constraint.choices(rows, log_probs, *likeliest(log_probs, beam))  # [N, M]
        total, parent, choice = merge(
            rows, rows.log_prob[:, None] + choices.adjusted_score, sentences, beam, choices.shares
        )
        token, gain, adjusted = (
            values[parent, choice] for values in (choices.token, choices.gain, choices.adjusted_score)
        )  # [B, K]
        # A candidate that can't be among the n best takes no slot when it ends, so that dropping it changes no result.
        viable = (total > -torch.inf) & (rank < bound.width[:, None]) & (total / longest_penalty >= bound.worst)
        ends = viable & (token == eos)
        live, unsatisfied, score = viable & ~ends, torch.zeros_like(ends), total
        if not known_empty(ends):
            score = total / problem.penalties[rows.length + 1]
            unsatisfied = ends & constraint.unsatisfied(rows.sentence[parent], parent, choice)
            ends = ends & ~unsatisfied
            bound = bound.after(ends, score)
            live &= total / longest_penalty >= bound.worst
        kind = torch.where(live, 0, torch.where(ends, 1, torch.where(unsatisfied, 2, 3)))
        indices, (is_finite,) = indices_by_kind(kind.flatten(), 3, finite)
        refuse_unless_finite(is_finite)
        if trace is not None:
            trace.step(total, parent, token, ends, live)
        columns = [values.flatten() for values in (parent, token, gain, adjusted)]
        continuing, ending, ending_unsatisfied = indices
        for collection, candidates in ((finished, ending), (incomplete, ending_unsatisfied)):
            # Few steps finish a hypothesis, and an empty chunk would be padded and copied at the end.
            if len(candidates):
                collection.add(_extended(rows, columns, candidates), score.flatten()[candidates])
        parents = columns[0][continuing]  # [N] of the next step
        # On a CPU, comparing the indices costs less than copying the state; on a GPU, it would wait for the device.
        if parents.device.type != "cpu" or not torch.equal(parents, torch.arange(len(rows))):
            state = state.select(parents)
        rows = replace(_extended(rows, columns, continuing), slot=continuing % beam)
        constraint.follow(rows, parents, choice.flatten()[continuing])
    return finished


def _extended(rows: Rows, columns: Sequence[Tensor], candidates: Tensor) -> Rows:
    """Return rows extended by their tokens: `candidates` are indices into `columns`, each [B K]."""
    parent, token, gain, adjusted = (column[candidates] for column in columns)
    return rows.select(parent).extended(token, gain, adjusted)


@dataclass(frozen=True)
class PruningBound:
    """The scores that partial outputs of B sentences have to reach, given the finished hypotheses."""

    width: Tensor
    """[B] the number of slots that finished hypotheses have not taken."""
    scores: Tensor
    """[B, n] the scores of the best finished hypotheses, sorted; -inf where there are fewer."""

    @classmethod
    def begin(cls, sentences: int, beam: int, nbest: int, device: torch.device) -> Self:
        """Return the bound before any hypothesis is finished."""
        width = torch.full((sentences,), beam, device=device)
        return cls(width, torch.full((sentences, nbest), -torch.inf, device=device))

    @property
    def worst(self) -> Tensor:
        """[B, 1] the score that a hypothesis has to reach to be among the n best."""
        return self.scores[:, -1:]

    def after(self, ends: Tensor, score: Tensor) -> PruningBound:
        """Return the bound when the candidates [B, K] that have ended are finished too."""
        scores = torch.cat([self.scores, score.masked_fill(~ends, -torch.inf)], 1)
        return PruningBound(self.width - ends.sum(1), scores.topk(self.scores.size(1)).values)


def likeliest(log_probs: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Return the k highest of each row [N, V] and their ids, [N, k] each, sorted; of equal ones the lower id first.

    `topk` alone takes any of several equal ones. One value more than k shows whether that has happened, which is rare.
    """
    if log_probs.device.type != "cpu":
        return _likeliest_without_waiting(log_probs, min(k, log_probs.size(1)))
    values, ids = log_probs.topk(min(k + 1, log_probs.size(1)))
    tied = ((values[:, 1:] == values[:, :-1]) & (values[:, 1:] > -torch.inf)).any(1)
    if tied.any():
        (rows,) = tied.nonzero(as_tuple=True)
        in_order = log_probs[rows].sort(dim=1, descending=True, stable=True)
        values[rows], ids[rows] = in_order.values[:, : values.size(1)], in_order.indices[:, : values.size(1)]
    return values[:, :k], ids[:, :k]


def _likeliest_without_waiting(log_probs: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Do the same on a GPU, always by ids, because a check for ties would wait for the device."""
    values, ids = log_probs.topk(k)  # [N, k]
    lowest = values[:, -1:]
    token_ids = torch.arange(log_probs.size(1), device=log_probs.device, dtype=torch.float32)
    equal = torch.where(log_probs == lowest, -token_ids, -torch.inf).topk(k).indices  # of the k-th, the lowest id first
    rank, above = torch.arange(k, device=log_probs.device), (values > lowest).sum(1, keepdim=True)
    ids = torch.where(rank < above, ids, equal.gather(1, (rank - above).clamp(min=0)))
    by_id = ids.argsort(1)
    ids, values = ids.gather(1, by_id), values.gather(1, by_id)
    values, order = values.sort(dim=1, descending=True, stable=True)
    return values, ids.gather(1, order)


def merge(
    rows: Rows, totals: Tensor, sentences: int, beam: int, shares: Shares | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """Find the K most probable candidates of each sentence among k from each of its rows.

    Args:
        rows: the N rows.
        totals: [N, k] the log-probabilities of their candidates.
        sentences: the number of sentences B.
        beam: the beam size K.
        shares: the distribution of the K slots among banks, if there are any.

    Returns:
        For each sentence [B, K], the most probable first, of equal ones that of the earlier slot, then the earlier one:
        the log-probability (-inf where there are fewer than K), the row, and the choice among the row's k.
    """
    n, k = totals.shape
    table = totals.new_full((sentences, beam, k), -torch.inf)
    table[rows.sentence, rows.slot] = totals
    row = rows.slot.new_zeros(sentences, beam)
    row[rows.sentence, rows.slot] = torch.arange(n, device=row.device)
    best, choice = table.flatten(1).sort(dim=1, descending=True, stable=True)
    if shares is not None:
        bank = shares.bank.new_zeros(sentences, beam, k)
        bank[rows.sentence, rows.slot] = shares.bank
        turns = by_turns(bank.flatten(1).gather(1, choice), best > -torch.inf, shares.banks)
        best, choice = best.gather(1, turns), choice.gather(1, turns)
    best, choice = best[:, :beam], choice[:, :beam]
    return best, row.gather(1, choice // k), choice % k
