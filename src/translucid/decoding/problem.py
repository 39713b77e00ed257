"""The input of every search: encoded sentences, limits, penalties and rules; and the step that all searches share.

A rule forbids tokens. It is called once a step as rule(history [N, t], log_probs [N, V]) and sets the log-probabilities
of forbidden tokens to -inf. `history` has the tokens of each row so far, without the start token. A rule processes all
rows at once. Only `MinLength` forbids the end token; a row without any other token may always end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol, TypeAlias

import torch
from torch import Tensor

from bitext.cancellation import between_steps
from translucid.decoding.decoding_options import LONGEST_LOOP, DecodingOptions, length_penalty
from translucid.decoding.hypothesis import Hypothesis
from translucid.decoding.rows import Rows
from translucid.ground.errors import UserError
from translucid.kernels.upload import upload
from translucid.models.protocol import Memory, SequenceModel, State


class RowsOfStep(Protocol):
    """What the log-probabilities of N hypotheses depend on apart from the logits."""

    @property
    def sentence(self) -> Tensor:
        """[N] the sentence of each."""

    @property
    def history(self) -> Tensor:
        """[N, t] the tokens of each, or the last t of them."""

    @property
    def length(self) -> int | Tensor:
        """The number of their tokens, which may be a tensor [1]."""


@dataclass(frozen=True)
class Problem:
    """B sentences for which outputs are searched."""

    model: SequenceModel
    memory: Memory
    """The encoded sentences."""
    limits: Tensor
    """[B] the maximum number of tokens of each output, without the end token."""
    penalties: Tensor
    """[longest limit + 2] float32, the length penalty by length, end token included."""
    rules: Sequence[Rule]
    """The rules that forbid tokens."""
    candidates: Tensor | None = None
    """[B, V] boolean, the tokens that share the probability for each sentence; None for all."""

    def begin(self, per_sentence: int = 1) -> tuple[Rows, State]:
        """Return `per_sentence` empty rows for every sentence, and the model's state before their start tokens."""
        rows = Rows.begin(len(self.limits), per_sentence, self.model.bos, self.limits.device)
        state: State = self.model.start(self.memory)
        return rows, state if per_sentence == 1 else state.select(rows.sentence)

    def predict(self, rows: Rows, state: State) -> tuple[Tensor, State, Tensor]:
        """Return the log-probabilities of the next token of each row.

        Args:
            rows: the N hypotheses so far.
            state: the model's state before their last tokens.

        Returns:
            The model's log-probabilities [N, V] in float32 (forbidden tokens have -inf, the rest is not rescaled); the
            state after the last tokens; and whether the output is finite, boolean [], which on a GPU the caller
            passes to `refuse_unless_finite` at the next synchronization. A row at its limit, or without any token that
            the rules allow, has only the end token.

        Raises:
            UserError: the model's log-probabilities are not finite.
            Cancelled: the search was cancelled.
        """
        between_steps()
        logits, state = self.model.step(rows.last, state)
        log_probs, finite = self.log_probs(rows, logits)
        return log_probs, state, finite

    def log_probs(self, rows: RowsOfStep, logits: Tensor) -> tuple[Tensor, Tensor]:
        """Return what `predict` does but the state, given the model's logits [N, V] for the next token of each row.

        Raises:
            UserError: the logits are not finite.
        """
        if self.candidates is not None:
            logits = logits.masked_fill(~self.candidates[rows.sentence], -torch.inf)
        log_probs = logits.float().log_softmax(-1)
        end = log_probs[:, self.model.eos].clone()
        for rule in self.rules:
            rule(rows.history, log_probs)
        best = log_probs.amax(-1)
        stop = (best == -torch.inf) | (self.limits[rows.sentence] <= rows.length)
        _leave_only_the_end(log_probs, stop, end, self.model.eos)
        # One NaN among the logits makes the whole row NaN, so the best of each row shows it.
        finite = torch.where(stop, end, best).isfinite().all()
        if finite.device.type == "cpu":
            refuse_unless_finite(bool(finite))
        return log_probs, finite

    def rescored(self, hypotheses: Sequence[Hypothesis]) -> list[Hypothesis]:
        """Return hypotheses with the model's own log-probabilities, after a search that added up other values."""
        penalties, rescored = self.penalties.tolist(), []
        for hypothesis in hypotheses:
            total = sum(hypothesis.token_log_probabilities)
            penalty = penalties[len(hypothesis.token_log_probabilities)]
            rescored.append(replace(hypothesis, log_probability=total, score=total / penalty))
        return rescored


def refuse_unless_finite(finite: bool) -> None:
    """Reject a model whose log-probabilities are not finite.

    Raises:
        UserError: they are not.
    """
    if not finite:
        raise UserError(
            "the model's predictions are not numbers (NaN or infinite)",
            fix="Its weights are damaged or its training has diverged; use an earlier checkpoint.",
        )


def _leave_only_the_end(log_probs: Tensor, stop: Tensor, end: Tensor, eos: int) -> None:
    """Set all log-probabilities but the end token's, `end` [N], to -inf in rows where `stop` [N], in place."""
    if log_probs.device.type == "cpu":  # changing a few rows is faster than masking all; a GPU would have to be awaited
        (stopped,) = stop.nonzero(as_tuple=True)
        log_probs[stopped] = -torch.inf
        log_probs[stopped, eos] = end[stopped]
    else:
        log_probs.masked_fill_(stop[:, None], -torch.inf)
        log_probs[:, eos] = torch.where(stop, end, log_probs[:, eos])


def length_penalties(longest: int, alpha: float, device: torch.device) -> Tensor:
    """Return `length_penalty` of the lengths 0 .. longest, float32."""
    return upload(length_penalty(torch.arange(longest + 1, dtype=torch.float64), alpha).float(), device)


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
