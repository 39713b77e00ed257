"""The tree of a beam search."""

from __future__ import annotations

import math
from typing import Any

from matplotlib.figure import Figure

from translucid.decoding.hypothesis import percent
from translucid.decoding.trace import BeamTrace
from translucid.inspection.plots.saving import new_figure

_COLORS = {"kept": "#1f5fa8", "ended": "#1a7f37", "dropped": "#767676", "ink": "#1c2430", "paper": "white"}


def draw_beam(trace: BeamTrace) -> Figure:
    """Draw what a beam search kept and dropped at each step; the figure at a node is the probability of its token.

    The trace is of one sentence. The path of the output that was chosen is drawn thick.
    """
    nodes, colors = trace.nodes, _COLORS
    step, row = _positions(trace)
    depth, height = max(step), int(max(row)) + 1
    chosen: set[int] = set()
    if trace.best is None:
        row[0] = (height - 1) / 2  # no path is drawn thick: the root stands in the middle
    else:
        chosen = set(trace.path(trace.best))
    figure = new_figure(max(4.0, 1.25 * (depth + 1)), max(2.0, 0.55 * height + 0.8))
    figure.set_facecolor(colors["paper"])
    axes = figure.subplots()
    axes.set_facecolor(colors["paper"])
    axes.tick_params(colors=colors["ink"])
    axes.spines["bottom"].set_color(colors["ink"])
    for i, node in enumerate(nodes):
        thick = i in chosen
        label = trace.name(node.token)
        if i:  # the root has neither a parent nor a probability
            line: dict[str, Any] = {"linewidth": 2.5, "alpha": 1} if thick else {"linewidth": 0.8, "alpha": 0.6}
            ends = [step[node.parent], step[i]], [row[node.parent], row[i]]
            axes.plot(*ends, color=colors[node.fate], zorder=1, **line)
            label += "\n" + percent(math.exp(node.log_prob - nodes[node.parent].log_prob))
        box: dict[str, Any] = {"boxstyle": "round,pad=0.2", "facecolor": colors["paper"]}
        box |= {"edgecolor": colors[node.fate], "linewidth": 2 if thick else 0.8}
        text = axes.text(step[i], row[i], label, fontsize=7, color=colors["ink"], bbox=box, zorder=2)
        text.set(horizontalalignment="center", verticalalignment="center")
    axes.set(xlim=(-0.6, depth + 0.6), ylim=(height - 0.4, -0.7), yticks=[])
    axes.set_xlabel("step", color=colors["ink"])
    axes.set_xticks(range(depth + 1))
    axes.spines[["top", "left", "right"]].set_visible(False)
    handles = [axes.plot([], [], color=colors[fate], label=fate)[0] for fate in ("kept", "ended", "dropped")]
    axes.legend(handles=handles, loc="lower left", fontsize=7, ncols=3, frameon=False, labelcolor=colors["ink"])
    return figure


def _positions(trace: BeamTrace) -> tuple[list[int], list[float]]:
    """Return the step of each node, and its row among the nodes of the step, which are in order of probability."""
    step, row = [0] * len(trace.nodes), [0.0] * len(trace.nodes)
    counts: dict[int, int] = {}
    for i, node in enumerate(trace.nodes[1:], 1):
        step[i] = step[node.parent] + 1
        row[i] = counts.get(step[i], 0)
        counts[step[i]] = counts.get(step[i], 0) + 1
    return step, row
