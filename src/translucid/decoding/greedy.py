"""Greedy search, and the loop that it shares with sampling: one token a step, chosen and never taken back."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import torch
from torch import Tensor

from translucid.decoding.finished import Finished
from translucid.decoding.problem import Problem

Choose: TypeAlias = Callable[[Tensor, Tensor, int], Tensor]
"""choose(log_probs [N, V], draw [N], t) -> tokens [N]: the next token of each row at step t.

`draw` is the number that the row had at the beginning, when none had left.
"""


def greedy_search(problem: Problem) -> Finished:
    """Take the likeliest token at each step; of equally likely ones that with the lowest id."""
    return token_by_token(problem, 1, lambda log_probs, draw, t: log_probs.argmax(-1))


def token_by_token(problem: Problem, draws: int, choose: Choose) -> Finished:
    """Extend `draws` rows for each sentence by chosen tokens; a row that ends leaves the batch."""
    model, device = problem.model, problem.limits.device
    finished = Finished(len(problem.limits))
    draw = torch.arange(len(problem.limits) * draws, device=device)  # [N]
    state = model.start(problem.memory)
    if draws > 1:
        state = state.select(draw // draws)
    token = torch.full_like(draw, model.bos)  # [N]
    tokens = draw.new_empty(len(draw), 0)  # [N, t]
    token_log_probs = torch.empty(len(draw), 0, device=device)  # [N, t]
    log_prob = torch.zeros(len(draw), device=device)  # [N]
    while len(draw):
        t = tokens.size(1)
        log_probs, state = problem.predict(token, state, tokens, draw // draws)
        token = choose(log_probs, draw, t)
        gain = log_probs.gather(1, token[:, None])
        token_log_probs = torch.cat([token_log_probs, gain], 1)
        log_prob = log_prob + gain[:, 0]
        ends = token == model.eos
        if ends.any():
            score = log_prob[ends] / problem.penalties[t + 1]
            finished.add(draw[ends] // draws, tokens[ends], token_log_probs[ends], log_prob[ends], score)
            (rows,) = (~ends).nonzero(as_tuple=True)
            draw, token, tokens = draw[rows], token[rows], tokens[rows]
            token_log_probs, log_prob = token_log_probs[rows], log_prob[rows]
            state = state.select(rows)
        tokens = torch.cat([tokens, token[:, None]], 1)
    return finished
