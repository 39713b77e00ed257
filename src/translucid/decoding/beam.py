"""Beam search over a batch from which finished sentences and hypotheses leave.

At each step a sentence keeps its likeliest partial outputs (Sutskever et al. 2014, arXiv 1409.3215, section 3.2),
K of them, less one for each that has ended: so a beam of 1 is greedy search. Only what can still be among the n best
is kept, which changes no result: a partial output with log-probability L can't score more than L / lp(its limit).
"""

from __future__ import annotations

import torch
from torch import Tensor

from translucid.decoding.finished import Finished
from translucid.decoding.problem import Problem
from translucid.decoding.trace import BeamTrace


def beam_search(problem: Problem, beam: int, nbest: int, trace: BeamTrace | None = None) -> Finished:
    """Search with `beam` K hypotheses a sentence for the `nbest` of highest score.

    The N rows are the live hypotheses of all sentences, sentence by sentence and the likeliest first; each has a slot
    of its own among the K of its sentence. A `trace` is for one sentence.
    """
    model, limits = problem.model, problem.limits
    sentences = len(limits)
    finished = Finished(sentences)
    state = model.start(problem.memory)
    sentence = torch.arange(sentences, device=limits.device)  # [N]
    slot = torch.zeros_like(sentence)  # [N] in 0 .. K - 1
    token = torch.full_like(sentence, model.bos)  # [N] the last one
    tokens = sentence.new_empty(sentences, 0)  # [N, t]
    log_prob = torch.zeros(sentences, device=limits.device)  # [N]
    token_log_probs = log_prob.new_empty(sentences, 0)  # [N, t]
    width = torch.full_like(sentence, beam)  # [B] slots not taken by finished hypotheses
    scores = log_prob.new_full((sentences, nbest), -torch.inf)  # [B, n] of the best finished hypotheses, sorted
    if trace is not None:
        trace.begin(model.bos)
    rank = torch.arange(beam, device=limits.device)  # [K]
    longest_penalty = problem.penalties[limits + 1][:, None]  # [B, 1]

    while len(sentence):
        t = tokens.size(1)
        log_probs, state = problem.predict(token, state, tokens, sentence)
        gain, choice = likeliest(log_probs, beam)  # [N, k]
        total, parent, place = merge(log_prob[:, None] + gain, sentence, slot, sentences, beam)  # [B, K]
        token = choice[parent, place]
        # A candidate that can't be among the n best takes no slot when it ends, or what is dropped would matter.
        kept = (total > -torch.inf) & (rank < width[:, None]) & (total / longest_penalty >= scores[:, -1:])
        ends = kept & (token == model.eos)
        live = kept & ~ends
        if ends.any():
            score = total / problem.penalties[t + 1]
            rows = parent[ends]
            path = torch.cat([token_log_probs[rows], gain[rows, place[ends]][:, None]], 1)
            finished.add(ends.nonzero()[:, 0], tokens[rows], path, total[ends], score[ends])
            width = width - ends.sum(1)
            scores = torch.cat([scores, score.masked_fill(~ends, -torch.inf)], 1).topk(nbest).values
            live &= total / longest_penalty >= scores[:, -1:]
        if trace is not None:
            trace.step(total, parent, token, ends, live)
        rows = parent[live]  # [N] anew
        if not torch.equal(rows, torch.arange(len(sentence), device=rows.device)):
            state = state.select(rows)
        sentence, slot = live.nonzero(as_tuple=True)
        token, log_prob = token[live], total[live]
        tokens = torch.cat([tokens[rows], token[:, None]], 1)
        token_log_probs = torch.cat([token_log_probs[rows], gain[rows, place[live]][:, None]], 1)
    return finished


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


def merge(totals: Tensor, sentence: Tensor, slot: Tensor, sentences: int, beam: int) -> tuple[Tensor, Tensor, Tensor]:
    """Find the K likeliest candidates of each sentence among k from each of its rows.

    Args:
        totals: [N, k] log-probabilities of the candidates.
        sentence: [N] of each row.
        slot: [N] of each row within its sentence.
        sentences: B.
        beam: K.

    Returns:
        For each sentence [B, K], the likeliest first, of equal ones that of the earlier slot, then the earlier one:
        the log-probability (-inf where there are fewer than K), the row, and the place among the row's k.
    """
    rows, k = totals.shape
    table = totals.new_full((sentences, beam, k), -torch.inf)
    table[sentence, slot] = totals
    row = sentence.new_zeros(sentences, beam)
    row[sentence, slot] = torch.arange(rows, device=row.device)
    best, place = table.flatten(1).sort(dim=1, descending=True, stable=True)
    best, place = best[:, :beam], place[:, :beam]
    return best, row.gather(1, place // k), place % k
