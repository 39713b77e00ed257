"""Confidence calibration: fits an estimator to translations of known quality and tests it on held-out ones."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from translucid.evaluation.classification import calibration_error
from translucid.evaluation.confidence.estimator import Bin, Detached, Estimator, Figure, Weight
from translucid.evaluation.confidence.features import KINDS, Figures, Kind, Measurements, entropy, feature_matrix
from translucid.evaluation.confidence.logistic import cross_entropy, logistic, platt, sigmoid

FOLDS = 5
PENALTY = 1.0
"""The penalty of the weights of standardised features, comparable to the weight of one example."""
TOLERANCE = 0.05
"""The excess of the cross-entropy of cheaper features, relative to the lowest, that is accepted."""
BINS = 10
REVIEWED_SHARE = 0.2
"""The share of translations, the least confident ones, that a person would review."""
OUTLIER_SHARE = 0.005
"""The share of the pairs' translations whose attention is beyond the limit."""


@dataclass(frozen=True)
class Fit:
    """A fit of one kind of features."""

    kind: Kind
    weights: dict[str, Weight]
    offset: float
    slope: float
    shift: float
    confidence: Figures
    """[n], the confidence of each translation, by a fit to other translations."""
    losses: Figures
    """[n], the cross-entropy of each translation."""

    def figure(self, good: NDArray[np.bool_]) -> Figure:
        """Return the scores of the fit."""
        return Figure(
            kind=self.kind,
            cross_entropy=float(self.losses.mean()),
            calibration_error=calibration_error(self.confidence, good),
            lift=lift(self.confidence, ~good),
        )


def fit(kind: Kind, x: Figures, good: NDArray[np.bool_], folds: NDArray[np.int64]) -> Fit:
    """Fit one kind of features.

    Args:
        kind: the kind of features, which names the columns.
        x: the features [n, k].
        good: [n], whether each translation is good.
        folds: [n], the fold 0 .. `FOLDS` - 1 of each translation, whose scores are fitted to the other folds.
    """
    truth = good.astype(np.float64)
    # A constant feature must not divide by zero; its weight does not matter.
    mean, deviation = x.mean(0), np.where(x.std(0) > 1e-9, x.std(0), 1.0)
    x = (x - mean) / deviation
    score = np.empty(len(x))
    for fold in range(FOLDS):
        held_out = folds == fold
        *weights, offset = logistic(x[~held_out], truth[~held_out], PENALTY)
        score[held_out] = x[held_out] @ weights + offset
    # Scores of the folds are calibrated; the weights of the estimator are then fitted to all translations.
    slope, shift = platt(score, good)
    z = slope * score + shift
    *weights, offset = logistic(x, truth, PENALTY)
    rows = zip(KINDS[kind], mean, deviation, weights, strict=True)
    named_weights = {name: Weight(mean=float(m), deviation=float(d), weight=float(w)) for name, m, d, w in rows}
    return Fit(kind, named_weights, float(offset), slope, shift, sigmoid(z), cross_entropy(z, truth))


def cheapest(fits: Sequence[Fit]) -> Fit:
    """Return the first fit whose cross-entropy is hardly above the lowest."""
    losses = [float(fit.losses.mean()) for fit in fits]
    accepted = (1 + TOLERANCE) * min(losses)
    return next(fit for fit, loss in zip(fits, losses, strict=True) if loss <= accepted)


def estimator(
    translations: Sequence[Measurements], chrf: Figures, threshold: float, kinds: Sequence[Kind], *, passes: int = 0
) -> Estimator:
    """Fit kinds of features to translations, and return the cheapest that is as good as the best.

    Args:
        translations: the translations, with what the kinds need.
        chrf: the chrF of each translation against its reference, 0 to 100.
        threshold: the chrF from which a translation is good; there must be good and bad ones.
        kinds: the kinds of features, the cheapest first.
        passes: the number of passes with dropout, for the kind that has them.
    """
    good = chrf >= threshold
    folds = folds_of([translation.source for translation in translations])
    fits = [fit(kind, feature_matrix(translations, KINDS[kind]), good, folds) for kind in kinds]
    best = cheapest(fits)
    return Estimator(
        threshold=threshold,
        pairs=len(translations),
        bad=int((~good).sum()),
        kind=best.kind,
        passes=passes if best.kind == "dropout" else 0,
        weights=best.weights,
        offset=best.offset,
        slope=best.slope,
        shift=best.shift,
        figures=[fitted.figure(good) for fitted in fits],
        reliability=bins(best.confidence, good),
        detached=detached(translations),
    )


def folds_of(sources: Sequence[Hashable]) -> NDArray[np.int64]:
    """Return the fold of each source [n], 0 .. `FOLDS` - 1 in turn; equal sources are in the same fold."""
    numbers: dict[Hashable, int] = {}
    folds = [numbers.setdefault(source, len(numbers)) % FOLDS for source in sources]
    return np.array(folds, np.int64)


def bins(confidence: Figures, good: NDArray[np.bool_], count: int = BINS) -> list[Bin]:
    """Return up to `count` bins of similar size, the least confident translations first."""
    order = np.argsort(confidence, kind="stable")
    result = []
    for rows in np.array_split(order, count):
        if len(rows):
            mean_confidence, share = float(confidence[rows].mean()), float(good[rows].mean())
            result.append(Bin(mean_confidence=mean_confidence, share_good=share, count=len(rows)))
    return result


def lift(confidence: Figures, bad: NDArray[np.bool_]) -> float:
    """Return the rate of bad translations in the fifth with the lowest confidence, relative to the rate of all."""
    worst = np.argsort(confidence, kind="stable")[: max(round(REVIEWED_SHARE * len(bad)), 1)]
    return float(bad[worst].mean() / max(bad.mean(), 1e-12))


def detached(attention: Sequence[Measurements]) -> Detached | None:
    """Fit the usual entropy of attention by least squares, if any translation has attention."""
    lengths, entropies = [], []
    for translation in attention:
        if translation.attention is not None:
            # The entropy of uniform attention over S tokens is log S.
            lengths.append(math.log(translation.attention.shape[1]))
            entropies.append(entropy(translation))
    if not lengths:
        return None
    rows = np.column_stack([np.ones(len(lengths)), lengths])
    weights = np.linalg.lstsq(rows, np.array(entropies))[0]
    limit = np.quantile(entropies - rows @ weights, 1 - OUTLIER_SHARE)
    return Detached(offset=float(weights[0]), slope=float(weights[1]), limit=float(limit))
