"""Hypotheses while they are searched for, as rows of tensors, and where they go when they are finished."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import torch
from torch import Tensor

from translucid.decoding.hypothesis import Hypothesis


@dataclass(frozen=True)
class Rows:
    """N hypotheses in the making, one a row, for B sentences. All have the same number of tokens t."""

    sentence: Tensor
    """[N] the sentence that each belongs to, in 0 .. B - 1."""
    slot: Tensor
    """[N] its place among those of its sentence."""
    tokens: Tensor
    """[N, 1 + t], the start token in front."""
    token_log_probs: Tensor
    """[N, t]."""
    log_prob: Tensor
    """[N] their sum, but where constraints cost something else."""

    @classmethod
    def begin(cls, sentences: int, each: int, start: int, device: torch.device) -> Self:
        """Return `each` rows for every sentence, which have the start token and nothing else."""
        number = torch.arange(sentences * each, device=device)
        log_prob = torch.zeros(len(number), device=device)
        tokens = torch.full_like(number, start)[:, None]
        return cls(number // each, number % each, tokens, log_prob[:, None][:, :0], log_prob)

    def __len__(self) -> int:
        """Return N."""
        return len(self.sentence)

    @property
    def length(self) -> int:
        """How many tokens each has, the start token not counted: t."""
        return self.token_log_probs.size(1)

    @property
    def history(self) -> Tensor:
        """[N, t] the tokens without the start token."""
        return self.tokens[:, 1:]

    @property
    def last(self) -> Tensor:
        """[N] the last token, which the model has not been fed yet."""
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

    def extended(self, token: Tensor, log_prob: Tensor, price: Tensor | None = None) -> Rows:
        """Return the rows one token [N] longer, which has this log-probability [N], and costs this [N] if not that."""
        return replace(
            self,
            tokens=torch.cat([self.tokens, token[:, None]], 1),
            token_log_probs=torch.cat([self.token_log_probs, log_prob[:, None]], 1),
            log_prob=self.log_prob + (log_prob if price is None else price),
        )


class Finished:
    """The finished hypotheses of B sentences. They stay tensors until the end of the search."""

    def __init__(self, sentences: int) -> None:
        self.sentences = sentences
        self.chunks: list[tuple[Rows, Tensor]] = []

    def add(self, rows: Rows, score: Tensor) -> None:
        """Add hypotheses whose last token is the end token, with their scores after length penalty [N]."""
        self.chunks.append((rows, score))

    def or_else(self, others: Finished) -> Finished:
        """Add those of others for sentences that have none here."""
        have = {sentence for rows, _ in self.chunks for sentence in rows.sentence.tolist()} if others.chunks else set()
        for rows, score in others.chunks:
            without = [i for i, sentence in enumerate(rows.sentence.tolist()) if sentence not in have]
            self.add(rows.select(torch.tensor(without, dtype=torch.long, device=score.device)), score[without])
        return self

    def best(self, n: int) -> list[list[Hypothesis]]:
        """Return up to n different hypotheses for each sentence, best first, of equal ones the earlier first."""
        found: list[dict[tuple[int, ...], Hypothesis]] = [{} for _ in range(self.sentences)]
        for rows, scores in self.chunks:
            columns = rows.sentence, rows.tokens[:, 1:-1], rows.log_prob, scores, rows.token_log_probs
            for sentence, tokens, log_prob, score, token_log_probs in zip(*(x.tolist() for x in columns), strict=True):
                found[sentence].setdefault(tuple(tokens), Hypothesis(tokens, log_prob, score, token_log_probs))
        return [sorted(each.values(), key=lambda h: -h.score)[:n] for each in found]
