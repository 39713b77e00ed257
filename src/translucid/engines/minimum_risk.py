"""Minimum Bayes risk: choose the candidate that is most similar to all the others, by chrF.

    argmax_y  sum_y' p(y' | x) chrF(y, y')

(Kumar and Byrne 2004, section 2; Eikema and Aziz 2020, arXiv 2005.10283, section 7). For an n-best list, p is the
model's probability, normalized over the candidates. For N random samples, without duplicates, each candidate has the
weight p / (1 - (1 - p)^N): its probability divided by that of being among the samples (Horvitz and Thompson 1952). This
makes the sum an unbiased estimate of the sum over all translations, if the samples come from the unmodified model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from translucid.data.text_pipeline import Piece, TextPipeline
from translucid.decoding.decoding_options import DecodingOptions
from translucid.decoding.hypothesis import Hypothesis, in_order
from translucid.evaluation.metrics import pairwise_chrf


@dataclass(frozen=True)
class MinimumRisk:
    """Ranks candidates by their expected chrF, 0 to 100, which becomes their score."""

    needs_beam: ClassVar[bool] = False
    pipeline: TextPipeline
    candidates: int
    """The number of candidates for each sentence: the size of the n-best list, or of the random sample."""

    def __str__(self) -> str:
        return f"minimum Bayes risk over {self.candidates}"

    def widened(self, options: DecodingOptions) -> DecodingOptions:
        """Return options that find enough candidates: a beam as wide as their number, unless they are sampled."""
        beam = options.beam if options.sample else max(options.beam, self.candidates)
        return options.model_copy(update={"beam": beam, "nbest": max(self.candidates, options.nbest)})

    def __call__(
        self, pieces: Sequence[Piece], nbest_lists: Sequence[list[Hypothesis]], options: DecodingOptions
    ) -> list[list[Hypothesis]]:
        """Return the hypotheses of each piece with their expected chrF as the score, the best first."""
        return [self._ranked(piece, nbest, options) for piece, nbest in zip(pieces, nbest_lists, strict=True)]

    def _ranked(self, piece: Piece, nbest: Sequence[Hypothesis], options: DecodingOptions) -> list[Hypothesis]:
        texts = [self.pipeline.text(piece, hypothesis.tokens) for hypothesis in nbest]
        log_probs = np.array([hypothesis.log_probability for hypothesis in nbest])
        expected = pairwise_chrf(texts) @ weights(log_probs, options.nbest if options.sample else None)
        # Each segmentation of a text has its own weight, as random samples do, but the text is returned once.
        by_text: dict[str, Hypothesis] = {}
        for text, hypothesis, score in zip(texts, nbest, expected.tolist(), strict=True):
            by_text.setdefault(text.strip(), hypothesis.scored(score, "expected chrF"))
        return in_order(by_text.values())


def weights(log_probs: NDArray[np.float64], draws: int | None) -> NDArray[np.float64]:
    """Return the weight of each candidate [N]; the weights sum to 1.

    Args:
        log_probs: the model's log-probabilities of distinct candidates, in nats.
        draws: the number of random samples that the candidates come from; None if a search has found them.
    """
    if draws is None:
        # The greatest is subtracted first: long sentences have probabilities that underflow.
        unnormalized = np.exp(log_probs - log_probs.max())
    else:
        # p / (1 - (1 - p)^N) approaches 1 / N as p approaches 0.
        p = np.clip(np.exp(log_probs), 1e-300, 1 - 1e-12)
        unnormalized = p / -np.expm1(draws * np.log1p(-p))
    return unnormalized / unnormalized.sum()
