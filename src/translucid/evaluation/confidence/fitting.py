"""Confidence calibration: fits an estimator to translations of known quality and tests it on held-out ones."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from translucid.evaluation.classification import calibration_error
from translucid.evaluation.confidence.estimator import Bin, Detached, Estimator, Figure, Weight
from translucid.evaluation.confidence.features import KINDS, Figures, Kind, Seen, entropy, measured
from translucid.evaluation.confidence.logistic import cross_entropy, logistic, platt, sigmoid

FOLDS = 5
PENALTY = 1.0
"""Of the weights of standardised features, as one example more or less would weigh."""
HARDLY = 0.05
"""Share of the lowest cross-entropy by which that of cheaper features may be above it."""
BINS = 10
WORST = 0.2
"""The share of translations that a person would look at."""
RARE = 0.005
"""Of the pairs' translations have attention so detached."""


@dataclass(frozen=True)
class Fit:
    """One kind of features, fitted."""

    kind: Kind
    weights: dict[str, Weight]
    offset: float
    slope: float
    shift: float
    confidence: Figures
    """[n], of each translation when it was not fitted on."""
    losses: Figures
    """[n], the cross-entropy of each."""

    def figure(self, good: NDArray[np.bool_]) -> Figure:
        """Say how well it does."""
        return Figure(
            kind=self.kind,
            cross_entropy=float(self.losses.mean()),
            calibration_error=calibration_error(self.confidence, good),
            lift=lift(self.confidence, ~good),
        )


def fit(kind: Kind, x: Figures, good: NDArray[np.bool_], folds: NDArray[np.int64]) -> Fit:
    """Fit one kind of features.

    Args:
        kind: names the columns.
        x: features [n, k].
        good: [n].
        folds: [n], the part 0 .. `FOLDS` - 1 that each belongs to; what a part gets is told by the others.
    """
    truth = good.astype(np.float64)
    mean, deviation = x.mean(0), np.where(x.std(0) > 1e-9, x.std(0), 1.0)
    x = (x - mean) / deviation
    score = np.empty(len(x))
    for fold in range(FOLDS):
        held = folds == fold
        *weights, offset = logistic(x[~held], truth[~held], PENALTY)
        score[held] = x[held] @ weights + offset
    slope, shift = platt(score, good)
    z = slope * score + shift
    *weights, offset = logistic(x, truth, PENALTY)
    named = zip(KINDS[kind], mean, deviation, weights, strict=True)
    kept = {name: Weight(mean=float(m), deviation=float(d), weight=float(w)) for name, m, d, w in named}
    return Fit(kind, kept, float(offset), slope, shift, sigmoid(z), cross_entropy(z, truth))


def cheapest(fits: Sequence[Fit]) -> Fit:
    """Return the first whose cross-entropy is hardly above the lowest."""
    best = min(float(one.losses.mean()) for one in fits)
    return next(one for one in fits if one.losses.mean() <= (1 + HARDLY) * best)


def estimator(
    seen: Sequence[Seen], chrf: Figures, threshold: float, kinds: Sequence[Kind], *, passes: int = 0
) -> Estimator:
    """Fit kinds of features to translations, and return the cheapest that is as good as the best.

    Args:
        seen: the translations, with what the kinds need.
        chrf: of each against its reference, 0 to 100.
        threshold: from which on a translation is good; some must be and some not.
        kinds: that are tried, the cheapest first.
        passes: with dropout, of the kind that has some.
    """
    good = chrf >= threshold
    folds = folds_of([one.source for one in seen])
    fits = [fit(kind, measured(seen, KINDS[kind]), good, folds) for kind in kinds]
    best = cheapest(fits)
    return Estimator(
        threshold=threshold,
        pairs=len(seen),
        bad=int((~good).sum()),
        kind=best.kind,
        passes=passes if best.kind == "dropout" else 0,
        weights=best.weights,
        offset=best.offset,
        slope=best.slope,
        shift=best.shift,
        figures=[one.figure(good) for one in fits],
        reliability=bins(best.confidence, good),
        detached=detached(seen),
    )


def folds_of(sources: Sequence[Hashable]) -> NDArray[np.int64]:
    """Return a part of 0 .. `FOLDS` - 1 for each [n], the same for the same source, in turn."""
    numbers = {source: i for i, source in enumerate(dict.fromkeys(sources))}
    return np.array([numbers[source] % FOLDS for source in sources], np.int64)


def bins(confidence: Figures, good: NDArray[np.bool_], count: int = BINS) -> list[Bin]:
    """Return `count` bins of like size, or fewer of few translations, the least sure ones first."""
    order = np.argsort(confidence, kind="stable")
    cut = (part for part in np.array_split(order, count) if len(part))
    return [Bin(said=float(confidence[part].mean()), seen=float(good[part].mean()), count=len(part)) for part in cut]


def lift(confidence: Figures, bad: NDArray[np.bool_]) -> float:
    """Return how many times its share of the bad translations the worst fifth by confidence holds."""
    worst = np.argsort(confidence, kind="stable")[: max(round(WORST * len(bad)), 1)]
    return float(bad[worst].mean() / max(bad.mean(), 1e-12))


def detached(attention: Sequence[Seen]) -> Detached | None:
    """Fit what is usual to translations whose attention was seen, if there are some, by least squares."""
    looked = [(math.log(one.attention.shape[1]), entropy(one)) for one in attention if one.attention is not None]
    if not looked:
        return None
    lengths, found = np.array(looked).T
    rows = np.column_stack([np.ones(len(looked)), lengths])
    weights = np.linalg.lstsq(rows, found)[0]
    limit = np.quantile(found - rows @ weights, 1 - RARE)
    return Detached(offset=float(weights[0]), slope=float(weights[1]), limit=float(limit))
