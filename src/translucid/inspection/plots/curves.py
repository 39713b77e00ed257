"""Figures of curves: training, positional encodings, and the reliability of probabilities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from torch import Tensor

from translucid.evaluation.confidence import Bin
from translucid.inspection.plots.saving import new_figure


def draw_curves(runs: Mapping[str, Sequence[Mapping[str, Any]]]) -> Figure:
    """Draw loss, BLEU and learning rate over minutes.

    Args:
        runs: the rows of `metrics.jsonl` of each run by name.
    """
    figure = new_figure(13, 4)
    loss, bleu, rate = figure.subplots(1, 3)
    for name, rows in runs.items():
        (line,) = loss.plot(*_over_minutes(rows, "training", "loss"), alpha=0.5, linewidth=1, label=f"{name}, training")
        color = line.get_color()
        validation = _over_minutes(rows, "validation", "loss")
        loss.plot(*validation, marker="o", color=color, label=f"{name}, validation")
        bleu.plot(*_over_minutes(rows, "validation", "bleu"), marker="o", color=color, label=name)
        rate.plot(*_over_minutes(rows, "training", "learning_rate"), color=color, label=name)
    loss.set(ylabel="loss (nats a token)", title="loss")
    bleu.set(ylabel="BLEU", title="validation BLEU", ylim=0)
    rate.set(title="learning rate", ylim=0)
    for axes in (loss, bleu, rate):
        axes.set_xlabel("minutes")
        axes.grid(alpha=0.3)
        axes.legend(fontsize=8)
    return figure


def _over_minutes(rows: Sequence[Mapping[str, Any]], kind: str, key: str) -> tuple[list[float], list[float]]:
    """Return minutes and values of the rows of a kind that have both; not every model has BLEU."""
    minutes, values = [], []
    for row in rows:
        seconds, value = row.get("seconds"), row.get(key)
        if row.get("kind") == kind and isinstance(seconds, int | float) and isinstance(value, int | float):
            minutes.append(seconds / 60)
            values.append(float(value))
    return minutes, values


def draw_positions(table: Tensor, position: int | None = None, dimensions: tuple[int, ...] = (0, 1, 16, 17)) -> Figure:
    """Draw a table of positions [length, D] in three ways.

    Args:
        table: the encodings, such as `sinusoidal_positions(100, 128)`, or those that a model has learned.
        position: the position that is drawn over the dimensions; the middle one if not given.
        dimensions: the dimensions that are drawn over the positions.
    """
    length, width = table.shape
    if position is None:
        position = length // 2
    figure = new_figure(13, 4)
    matrix, lines, single = figure.subplots(1, 3, width_ratios=[1.2, 1, 1])
    squares = matrix.imshow(table, cmap="RdBu", aspect="auto", interpolation="nearest")
    matrix.set(xlabel="dimension", ylabel="position", title="the matrix P")
    figure.colorbar(squares, ax=matrix)
    for dimension in dimensions:
        if dimension < width:
            lines.plot(table[:, dimension], label=f"dimension {dimension}")
    lines.set(xlabel="position", title="single dimensions over positions")
    lines.legend(fontsize=8, loc="upper right")
    lines.grid(alpha=0.3)
    single.plot(table[position], linewidth=0.9)
    single.set(xlabel="dimension", title=f"position {position} over the dimensions")
    single.grid(alpha=0.3)
    return figure


def draw_reliability(bins: Sequence[Bin], error: float) -> Figure:
    """Draw bins of translations, with the standard error of each share; perfect calibration is the diagonal.

    `error` is the expected calibration error, for the title.
    """
    figure = new_figure(5, 5)
    axes = figure.subplots()
    table = np.array([(bin_.mean_confidence, bin_.share_good, bin_.count) for bin_ in bins], float)  # [bins, 3]
    predicted, observed, count = table.reshape(-1, 3).T
    error_bars = np.sqrt(observed * (1 - observed) / count)
    axes.plot([0, 1], [0, 1], color="gray", linestyle="--", linewidth=1)
    axes.errorbar(predicted, observed, yerr=error_bars, marker="o", capsize=3)
    axes.set(xlim=(0, 1), ylim=(0, 1), aspect="equal", xlabel="confidence", ylabel="share of good translations")
    axes.set_title(f"expected calibration error {error:.3f}")
    axes.grid(alpha=0.3)
    return figure
