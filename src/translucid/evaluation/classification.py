"""How good a classifier is: accuracy, F1, what is taken for what, and whether its probabilities mean what they say."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

BINS = 15
"""Of probabilities, for calibration; as many as Guo et al. have."""


class LabelScores(NamedTuple):
    """How well one label is found."""

    precision: float
    recall: float
    f1: float
    texts: int
    """That have it."""


class ClassifierScores(NamedTuple):
    """Figures of one test set."""

    accuracy: float
    macro_f1: float
    """Mean of the labels' F1."""
    calibration_error: float
    """Mean distance between how sure the model is and how often it is right then (Guo et al. 2017, arXiv 1706.04599,
    equation 3)."""
    cross_entropy: float
    """In nats a text."""
    confusion: list[list[int]]
    """[true label][found label], texts."""
    labels: dict[str, LabelScores]

    def to_json(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return {**self._asdict(), "labels": {name: scores._asdict() for name, scores in self.labels.items()}}


def classification_scores(
    probabilities: NDArray[np.floating], truth: NDArray[np.integer], names: list[str]
) -> ClassifierScores:
    """Score probabilities [texts, labels] of texts whose labels are truth [texts], places in `names`."""
    found = probabilities.argmax(1)
    confusion = np.zeros((len(names),) * 2, np.int64)
    np.add.at(confusion, (truth, found), 1)
    right = probabilities[np.arange(len(truth)), truth]
    entropy = float(-np.log(np.maximum(right, 1e-30)).mean())
    labels = {name: _of_label(confusion, place) for place, name in enumerate(names)}
    error = calibration_error(probabilities.max(1), found == truth)
    accuracy = float((found == truth).mean())
    return ClassifierScores(accuracy, macro_f1(confusion), error, entropy, confusion.tolist(), labels)


def macro_f1(confusion: NDArray[np.integer]) -> float:
    """Return the mean over labels of F1 = 2 P R / (P + R), 0 where nothing is found; of [true, found] counts."""
    return float(np.mean([_of_label(confusion, place).f1 for place in range(len(confusion))]))


def calibration_error(sure: NDArray[np.floating], right: NDArray[np.bool_], bins: int = BINS) -> float:
    """Return sum_b n_b / n |mean right in b - mean sure in b|, bins b of equal width.

    Args:
        sure: [texts], the probability of the label that was found.
        right: [texts], whether it was the right one.
        bins: how many.
    """
    places = np.clip(np.ceil(sure * bins).astype(int) - 1, 0, bins - 1)
    gaps = np.bincount(places, right.astype(float) - sure, bins)
    return float(np.abs(gaps).sum() / len(sure))


def _of_label(confusion: NDArray[np.integer], place: int) -> LabelScores:
    hits, found, there = confusion[place, place], confusion[:, place].sum(), confusion[place].sum()
    precision, recall = float(hits / max(found, 1)), float(hits / max(there, 1))
    f1 = 2 * precision * recall / (precision + recall) if hits else 0.0
    return LabelScores(precision, recall, f1, int(there))
