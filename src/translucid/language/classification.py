"""Scores of classifiers: accuracy, F1, confusion matrix and calibration."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from translucid.evaluation.confidence import calibration_error


class LabelScores(NamedTuple):
    """The scores of one label."""

    precision: float
    recall: float
    f1: float
    texts: int
    """The number of texts that have the label."""


class ClassifierScores(NamedTuple):
    """The scores of one test set."""

    accuracy: float
    macro_f1: float
    """The mean F1 of the labels."""
    calibration_error: float
    """The mean distance between confidence and accuracy (Guo et al. 2017, arXiv 1706.04599, equation 3)."""
    cross_entropy: float
    """The cross-entropy in nats per text."""
    confusion: list[list[int]]
    """The confusion matrix: the number of texts by true and predicted label."""
    labels: dict[str, LabelScores]

    def to_json(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return {**self._asdict(), "labels": {name: scores._asdict() for name, scores in self.labels.items()}}


def classification_scores(
    probabilities: NDArray[np.floating], truth: NDArray[np.integer], names: list[str]
) -> ClassifierScores:
    """Score probabilities [texts, labels] of texts with the labels `truth` [texts], indices into `names`."""
    predicted = probabilities.argmax(1)
    confusion = np.zeros((len(names),) * 2, np.int64)
    np.add.at(confusion, (truth, predicted), 1)
    true_probabilities = probabilities[np.arange(len(truth)), truth]
    entropy = float(-np.log(np.maximum(true_probabilities, 1e-30)).mean())
    labels = {name: _label_scores(confusion, index) for index, name in enumerate(names)}
    error = calibration_error(probabilities.max(1), predicted == truth)
    accuracy = float((predicted == truth).mean())
    return ClassifierScores(accuracy, macro_f1(confusion), error, entropy, confusion.tolist(), labels)


def macro_f1(confusion: NDArray[np.integer]) -> float:
    """Return the mean over labels of F1 = 2 P R / (P + R), 0 without a hit; `confusion`: counts [true, predicted]."""
    return float(np.mean([_label_scores(confusion, label).f1 for label in range(len(confusion))]))


def _label_scores(confusion: NDArray[np.integer], label: int) -> LabelScores:
    hits, predicted, actual = confusion[label, label], confusion[:, label].sum(), confusion[label].sum()
    precision, recall = float(hits / max(predicted, 1)), float(hits / max(actual, 1))
    f1 = 2 * precision * recall / (precision + recall) if hits else 0.0
    return LabelScores(precision, recall, f1, int(actual))
