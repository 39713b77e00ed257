"""Training curves of one run or several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.figure import Figure

from translucid.inspection.plots.saving import new_figure


def draw_curves(runs: Mapping[str, Sequence[Mapping[str, Any]]]) -> Figure:
    """Draw loss, BLEU and learning rate over minutes.

    Args:
        runs: by name the rows of `metrics.jsonl`.
    """
    figure = new_figure(13, 4)
    loss, bleu, rate = figure.subplots(1, 3)
    for name, rows in runs.items():
        training = [row for row in rows if row.get("kind") == "training"]
        validation = [row for row in rows if row.get("kind") == "validation"]
        (line,) = loss.plot(*_over_minutes(training, "loss"), alpha=0.5, linewidth=1, label=f"{name}, training")
        colour = line.get_color()
        loss.plot(*_over_minutes(validation, "loss"), marker="o", color=colour, label=f"{name}, validation")
        bleu.plot(*_over_minutes(validation, "bleu"), marker="o", color=colour, label=name)
        rate.plot(*_over_minutes(training, "learning_rate"), color=colour, label=name)
    loss.set(ylabel="loss (nats a token)", title="loss")
    bleu.set(ylabel="BLEU", title="validation BLEU", ylim=0)
    rate.set(title="learning rate", ylim=0)
    for axes in (loss, bleu, rate):
        axes.set_xlabel("minutes")
        axes.grid(alpha=0.3)
        axes.legend(fontsize=8)
    return figure


def _over_minutes(rows: Sequence[Mapping[str, Any]], key: str) -> tuple[list[float], list[float]]:
    points = [(row.get("seconds"), row.get(key)) for row in rows]
    kept = [(x / 60, float(y)) for x, y in points if isinstance(x, int | float) and isinstance(y, int | float)]
    return [x for x, _ in kept], [y for _, y in kept]
