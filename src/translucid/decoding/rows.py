"""Hypotheses during a search, as rows of tensors, and the finished ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain
from typing import Self

import torch
import torch.nn.functional as F
from torch import Tensor

from translucid.decoding.hypothesis import Hypothesis, in_order


@dataclass(frozen=True)
class Rows:
    """N unfinished hypotheses, one a row, for B sentences. All have the same number of tokens t."""

    sentence: Tensor
    """[N] the sentence of each, in 0 .. B - 1."""
    slot: Tensor
    """[N] the slot of each among those of its sentence."""
    tokens: Tensor
    """[N, 1 + t], the start token in front."""
    token_log_probs: Tensor
    """[N, t]."""
    log_prob: Tensor
    """[N] their sum, unless constraints change the adjusted scores of tokens."""

    @classmethod
    def begin(cls, sentences: int, per_sentence: int, start: int, device: torch.device) -> Self:
        """Return `per_sentence` rows for every sentence, with the start token alone."""
        number = torch.arange(sentences * per_sentence, device=device)
        log_prob = torch.zeros(len(number), device=device)
        tokens = torch.full_like(number, start)[:, None]
        return cls(number // per_sentence, number % per_sentence, tokens, log_prob[:, None][:, :0], log_prob)

    def __len__(self) -> int:
        """Return N."""
        return len(self.sentence)

    @property
    def length(self) -> int:
        """The number of tokens t of each row, without the start token."""
        return self.token_log_probs.size(1)

    @property
    def history(self) -> Tensor:
        """[N, t] the tokens without the start token."""
        return self.tokens[:, 1:]

    @property
    def last(self) -> Tensor:
        """[N] the last token, which is the model's next input."""
        return self.tokens[:, -1]

    def select(self, rows: Tensor) -> Rows:
        """Reorder, repeat or drop hypotheses: the rows `rows` [M]."""
        return Rows(
            self.sentence[rows],
            self.slot[rows],
            self.tokens[rows],
            self.token_log_probs[rows],
            self.log_prob[rows],
        )

    def extended(self, token: Tensor, log_prob: Tensor, adjusted_score: Tensor | None = None) -> Rows:
        """Return the rows with another token [N], its log-probability [N] and its adjusted score [N]."""
        return replace(
            self,
            tokens=torch.cat([self.tokens, token[:, None]], 1),
            token_log_probs=torch.cat([self.token_log_probs, log_prob[:, None]], 1),
            log_prob=self.log_prob + (log_prob if adjusted_score is None else adjusted_score),
        )


class Finished:
    """The finished hypotheses of B sentences, as tensors until the end of the search."""

    def __init__(self, sentences: int, fallback: Finished | None = None) -> None:
        """Start without hypotheses; a sentence that gets none here takes those of `fallback`."""
        self.sentences, self.fallback = sentences, fallback
        self.chunks: list[tuple[Rows, Tensor]] = []

    def add(self, rows: Rows, score: Tensor) -> None:
        """Add hypotheses whose last token is the end token, with their scores after length penalty [N]."""
        self.chunks.append((rows, score))

    def best(self, n: int) -> list[list[Hypothesis]]:
        """Return up to n different hypotheses for each sentence, the best first, of equal ones the earlier first."""
        by_sentence = self._by_sentence()
        if self.fallback:
            for hypotheses, alternatives in zip(by_sentence, self.fallback._by_sentence(), strict=True):
                if not hypotheses:
                    hypotheses.update(alternatives)
        return [in_order(hypotheses.values())[:n] for hypotheses in by_sentence]

    def _by_sentence(self) -> list[dict[tuple[int, ...], Hypothesis]]:
        """Return the first hypothesis with each sequence of tokens, for each sentence."""
        hypotheses: list[dict[tuple[int, ...], Hypothesis]] = [{} for _ in range(self.sentences)]
        for sentence, hypothesis in self._on_host():
            hypotheses[sentence].setdefault(tuple(hypothesis.tokens), hypothesis)
        return hypotheses

    def _on_host(self) -> Iterator[tuple[int, Hypothesis]]:
        """Yield all hypotheses, each with its sentence; they are read from a GPU in one copy."""
        if not self.chunks:
            return
        longest = max(rows.length for rows, _ in self.chunks)
        integers, floats = [], []
        for rows, score in self.chunks:
            padding = 0, longest - rows.length
            integers.append(F.pad(torch.cat([rows.sentence[:, None], rows.tokens], 1), padding))
            floats.append(F.pad(torch.cat([score[:, None], rows.log_prob[:, None], rows.token_log_probs], 1), padding))
        numbers = torch.cat(integers).int()  # [M, longest + 2]
        # The float32 numbers are copied as the integers with the same bits.
        packed = torch.cat([numbers, torch.cat(floats).view(torch.int32)], 1).cpu()
        sentences, tokens = packed[:, 0].tolist(), packed[:, 2 : longest + 1].tolist()
        figures = packed[:, longest + 2 :].contiguous().view(torch.float32).tolist()
        lengths = chain.from_iterable([rows.length] * len(rows) for rows, _ in self.chunks)
        for sentence, ids, (score, log_prob, *log_probs), length in zip(
            sentences, tokens, figures, lengths, strict=True
        ):
            yield sentence, Hypothesis(ids[: length - 1], log_prob, score, log_probs[:length])


def indices_by_kind(kind: Tensor, count: int, *flags: Tensor) -> tuple[list[Tensor], list[bool]]:
    """Return the indices of each kind, in order, and the values of the flags, waiting for a GPU once.

    Args:
        kind: [M] whole numbers; those that are not in 0 .. count - 1 are left out.
        count: the number of kinds.
        flags: boolean tensors, each [].
    """
    if kind.device.type == "cpu":  # sorting would take longer
        indices = [(kind == number).nonzero()[:, 0] for number in range(count)]
        return indices, [bool(flag) for flag in flags]
    sizes = (kind == torch.arange(count, device=kind.device)[:, None]).sum(1)
    numbers = torch.cat([sizes, *[flag[None].long() for flag in flags]]).tolist()
    remainder = len(kind) - sum(numbers[:count])
    groups = kind.argsort(stable=True).split([*numbers[:count], remainder])
    return list(groups[:count]), [bool(number) for number in numbers[count:]]


def known_empty(mask: Tensor) -> bool:
    """Whether a mask is known to have no True without waiting for a GPU."""
    return mask.device.type == "cpu" and not mask.any()
