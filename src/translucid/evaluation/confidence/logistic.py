"""Logistic regression, and Platt scaling to calibrated probabilities."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from translucid.evaluation.confidence.features import Figures

STEPS, TOLERANCE = 100, 1e-10
"""The maximum number of Newton steps, and the size of a step at which they end."""


def sigmoid(z: Figures) -> Figures:
    """Return 1 / (1 + exp(-z)), without overflow."""
    return 0.5 * (1 + np.tanh(0.5 * z))


def cross_entropy(z: Figures, truth: Figures) -> Figures:
    """Return -t log s(z) - (1 - t) log(1 - s(z)) for each [n], in nats; s is the sigmoid."""
    return np.logaddexp(0, z) - truth * z


def logistic(x: Figures, truth: Figures, penalty: float) -> Figures:
    """Return the weights [k] of standardised features and then the offset, fitted by Newton's method.

        argmin_w,b  sum_i cross_entropy(w x_i + b, t_i) + penalty / 2 |w|^2

    Args:
        x: [n, k].
        truth: [n], the target probability, 0 to 1.
        penalty: the penalty of the weights; the offset has none.
    """
    design = np.column_stack([x, np.ones(len(x))])
    penalties = penalty * np.diag([*np.ones(x.shape[1]), 0.0])
    weights = np.zeros(design.shape[1])

    def cost(w: Figures) -> float:
        return float(cross_entropy(design @ w, truth).sum() + 0.5 * w @ penalties @ w)

    for _ in range(STEPS):
        p = sigmoid(design @ weights)
        slope = design.T @ (p - truth) + penalties @ weights
        # The bound keeps the matrix invertible where all probabilities are near 0 or 1.
        curvature = (design * np.maximum(p * (1 - p), 1e-12)[:, None]).T @ design + penalties
        step = np.linalg.solve(curvature, slope)
        # A Newton step may overshoot where the cost is flat; a shorter step decreases it, too.
        while np.abs(step).max() > TOLERANCE and cost(weights - step) > cost(weights):
            step = step / 2
        weights = weights - step
        if np.abs(step).max() <= TOLERANCE:
            break
    return weights


def platt(z: Figures, good: NDArray[np.bool_]) -> tuple[float, float]:
    """Return slope and offset that make sigmoid(slope z + offset) a calibrated probability.

    Platt 1999 (Probabilistic outputs for support vector machines, section 2.2). The targets are slightly inside 0 and
    1, so that separable examples do not lead to certainty.

    Args:
        z: [n], scores of held-out examples.
        good: [n], whether each is good.
    """
    counts = good.sum(), len(good) - good.sum()
    truth = np.where(good, (counts[0] + 1) / (counts[0] + 2), 1 / (counts[1] + 2))
    scale = float(z.std()) or 1.0
    slope, offset = logistic(z[:, None] / scale, truth, 0.0)
    return float(slope / scale), float(offset)
