"""Finished hypotheses, collected step by step while the rows that they came from leave the batch."""

from __future__ import annotations

from torch import Tensor

from translucid.decoding.hypothesis import Hypothesis


class Finished:
    """The finished hypotheses of B sentences. They stay tensors until the end of the search."""

    def __init__(self, sentences: int) -> None:
        self.sentences = sentences
        self.chunks: list[tuple[Tensor, ...]] = []

    def add(self, sentence: Tensor, tokens: Tensor, token_log_probs: Tensor, log_prob: Tensor, score: Tensor) -> None:
        """Add hypotheses that end at the same step.

        Args:
            sentence: [n] where each belongs.
            tokens: [n, t] without end token.
            token_log_probs: [n, t + 1] with the end token's.
            log_prob: [n] their sum.
            score: [n] after length penalty.
        """
        self.chunks.append((sentence, tokens, token_log_probs, log_prob, score))

    def best(self, n: int) -> list[list[Hypothesis]]:
        """Return up to n different hypotheses for each sentence, best first, of equal ones the earlier first."""
        found: list[dict[tuple[int, ...], Hypothesis]] = [{} for _ in range(self.sentences)]
        for chunk in self.chunks:
            for sentence, tokens, token_log_probs, log_prob, score in zip(*(x.tolist() for x in chunk), strict=True):
                found[sentence].setdefault(tuple(tokens), Hypothesis(tokens, log_prob, score, token_log_probs))
        return [sorted(each.values(), key=lambda h: -h.score)[:n] for each in found]
