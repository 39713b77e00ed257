"""Greedy search and sampling: one token at each step.

Sampling is by temperature, top-k and nucleus sampling (Holtzman et al. 2020, arXiv 1904.09751).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
import torch
from torch import Tensor

from translucid.decoding.decoding_options import DecodingOptions
from translucid.decoding.problem import Problem, refuse_unless_finite
from translucid.decoding.rows import Finished, Rows, indices_by_kind, known_empty
from translucid.kernels.upload import upload

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
        if known_empty(ends):
            continue
        (continuing, ending), (is_finite,) = indices_by_kind(ends.long(), 2, finite)
        refuse_unless_finite(is_finite)
        if len(ending):
            ended = rows.select(ending)
            finished.add(ended, ended.log_prob / problem.penalties[ended.length])
            rows, state = rows.select(continuing), state.select(continuing)
    return finished


def sample(problem: Problem, options: DecodingOptions, indices: Sequence[int]) -> Finished:
    """Draw `options.nbest` outputs for each sentence; equal ones count once.

    The random numbers of a sentence depend only on the seed and on its number in `indices`, so its outputs are the same
    in every batch.
    """
    steps, draws = len(problem.penalties), options.nbest
    numbers = np.empty((len(indices), draws, steps), dtype=np.float32)
    for row, index in enumerate(indices):
        for draw in range(draws):
            numbers[row, draw] = np.random.default_rng((options.seed, index, draw)).random(steps, dtype=np.float32)
    uniform = upload(torch.from_numpy(numbers), problem.limits.device)  # [B, n, steps]

    def choose(log_probs: Tensor, rows: Rows) -> Tensor:
        return draw_tokens(log_probs, uniform[rows.sentence, rows.slot, rows.length], options)

    return token_by_token(problem, draws, choose)


def draw_tokens(log_probs: Tensor, uniform: Tensor, options: DecodingOptions) -> Tensor:
    """Draw a token [N] from each distribution by its inverse cumulative distribution function.

    First the temperature applies, then the `top_k` most probable tokens are kept, then the fewest of these whose
    probabilities sum to `top_p`.

    Args:
        log_probs: [N, V], -inf where forbidden; a row need not sum to 1.
        uniform: [N] random numbers in [0, 1).
        options: temperature, top_k and top_p.
    """
    tokens = None
    if options.top_k or options.top_p < 1:
        log_probs, tokens = log_probs.sort(dim=-1, descending=True, stable=True)
        if options.top_k:
            log_probs = log_probs[:, : options.top_k]
    # The highest becomes 0 before the division, so that no temperature overflows; none is 0 in float32.
    probs = ((log_probs - log_probs.amax(-1, keepdim=True)) / max(options.temperature, 1e-30)).softmax(-1)
    if options.top_p < 1:
        before = probs.cumsum(-1) - probs  # [N, V] what the likelier tokens have together
        probs = probs.masked_fill(before >= options.top_p, 0)
    cumulative = probs.cumsum(-1)  # [N, V]
    position = torch.searchsorted(cumulative, uniform[:, None] * cumulative[:, -1:], right=True)
    # A float32 product may round up to the total, one past the last token that has any probability.
    last = (cumulative < cumulative[:, -1:]).sum(-1, keepdim=True)
    position = torch.minimum(position, last)
    if tokens is not None:  # positions among the sorted tokens
        position = tokens.gather(1, position)
    return position[:, 0]
