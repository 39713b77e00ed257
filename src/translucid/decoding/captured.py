"""Beam search in tensors of fixed shapes, so that a CUDA graph launches a whole step (`kernels/cuda_graph.py`).

It finds what `beam_search` finds. Hypotheses that have ended keep their rows, with probability 0. Every `EVERY` steps,
the host reads these steps in one copy, and whether sentences are left. Then the search may continue in tensors of
another shape: with fewer sentences when most have ended, with more positions when outputs become longer. Shapes are
rounded up, so that a few graphs serve all batches. Greedy search is a beam of 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from threading import Lock
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bitext.cancellation import between_steps
from translucid.attention.points import any_handler
from translucid.decoding.beam import PruningBound, likeliest
from translucid.decoding.decoding_options import LONGEST_LOOP, DecodingOptions
from translucid.decoding.hypothesis import Hypothesis, in_order
from translucid.decoding.problem import (
    After,
    MinLength,
    Never,
    NoLoops,
    Prefix,
    Problem,
    Rule,
    length_penalties,
    refuse_unless_finite,
)
from translucid.kernels.cuda_graph import Captured
from translucid.kernels.upload import upload
from translucid.models.protocol import Memory, SequenceModel, TreeState

EVERY = 8
"""The number of steps after which the host reads whether sentences are left."""
LENGTH = 32
"""The number of positions that a search first has memory for, a multiple of `EVERY`. It doubles when they are used."""
FEW_ROWS = 64
"""So few rows are not made fewer, since a step would hardly be faster."""
KEPT_BYTES = 4 << 30
"""The tensors of the shapes that were used last are kept, up to this size."""
FIXED_RULES = Never, MinLength, NoLoops
"""Rules that need no history of growing length."""


def rounded_up(n: int, least: int = 1) -> int:
    """Return the smallest of 1, 2, 3, 4, 6, 8, 12, 16, 24, .. times `least` that is at least n."""
    size = least
    while size < n:
        size *= 2
    return size * 3 // 4 if size >= 4 * least and size * 3 // 4 >= n else size


class Shape(NamedTuple):
    """What all tensors of a search have in common."""

    sentences: int
    """B."""
    source: int
    """S, the number of source positions."""
    length: int
    """L, the number of target positions."""


class CapturedSearch:
    """Beam searches of one model, which keep their tensors and graphs for the next batches; threads take turns."""

    def __init__(self, model: SequenceModel) -> None:
        """Search with a model in evaluation mode."""
        self.model = model
        self._steps: dict[tuple[str, int, Shape], CapturedStep] = {}
        """By options, length of the opening and shape, those used last at the end."""
        self._lock = Lock()

    def supports(self, problem: Problem) -> bool:
        """Whether the shapes can be fixed: not with shortlists, or with rules that read the whole history."""
        if problem.model is not self.model or not self.model.has_trees or any_handler():
            return False
        _, rules = _opening_and_rules(problem)
        return problem.candidates is None and all(isinstance(rule, FIXED_RULES) for rule in rules)

    def search(self, problem: Problem, options: DecodingOptions) -> list[list[Hypothesis]]:
        """Return up to `options.nbest` outputs of each sentence, the best first.

        Raises:
            UserError: the model's log-probabilities are not finite.
            Cancelled: the search was cancelled.
        """
        with self._lock:
            return self._search(problem, options)

    def _search(self, problem: Problem, options: DecodingOptions) -> list[list[Hypothesis]]:
        sentences, source = problem.memory.mask.shape
        shape = Shape(rounded_up(sentences), rounded_up(source, 16), self._length(1))
        position, recorded = 0, RecordedSteps()
        step = self._step(shape, problem, options)
        step.take(Beams.begin(problem, problem.memory, problem.limits, options, 0), np.arange(sentences), 0)
        while True:
            count = min(EVERY, shape.length - position)
            for _ in range(count):
                between_steps()
                step()
            position += count
            rows = recorded.read(step, count)
            if not len(rows):
                return [in_order(hypotheses)[: options.nbest] for hypotheses in recorded.hypotheses(sentences)]
            before, left = step, rounded_up(len(rows))
            if 2 * left <= shape.sentences and shape.sentences * options.beam > FEW_ROWS:
                shape = shape._replace(sentences=left)
            shape = shape._replace(length=self._length(position + 1))
            if shape != before.shape:
                step = self._step(shape, problem, options)
                step.take(before.beams, rows, position)
                recorded.keep(rows)

    def _length(self, positions: int) -> int:
        """Return the length of tensors with room for so many positions."""
        length = LENGTH
        while length < positions:
            length *= 2
        return min(length, self.model.max_length or length)

    def _step(self, shape: Shape, problem: Problem, options: DecodingOptions) -> CapturedStep:
        """Return the step in tensors of this shape."""
        opening, _ = _opening_and_rules(problem)
        key = repr(options), len(opening), shape
        step = self._steps.pop(key, None) or CapturedStep(shape, problem, options, self._steps.values())
        self._steps[key] = step
        size = sum(kept.beams.size for kept in self._steps.values())
        for oldest in list(self._steps)[:-2]:
            if size > KEPT_BYTES:
                size -= self._steps.pop(oldest).beams.size
        return step


def _opening_and_rules(problem: Problem) -> tuple[Sequence[int], list[Rule]]:
    """Return the tokens of probability 1 that every output begins with, and the rules that hold from there on.

    A beginning that has a probability stays a rule, which no captured step knows.
    """
    opening: Sequence[int] = ()
    rules: list[Rule] = []
    for rule in problem.rules:
        if isinstance(rule, Prefix) and rule.prefix_length == len(rule.tokens):
            opening = rule.tokens
        elif isinstance(rule, After):
            rules.append(rule.rule)
        else:
            rules.append(rule)
    return opening, rules


@dataclass(frozen=True)
class Beams:
    """The K hypotheses of each of B sentences between two steps, in memory that does not move."""

    state: TreeState
    limits: Tensor
    """[B] the maximum number of tokens of each output."""
    longest_penalty: Tensor
    """[B, 1] the length penalty of an output of that length."""
    log_prob: Tensor
    """[B, K], -inf for hypotheses that have ended."""
    last: Tensor
    """[B, K] the last tokens."""
    history: Tensor
    """[B, K, W] the last W tokens, as many as the rules read. Padding, which no output has, is before the first."""
    opening: Tensor
    """[B, P] the tokens that every output begins with, such as a language token."""
    width: Tensor
    """[B], see `PruningBound`."""
    scores: Tensor
    """[B, n]"""

    @classmethod
    def begin(cls, problem: Problem, memory: Memory, limits: Tensor, options: DecodingOptions, length: int) -> Beams:
        """Return the hypotheses of the sentences of a memory before their first tokens, with room for L positions."""
        sentences, beam, device, model = len(memory.mask), options.beam, memory.mask.device, problem.model
        tokens, rules = _opening_and_rules(problem)
        window = max([LONGEST_LOOP * rule.times for rule in rules if isinstance(rule, NoLoops)], default=0)
        bound = PruningBound.begin(sentences, beam, options.nbest, device)
        log_prob = torch.full((sentences, beam), -torch.inf, device=device)
        log_prob[:, 0] = 0
        opening = upload(torch.tensor(tokens, dtype=torch.long), device)
        return cls(
            state=model.start_trees(memory, beam, length),
            limits=limits,
            longest_penalty=problem.penalties[limits + 1][:, None],
            log_prob=log_prob,
            last=torch.full((sentences, beam), model.bos, device=device),
            history=torch.full((sentences, beam, window), model.pad, device=device),
            opening=opening.expand(sentences, -1).contiguous(),
            width=bound.width,
            scores=bound.scores,
        )

    @property
    def tensors(self) -> list[Tensor]:
        """Everything that has a row for each sentence."""
        tensors = [self.limits, self.longest_penalty, self.log_prob, self.last, self.history, self.opening]
        return [*tensors, self.width, self.scores, *self.state.tensors]

    @property
    def size(self) -> int:
        """The size of the tensors in bytes."""
        return sum(tensor.nbytes for tensor in self.tensors)

    def overwrite(self, other: Beams, rows: Tensor, position: int) -> None:
        """Continue the sentences `rows` of other tensors, which have at most as many source and target positions.

        Rows that are left over have no hypotheses, and source positions that are left over are masked.
        """
        for memory, tensor in zip(self.tensors, other.tensors, strict=True):
            memory.fill_(-torch.inf if memory is self.log_prob else 0)
            memory[tuple(map(slice, (len(rows), *tensor.shape[1:])))] = tensor.index_select(0, rows)
        self.state.tree.position.fill_(position)


class Record(NamedTuple):
    """What the host reads of a step for each of K candidates of B sentences, as numbers of 32 bits."""

    parent: NDArray[np.int32]
    """[B, K] the slot of the hypothesis that it continues."""
    token: NDArray[np.int32]
    ends: NDArray[np.int32]
    """1 where it has ended."""
    gain: NDArray[np.int32]
    """The log-probability of the token, float32."""
    total: NDArray[np.int32]
    """The log-probability of the hypothesis, float32."""
    score: NDArray[np.int32]
    """The same after the length penalty, float32."""


class _Rows(NamedTuple):
    """The N = B K rows of a step, for the rules."""

    sentence: Tensor
    history: Tensor
    length: Tensor


@dataclass(frozen=True)
class _MinLength:
    """`MinLength` at a position that is a tensor [1]."""

    rule: MinLength
    position: Tensor

    def __call__(self, history: Tensor, log_probs: Tensor) -> None:
        """Forbid the end token while the rows are shorter."""
        end = log_probs[:, self.rule.eos]
        end.masked_fill_(self.position < self.rule.length, -torch.inf)


@dataclass(frozen=True)
class _Opening:
    """`Prefix` at a position that is a tensor [1]; it must be the last rule."""

    tokens: Tensor
    """[B, P]"""
    position: Tensor

    def __call__(self, history: Tensor, log_probs: Tensor) -> None:
        """Give probability 1 to the next token of the opening, as long as there is one."""
        length = self.tokens.size(1)
        token = self.tokens.index_select(1, self.position.clamp(max=length - 1))  # [B, 1]
        token = token.repeat_interleave(len(log_probs) // len(token), 0, output_size=len(log_probs))  # [N, 1]
        certain = torch.full_like(log_probs, -torch.inf).scatter_(1, token, 0)
        log_probs.copy_(torch.where(self.position < length, certain, log_probs))


class CapturedStep:
    """The step of a search in tensors of one shape."""

    def __init__(
        self, shape: Shape, problem: Problem, options: DecodingOptions, others: Iterable[CapturedStep] = ()
    ) -> None:
        """Allocate the tensors, for problems with the model, the rules and the options of this one.

        `others`: steps that may share the memory of their intermediate results.
        """
        self.shape = shape
        states, mask = problem.memory.states, problem.memory.mask
        size = shape.sentences, shape.source
        memory = Memory(states.new_zeros(*size, states.size(2)), mask.new_zeros(size))
        limits = problem.limits.new_zeros(shape.sentences)
        beams = self.beams = Beams.begin(problem, memory, limits, options, shape.length)
        position, device = beams.state.tree.position, mask.device
        opening, rules = _opening_and_rules(problem)
        for number, rule in enumerate(rules):
            if isinstance(rule, MinLength):
                rules[number] = _MinLength(rule, position)
        if opening:
            rules.append(_Opening(beams.opening, position))
        penalties = length_penalties(shape.length + 1, options.length_penalty, device)
        self._problem = replace(problem, memory=memory, limits=beams.limits, penalties=penalties, rules=rules)
        self._row = torch.arange(shape.sentences * options.beam, device=device).view_as(beams.last)
        self.records = torch.zeros(EVERY, len(Record._fields), *beams.last.shape, dtype=torch.int32, device=device)
        self.finite = torch.ones((), dtype=torch.bool, device=device)
        shared: Captured[None] | None = next((other._captured for other in others if other._captured.is_captured), None)
        self._captured: Captured[None] = Captured(self._compute, device, shared)

    def take(self, beams: Beams, rows: NDArray[np.int64], position: int) -> None:
        """Continue the sentences `rows` of tensors of another shape at a position."""
        self.beams.overwrite(beams, upload(torch.from_numpy(rows), self.finite.device), position)
        self.finite.fill_(True)

    def __call__(self) -> None:
        """Make a step."""
        self._captured()

    def _compute(self) -> None:
        beams, problem = self.beams, self._problem
        (sentences, beam), position = beams.last.shape, beams.state.tree.position
        logits, state = problem.model.step(beams.last.flatten(), beams.state)
        rows = _Rows(self._row.flatten() // beam, beams.history.flatten(0, 1), position)
        log_probs, finite = problem.log_probs(rows, logits)
        gains, tokens = likeliest(log_probs, beam)  # [N, k]
        totals = (beams.log_prob.view(-1, 1) + gains).reshape(sentences, -1)  # [B, K k]
        # Of equal ones that of the earlier slot, then the earlier one.
        total, candidate = (x[:, :beam] for x in totals.sort(dim=1, descending=True, stable=True))
        gain, token = (x.reshape(sentences, -1).gather(1, candidate) for x in (gains, tokens))
        parent = candidate // gains.size(1)  # [B, K]

        bound = PruningBound(beams.width, beams.scores)
        viable = (total > -torch.inf) & (self._row[0] < bound.width[:, None])
        viable &= total / beams.longest_penalty >= bound.worst
        ends = viable & (token == problem.model.eos)
        score = total / problem.penalties.index_select(0, position + 1)
        bound = bound.after(ends, score)
        live = viable & ~ends & (total / beams.longest_penalty >= bound.worst)

        record = [parent.int(), token.int(), ends.int(), *(x.view(torch.int32) for x in (gain, total, score))]
        self.records.index_copy_(0, position % EVERY, torch.stack(record)[None])
        self.finite.logical_and_(finite)
        parent_row = (self._row[:, :1] + parent).flatten()
        history = beams.history.flatten(0, 1).index_select(0, parent_row)
        history = torch.cat([history, token.view(-1, 1)], 1)[:, 1:]
        for memory, value in (
            (beams.log_prob, total.masked_fill(~live, -torch.inf)),
            (beams.last, token),
            (beams.history, history.view_as(beams.history)),
            (beams.width, bound.width),
            (beams.scores, bound.scores),
        ):
            memory.copy_(value)
        beams.state.follow(state, parent_row)


class RecordedSteps:
    """The steps of a search as the host has read them, and the outputs that have ended in them."""

    def __init__(self) -> None:
        """Start before the first step."""
        self._records: list[Record] = []
        self._kept: dict[int, NDArray[np.int64]] = {}
        """By the number of a step before which the shape changed, the rows of the step before that were kept."""

    def read(self, step: CapturedStep, count: int) -> NDArray[np.int64]:
        """Read the last `count` steps; return the rows of the sentences that are left.

        Raises:
            UserError: the model's log-probabilities are not finite.
        """
        shape = len(Record._fields), *step.beams.last.shape
        alive = (step.beams.log_prob > -torch.inf).any(1)
        packed = torch.cat([step.finite.int()[None], alive.int(), step.records[:count].flatten()]).cpu().numpy()
        refuse_unless_finite(bool(packed[0]))
        for record in packed[1 + len(alive) :].reshape(count, *shape):
            self._records.append(Record(*record))
        return packed[1 : 1 + len(alive)].nonzero()[0]

    def keep(self, rows: NDArray[np.int64]) -> None:
        """Note that the next steps have these rows of the steps before."""
        self._kept[len(self._records)] = rows

    def hypotheses(self, sentences: int) -> list[list[Hypothesis]]:
        """Return the outputs of each sentence, those that ended first at the beginning."""
        beam, steps = self._records[0].token.shape[1], len(self._records)
        counts = [int(record.ends.sum()) for record in self._records]
        first = np.cumsum([0, *counts])  # the outputs that end in step t are first[t] .. first[t + 1] - 1
        outputs = first[-1]
        row, tokens = np.zeros(outputs, np.int64), np.zeros((outputs, steps), np.int64)
        gains, figures = np.zeros((outputs, steps), np.float32), np.zeros((outputs, 2), np.float32)
        # From the last step to the first, all outputs together follow their parents.
        for t in reversed(range(steps)):
            record, ending, active = self._records[t], slice(first[t], first[t + 1]), slice(first[t], outputs)
            row[ending] = record.ends.ravel().nonzero()[0]
            for column, values in enumerate((record.total, record.score)):
                figures[ending, column] = values.ravel().view(np.float32)[row[ending]]
            tokens[active, t] = record.token.ravel()[row[active]]
            gains[active, t] = record.gain.ravel().view(np.float32)[row[active]]
            sentence, slot = row[active] // beam, record.parent.ravel()[row[active]]
            if t in self._kept:
                sentence = self._kept[t][sentence]
            row[active] = sentence * beam + slot
        lists: list[list[Hypothesis]] = [[] for _ in range(sentences)]
        lengths = np.repeat(np.arange(steps), counts)  # without the end token
        columns = [column.tolist() for column in (row // beam, lengths, tokens, figures, gains)]
        for sentence, length, ids, (total, score), log_probs in zip(*columns, strict=True):
            lists[sentence].append(Hypothesis(ids[:length], total, score, log_probs[: length + 1]))
        return lists
