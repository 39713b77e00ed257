"""How far probabilities can be relied on: what was said against what was seen."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from translucid.evaluation.confidence.estimator import Bin
from translucid.inspection.plots.saving import new_figure


def draw_reliability(bins: Sequence[Bin], error: float) -> Figure:
    """Draw bins of translations, with the standard error of each share; on the diagonal, what is said is true.

    `error`: the expected calibration error, for the title.
    """
    figure = new_figure(5, 5)
    axes = figure.subplots()
    said, seen = np.array([one.said for one in bins]), np.array([one.seen for one in bins])
    spread = np.sqrt(seen * (1 - seen) / np.array([one.count for one in bins]))
    axes.plot([0, 1], [0, 1], color="grey", linestyle="--", linewidth=1)
    axes.errorbar(said, seen, yerr=spread, marker="o", capsize=3)
    axes.set(xlim=(0, 1), ylim=(0, 1), aspect="equal", xlabel="confidence", ylabel="share of good translations")
    axes.set_title(f"expected calibration error {error:.3f}")
    axes.grid(alpha=0.3)
    return figure
