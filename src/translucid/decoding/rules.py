"""What an output may not say: small rules handed to every search.

A rule is called once a step as rule(history [N, t], log_probs [N, V]) and writes -inf over the tokens that may not
come next. `history` holds the tokens of each row so far, without the start token. Rules run on all rows at once.

No rule forbids the end token but `MinLength`; a row left with nothing else may always end (see `problem.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import torch
from torch import Tensor

from translucid.decoding.decoding_options import DecodingOptions
from translucid.decoding.limits import LONGEST_LOOP
from translucid.kernels.transfer import upload

Rule: TypeAlias = Callable[[Tensor, Tensor], None]


@dataclass(frozen=True)
class Never:
    """Tokens that are never produced, such as padding, start and unknown."""

    tokens: Tensor
    """[n] ids."""

    def __call__(self, history: Tensor, log_probs: Tensor) -> None:
        """Forbid `tokens` in every row."""
        log_probs.index_fill_(1, self.tokens, -torch.inf)


@dataclass(frozen=True)
class MinLength:
    """No end before so many tokens."""

    length: int
    eos: int

    def __call__(self, history: Tensor, log_probs: Tensor) -> None:
        """Forbid the end token while the rows are shorter than `length`."""
        if history.size(1) < self.length:
            log_probs[:, self.eos] = -torch.inf


@dataclass(frozen=True)
class NoRepeatNgram:
    """No run of n tokens comes twice."""

    n: int

    def __call__(self, history: Tensor, log_probs: Tensor) -> None:
        """Forbid each token that has already followed the last n - 1 tokens."""
        if history.size(1) < self.n:
            return
        ngrams = history.unfold(1, self.n, 1)  # [N, t - n + 1, n]
        last = history[:, history.size(1) - (self.n - 1) :]  # [N, n - 1]
        again = (ngrams[:, :, :-1] == last[:, None]).all(-1)  # [N, t - n + 1]
        log_probs.scatter_add_(1, ngrams[:, :, -1], _forbidden(again))


@dataclass(frozen=True)
class NoLoops:
    """The same run of tokens does not stand too often in a row ("the house of the house of the house of ..").

    Only runs in which a word begins count: a number such as 1000000, spelled in pieces, is no loop.
    """

    times: int
    word_starts: Tensor
    """[V] boolean, True where the piece begins a word."""

    def __call__(self, history: Tensor, log_probs: Tensor) -> None:
        """Forbid the first token of a run of 1 to 6 tokens that has just stood there `times` times."""
        for n in range(1, min(LONGEST_LOOP, history.size(1) // self.times) + 1):
            runs = history[:, -n * self.times :].reshape(-1, self.times, n)  # [N, times, n]
            last = runs[:, -1]
            loops = (runs == last[:, None]).flatten(1).all(1) & self.word_starts[last].any(1)
            log_probs.scatter_add_(1, last[:, :1], _forbidden(loops)[:, None])


@dataclass(frozen=True)
class Prefix:
    """Every output begins with these tokens."""

    tokens: Sequence[int]
    told: int = 0
    """So many of them are no choice of the model's, such as the target language, and have probability 1."""

    def __call__(self, history: Tensor, log_probs: Tensor) -> None:
        """Forbid everything but the next token of the prefix, as long as there is one."""
        place = history.size(1)
        if place < len(self.tokens):
            token = self.tokens[place]
            kept = 0.0 if place < self.told else log_probs[:, token].clone()
            log_probs.fill_(-torch.inf)
            log_probs[:, token] = kept


def _forbidden(mask: Tensor) -> Tensor:
    """Return -inf where the mask is True, else 0: what is added to log-probabilities, without asking where that is."""
    return torch.zeros_like(mask, dtype=torch.float32).masked_fill_(mask, -torch.inf)


def rules_for(
    options: DecodingOptions,
    never: Sequence[int],
    eos: int,
    word_starts: Tensor | None,
    device: torch.device,
    prefix: Sequence[int] = (),
    told: int = 0,
) -> list[Rule]:
    """Return the rules that `options` ask for.

    Args:
        options: all about the search.
        never: ids of tokens that are never produced.
        eos: id of the end token.
        word_starts: [V] boolean, True where a piece begins a word; without it, loops are not looked for.
        device: where the search runs.
        prefix: what every output begins with, whatever the other rules say.
        told: tokens of the prefix that cost nothing and have no part in the shortest length.
    """
    rules: list[Rule]
    if prefix:
        rules = rules_for(options, never, eos, word_starts, device, told=told)
        return [Prefix(prefix, told), *_after(len(prefix), rules)]
    rules = [Never(upload(torch.tensor(sorted(set(never))), device))]
    if options.min_length:
        rules.append(MinLength(told + options.min_length, eos))
    if options.no_repeat_ngram:
        rules.append(NoRepeatNgram(options.no_repeat_ngram))
    if options.max_loops and word_starts is not None:
        rules.append(NoLoops(options.max_loops, upload(word_starts, device)))
    return rules


def _after(length: int, rules: Sequence[Rule]) -> list[Rule]:
    """Let rules hold only from a length on, so that a given beginning may break them."""

    def late(rule: Rule) -> Rule:
        def check(history: Tensor, log_probs: Tensor) -> None:
            if history.size(1) >= length:
                rule(history, log_probs)

        return check

    return [late(rule) for rule in rules]
