"""A reliability diagram: predicted probabilities against observed frequencies."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from translucid.evaluation.confidence.estimator import Bin
from translucid.inspection.plots.saving import new_figure


def draw_reliability(bins: Sequence[Bin], error: float) -> Figure:
    """Draw bins of translations, with the standard error of each share; perfect calibration is the diagonal.

    `error` is the expected calibration error, for the title.
    """
    figure = new_figure(5, 5)
    axes = figure.subplots()
    table = np.array([(bin_.said, bin_.seen, bin_.count) for bin_ in bins], float)  # [bins, 3]
    predicted, observed, count = table.reshape(-1, 3).T
    error_bars = np.sqrt(observed * (1 - observed) / count)
    axes.plot([0, 1], [0, 1], color="grey", linestyle="--", linewidth=1)
    axes.errorbar(predicted, observed, yerr=error_bars, marker="o", capsize=3)
    axes.set(xlim=(0, 1), ylim=(0, 1), aspect="equal", xlabel="confidence", ylabel="share of good translations")
    axes.set_title(f"expected calibration error {error:.3f}")
    axes.grid(alpha=0.3)
    return figure
