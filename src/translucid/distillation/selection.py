"""The choice of the hypothesis that a student learns from: the one nearest to the reference.

    argmax  sim(y, reference)   over the hypotheses y of the teacher's n-best list

(Kim and Rush 2016, arXiv 1606.07947, section 3.3, sequence-level interpolation). They use a smoothed BLEU of the
sentence as the similarity; the chrF of the sentence, used here, needs no smoothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

from translucid.evaluation.pairwise_chrf import pairwise_chrf

Choice: TypeAlias = Literal["nearest", "best", "mbr", "sample"]
"""nearest: the hypothesis that is nearest to the reference, and without one the most probable hypothesis; best: the
most probable one; mbr: that of minimum Bayes risk; sample: a random sample."""


def nearest(hypotheses: Sequence[str], reference: str) -> str:
    """Return the hypothesis with the greatest sentence chrF against a reference, the first of equal ones."""
    scores = pairwise_chrf([*hypotheses, reference])[:-1, -1]
    return hypotheses[int(scores.argmax())]
