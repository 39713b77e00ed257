"""Rules that forbid tokens in the outputs of every search.

A rule is called once a step as rule(history [N, t], log_probs [N, V]) and sets the log-probabilities of forbidden
tokens to -inf. `history` has the tokens of each row so far, without the start token. A rule processes all rows at once.

Only `MinLength` forbids the end token; a row without any other token may always end (see `problem.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import torch
from torch import Tensor

from translucid.decoding.decoding_options import DecodingOptions
from translucid.decoding.limits import LONGEST_LOOP
from translucid.kernels.transfer import upload

Rule: TypeAlias = Callable[[Tensor, Tensor], None]


@dataclass(frozen=True)
class Never:
    """No output has these tokens, such as padding, start and unknown."""

    tokens: Tensor
    """[n] ids."""

    def __call__(self, history: Tensor, log_probs: Tensor) -> None:
        """Forbid `tokens` in every row."""
        log_probs.index_fill_(1, self.tokens, -torch.inf)


@dataclass(frozen=True)
class MinLength:
    """Every output has at least `length` tokens before its end."""

    length: int
    eos: int

    def __call__(self, history: Tensor, log_probs: Tensor) -> None:
        """Forbid the end token while the rows are shorter than `length`."""
        if history.size(1) < self.length:
            log_probs[:, self.eos] = -torch.inf


@dataclass(frozen=True)
class NoRepeatNgram:
    """No run of n tokens occurs twice."""

    n: int

    def __call__(self, history: Tensor, log_probs: Tensor) -> None:
        """Forbid each token that has already followed the last n - 1 tokens."""
        if history.size(1) < self.n:
            return
        ngrams = history.unfold(1, self.n, 1)  # [N, t - n + 1, n]
        last = history[:, history.size(1) - (self.n - 1) :]  # [N, n - 1]
        repeats = (ngrams[:, :, :-1] == last[:, None]).all(-1)  # [N, t - n + 1]
        log_probs.scatter_add_(1, ngrams[:, :, -1], _forbidden(repeats))


@dataclass(frozen=True)
class NoLoops:
    """The same run of tokens occurs at most `times` times in a row ("the house of the house of the house of ..").

    Only runs with the beginning of a word count: a number such as 1000000, spelled in pieces, is no loop.
    """

    times: int
    word_starts: Tensor
    """[V] boolean, True where the piece begins a word."""

    def __call__(self, history: Tensor, log_probs: Tensor) -> None:
        """Forbid the first token of a run of 1 to 6 tokens that the row ends in `times` times."""
        for n in range(1, min(LONGEST_LOOP, history.size(1) // self.times) + 1):
            runs = history[:, -n * self.times :].reshape(-1, self.times, n)  # [N, times, n]
            last = runs[:, -1]
            loops = (runs == last[:, None]).flatten(1).all(1) & self.word_starts[last].any(1)
            log_probs.scatter_add_(1, last[:, :1], _forbidden(loops)[:, None])


@dataclass(frozen=True)
class Prefix:
    """Every output begins with these tokens."""

    tokens: Sequence[int]
    prefix_length: int = 0
    """The number of tokens at its beginning that the model does not choose, such as a language token: they have
    probability 1."""

    def __call__(self, history: Tensor, log_probs: Tensor) -> None:
        """Forbid everything but the next token of the prefix, as long as there is one."""
        position = history.size(1)
        if position < len(self.tokens):
            token = self.tokens[position]
            log_prob = 0.0 if position < self.prefix_length else log_probs[:, token].clone()
            log_probs.fill_(-torch.inf)
            log_probs[:, token] = log_prob


@dataclass(frozen=True)
class After:
    """A rule applies only from a length on, so that a given prefix may break it."""

    length: int
    rule: Rule

    def __call__(self, history: Tensor, log_probs: Tensor) -> None:
        """Apply the rule to rows of at least `length` tokens."""
        if history.size(1) >= self.length:
            self.rule(history, log_probs)


def _forbidden(mask: Tensor) -> Tensor:
    """Return a tensor to add to log-probabilities: -inf where the mask is True, 0 elsewhere; a GPU need not wait."""
    return torch.zeros_like(mask, dtype=torch.float32).masked_fill_(mask, -torch.inf)


def rules_for(
    options: DecodingOptions,
    never: Sequence[int],
    eos: int,
    word_starts: Tensor | None,
    device: torch.device,
    prefix: Sequence[int] = (),
    prefix_length: int = 0,
) -> list[Rule]:
    """Return the rules that `options` require.

    Args:
        options: the options of the search.
        never: ids of tokens that no output has.
        eos: id of the end token.
        word_starts: [V] boolean, True where a piece begins a word; without it, no rule prevents loops.
        device: the device of the search.
        prefix: ids that every output begins with, whatever the other rules say.
        prefix_length: the number of tokens of the prefix that cost nothing and do not count towards the minimum length.
    """
    rules: list[Rule] = [Never(upload(torch.tensor(sorted(set(never))), device))]
    if options.min_length:
        rules.append(MinLength(prefix_length + options.min_length, eos))
    if options.no_repeat_ngram:
        rules.append(NoRepeatNgram(options.no_repeat_ngram))
    if options.max_loops and word_starts is not None:
        rules.append(NoLoops(options.max_loops, upload(word_starts, device)))
    if prefix:
        return [Prefix(prefix, prefix_length), *map(partial(After, len(prefix)), rules)]
    return rules
