"""Greedy search, and the loop that it shares with sampling: one token at each step."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from torch import Tensor

from translucid.decoding.problem import Problem
from translucid.decoding.rows import Finished, Rows, parted, surely_none

Choose: TypeAlias = Callable[[Tensor, Rows], Tensor]
"""choose(log_probs [N, V], rows) -> tokens [N]: the next token of each row."""


def greedy_search(problem: Problem) -> Finished:
    """Take the most probable token at each step; of equally probable ones the one with the lowest id."""
    return token_by_token(problem, 1, lambda log_probs, rows: log_probs.argmax(-1))


def token_by_token(problem: Problem, draws: int, choose: Choose) -> Finished:
    """Extend `draws` rows for each sentence by chosen tokens; a row that ends leaves the batch."""
    finished = Finished(len(problem.limits))
    rows, state = problem.begin(draws)
    while len(rows):
        log_probs, state, finite = problem.predict(rows, state)
        token = choose(log_probs, rows)
        rows = rows.extended(token, log_probs.gather(1, token[:, None])[:, 0])
        ends = token == problem.model.eos
        if surely_none(ends):
            continue
        (going_on, ending), (is_finite,) = parted(ends.long(), 2, finite)
        problem.refuse_unless(is_finite)
        if len(ending):
            ended = rows.select(ending)
            finished.add(ended, ended.log_prob / problem.penalties[ended.length])
            rows, state = rows.select(going_on), state.select(going_on)
    return finished
