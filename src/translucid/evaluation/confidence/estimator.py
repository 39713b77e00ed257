"""Quality estimation: from features of a translation to the probability that it is good, as fitted for a run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, TypeAlias

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from translucid.evaluation.confidence.features import FEATURES, KINDS, Figures, Kind, Seen, entropy, measured
from translucid.evaluation.confidence.logistic import sigmoid


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True, allow_inf_nan=False)


Bounded: TypeAlias = Annotated[float, Field(ge=-1e6, le=1e6)]
"""So that whatever a file says, a confidence is a number."""


class Weight(_Record):
    """How a feature counts: its distance from the mean of the pairs, in standard deviations, times a weight."""

    mean: Bounded
    deviation: float = Field(ge=1e-9, le=1e6)
    weight: Bounded


class Bin(_Record):
    """Some translations of like confidence."""

    said: float
    """The probability that they are good, in the mean."""
    seen: float
    """The share of them that is."""
    count: int


class Figure(_Record):
    """How well a kind of features did, on pairs that it was not fitted on."""

    kind: Kind
    cross_entropy: float
    """Of good and bad, in nats a translation; lower is better."""
    calibration_error: float
    """Mean distance between confidence and the share that is good (Guo et al. 2017, arXiv 1706.04599, equation 3)."""
    lift: float
    """How many times its share of the bad translations the worst fifth by confidence holds; 1 is chance, 5 the most."""


class Detached(_Record):
    """Attention so spread over the source as hardly any of the pairs' translations has: the model guesses.

    The entropy that is usual for a source of S tokens is offset + slope log S.
    """

    offset: Bounded
    slope: Bounded
    limit: Bounded
    """How much more is seldom."""

    def about(self, seen: Seen) -> list[str]:
        """Say if the attention of a translation is so detached from its source."""
        assert seen.attention is not None
        usual, found = self.offset + self.slope * math.log(seen.attention.shape[1]), entropy(seen)
        if found - usual <= self.limit:
            return []
        return [f"detached attention: it is spread over the source (entropy {found:.1f}, {usual:.1f} is usual)"]


class Estimator(_Record):
    """Tells how probable it is that a translation is good: sigmoid(slope (w x + offset) + shift)."""

    threshold: float
    """A translation is good if its chrF against the reference is at least this, 0 to 100."""
    pairs: int
    bad: int
    """How many of the pairs it was fitted on, and how many of them were translated badly."""
    kind: Kind
    """What has to be looked at."""
    passes: int = Field(0, ge=0, le=1000)
    """With dropout."""
    weights: dict[str, Weight]
    """By feature."""
    offset: Bounded
    slope: Bounded
    shift: Bounded
    figures: list[Figure] = []
    """Of every kind of features that was tried."""
    reliability: list[Bin] = []
    """Of the kind that was chosen, the least sure translations first."""
    detached: Detached | None = None
    """If the model has attention."""

    def __call__(self, seen: Sequence[Seen]) -> Figures:
        """Return the probability that each translation [n] is good.

        `seen`: with what `kind` needs.
        """
        weights = self.weights.values()
        mean, deviation, weight = (
            np.array([getattr(one, name) for one in weights]) for name in ("mean", "deviation", "weight")
        )
        score = (measured(seen, list(self.weights)) - mean) / deviation @ weight + self.offset
        return sigmoid(self.slope * score + self.shift)

    def whole(self) -> bool:
        """Whether its features are those of its kind."""
        return set(self.weights) <= set(FEATURES) and set(self.weights) == set(KINDS[self.kind])
