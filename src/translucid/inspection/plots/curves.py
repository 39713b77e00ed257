"""Training curves of one run or several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.figure import Figure

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
        colour = line.get_color()
        validation = _over_minutes(rows, "validation", "loss")
        loss.plot(*validation, marker="o", color=colour, label=f"{name}, validation")
        bleu.plot(*_over_minutes(rows, "validation", "bleu"), marker="o", color=colour, label=name)
        rate.plot(*_over_minutes(rows, "training", "learning_rate"), color=colour, label=name)
    loss.set(ylabel="loss (nats a token)", title="loss")
    bleu.set(ylabel="BLEU", title="validation BLEU", ylim=0)
    rate.set(title="learning rate", ylim=0)
    for axes in (loss, bleu, rate):
        axes.set_xlabel("minutes")
        axes.grid(alpha=0.3)
        axes.legend(fontsize=8)
    return figure


def _over_minutes(rows: Sequence[Mapping[str, Any]], kind: str, key: str) -> tuple[list[float], list[float]]:
    """Return minutes and values of the rows of a kind that have both; a language model, for example, has no BLEU."""
    minutes, values = [], []
    for row in rows:
        seconds, value = row.get("seconds"), row.get(key)
        if row.get("kind") == kind and isinstance(seconds, int | float) and isinstance(value, int | float):
            minutes.append(seconds / 60)
            values.append(float(value))
    return minutes, values
