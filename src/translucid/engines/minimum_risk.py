"""Minimum Bayes risk: of some candidates the one that is most like all the others, by chrF.

    argmax_y  sum_y' p(y' | x) chrF(y, y')

(Kumar and Byrne 2004, section 2; Eikema and Aziz 2020, arXiv 2005.10283, section 7). Of an n-best list, p is the
model's probability, shared out among the candidates alone. Of N draws, from which equal ones have been left out, each
candidate counts p / (1 - (1 - p)^N): its probability over that of being among them (Horvitz and Thompson 1952), which
makes the sum an unbiased estimate of that over all translations, where draws are from the model as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from translucid.data.text_pipeline import Piece, TextPipeline
from translucid.decoding.decoding_options import DecodingOptions
from translucid.decoding.hypothesis import Hypothesis
from translucid.engines.ranking import in_order
from translucid.evaluation.pairwise_chrf import pairwise_chrf


@dataclass(frozen=True)
class MinimumRisk:
    """Ranks candidates by expected chrF, 0 to 100, which becomes their score."""

    needs_beam: ClassVar[bool] = False
    pipeline: TextPipeline
    candidates: int
    """Of each sentence: the n best, or as many draws."""

    def __str__(self) -> str:
        """Say what it is."""
        return f"minimum Bayes risk over {self.candidates}"

    def widened(self, options: DecodingOptions) -> DecodingOptions:
        """See `Ranking`."""
        beam = options.beam if options.sample else max(options.beam, self.candidates)
        return options.model_copy(update={"beam": beam, "nbest": max(self.candidates, options.nbest)})

    def __call__(
        self, pieces: Sequence[Piece], found: Sequence[list[Hypothesis]], options: DecodingOptions
    ) -> list[list[Hypothesis]]:
        """See `Ranking`."""
        return [self._ranked(piece, nbest, options) for piece, nbest in zip(pieces, found, strict=True)]

    def _ranked(self, piece: Piece, nbest: Sequence[Hypothesis], options: DecodingOptions) -> list[Hypothesis]:
        texts = [self.pipeline.text(piece, hypothesis.tokens) for hypothesis in nbest]
        log_probs = np.array([hypothesis.log_probability for hypothesis in nbest])
        expected = pairwise_chrf(texts) @ weights(log_probs, options.nbest if options.sample else None)
        # Spellings of one text count each, as draws do, but the text is found once.
        first: dict[str, Hypothesis] = {}
        for text, one, score in zip(texts, nbest, expected.tolist(), strict=True):
            first.setdefault(text.strip(), one.scored(score, "expected chrF"))
        return in_order([*first.values()])


def weights(log_probs: NDArray[np.float64], draws: int | None) -> NDArray[np.float64]:
    """Return what each candidate [N] counts; they sum to 1.

    Args:
        log_probs: the model's, of different candidates, in nats.
        draws: how many draws gave them; None if a search has found them.
    """
    if draws is None:
        found = np.exp(log_probs - log_probs.max())
    else:
        # p / (1 - (1 - p)^N) goes to 1 / N where p goes to 0.
        p = np.clip(np.exp(log_probs), 1e-300, 1 - 1e-12)
        found = p / -np.expm1(draws * np.log1p(-p))
    return found / found.sum()
