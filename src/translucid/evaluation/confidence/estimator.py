"""Quality estimation: the probability that a translation is good, from its features, as fitted for a run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, TypeAlias

import numpy as np
from pydantic import AliasChoices, BaseModel, Field

from translucid.evaluation.confidence.features import KINDS, Figures, Kind, Measurements, entropy, feature_matrix
from translucid.evaluation.confidence.logistic import sigmoid


class _Record(BaseModel, frozen=True, extra="forbid", allow_inf_nan=False):
    """Values in the file of a run."""


Bounded: TypeAlias = Annotated[float, Field(ge=-1e6, le=1e6)]
"""A bounded number, so that a confidence is finite whatever is in the file."""


class Weight(_Record):
    """The weight of a feature, which is standardised by the mean and the deviation of the pairs."""

    mean: Bounded
    deviation: float = Field(ge=1e-9, le=1e6)
    weight: Bounded


class Bin(_Record):
    """A bin of translations with similar confidence."""

    # The files of older runs have the keys `said` and `seen`.
    mean_confidence: float = Field(validation_alias=AliasChoices("mean_confidence", "said"))
    """The mean confidence."""
    share_good: float = Field(validation_alias=AliasChoices("share_good", "seen"))
    """The share of good translations."""
    count: int


class Figure(_Record):
    """The scores of a kind of features on held-out pairs."""

    kind: Kind
    cross_entropy: float
    """The cross-entropy of good and bad, in nats per translation; lower is better."""
    calibration_error: float
    """The mean distance between confidence and the share of good translations (Guo et al. 2017, arXiv 1706.04599,
    equation 3)."""
    lift: float
    """The rate of bad translations in the fifth with the lowest confidence, relative to the rate of all: 1 is chance, 5
    the maximum."""


class Detached(_Record):
    """The limit from which attention is spread over the source more than in nearly all translations: the model guesses.

    The usual entropy for a source of S tokens is offset + slope log S.
    """

    offset: Bounded
    slope: Bounded
    limit: Bounded
    """The difference from the usual entropy that is rare."""

    def about(self, translation: Measurements) -> list[str]:
        """Return a warning if the attention of a translation is detached from its source."""
        assert translation.attention is not None
        usual, actual = self.offset + self.slope * math.log(translation.attention.shape[1]), entropy(translation)
        if actual - usual <= self.limit:
            return []
        return [f"detached attention: it is spread over the source (entropy {actual:.1f}, {usual:.1f} is usual)"]


class Estimator(_Record):
    """Estimates the probability that a translation is good: sigmoid(slope (w x + offset) + shift)."""

    threshold: float
    """A translation is good if its chrF against the reference is at least this, 0 to 100."""
    pairs: int
    bad: int
    """The number of pairs with bad translations, among those of the fit."""
    kind: Kind
    """The kind of features."""
    passes: int = Field(0, ge=0, le=1000)
    """The number of passes with dropout."""
    weights: dict[str, Weight]
    """The weights by feature."""
    offset: Bounded
    slope: Bounded
    shift: Bounded
    figures: list[Figure] = []
    """The scores of each kind of features."""
    reliability: list[Bin] = []
    """The bins of the chosen kind, the least confident translations first."""
    detached: Detached | None = None
    """None if the model has no attention."""

    def __call__(self, translations: Sequence[Measurements]) -> Figures:
        """Return the probability [n] that each translation is good; `translations` has what `kind` needs."""
        rows = [(weight.mean, weight.deviation, weight.weight) for weight in self.weights.values()]
        mean, deviation, weight = map(np.array, zip(*rows, strict=True))
        score = (feature_matrix(translations, list(self.weights)) - mean) / deviation @ weight + self.offset
        return sigmoid(self.slope * score + self.shift)

    def is_complete(self) -> bool:
        """Return whether the estimator has all features of its kind, and no others."""
        return set(self.weights) == set(KINDS[self.kind])
