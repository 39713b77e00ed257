"""The importance of attention heads, and the score without the least important ones."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from translucid.inspection.head_importance import HeadImportance, HeadReport
from translucid.inspection.plots.saving import new_figure


def draw_head_report(report: HeadReport) -> Figure:
    """Draw the importance of each head by both measures, layers down and heads across, and the score over the rest."""
    attentions: dict[str, list[HeadImportance]] = {}
    for head in report.heads:
        attentions.setdefault(head.name.rpartition(".head.")[0], []).append(head)
    figure = new_figure(13, max(3.5, 0.35 * len(attentions) + 1.5))
    gradient, ablation, curve = figure.subplots(1, 3, width_ratios=[1, 1, 1.4])
    by_gradient, by_ablation = [], []
    for heads in attentions.values():
        by_gradient.append([head.gradient for head in heads])
        by_ablation.append([head.ablation for head in heads])
    _draw_importance(gradient, by_gradient, list(attentions), "by gradient: mean |dL/dg|")
    _draw_importance(ablation, by_ablation, list(attentions), "by ablation: increase of L")
    for order, points in report.curves.items():
        remaining = [len(report.heads) - point.off for point in points]
        curve.plot(remaining, [point.score for point in points], marker="o", markersize=4, label=f"by {order}")
    curve.set(xlabel="heads left", ylabel=report.metric, title="without the least important heads", ylim=0)
    curve.invert_xaxis()
    curve.grid(alpha=0.3)
    curve.legend(fontsize=8)
    return figure


def _draw_importance(axes: Axes, rows: Sequence[Sequence[float]], attentions: Sequence[str], title: str) -> None:
    """Draw a cell for each head; attentions with fewer heads than others end earlier."""
    table = np.full((len(rows), max(map(len, rows))), np.nan)
    for i, row in enumerate(rows):
        table[i, : len(row)] = row
    image = axes.imshow(table, cmap="Blues", vmin=min(0.0, np.nanmin(table)), aspect="auto")
    axes.set_title(f"{title} (nats per sentence)", fontsize=9)
    axes.set_xticks(range(table.shape[1]))
    axes.set_yticks(range(len(rows)), attentions, fontsize=8)
    axes.set_xlabel("head")
    axes.figure.colorbar(image, ax=axes)
