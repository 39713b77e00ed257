"""The tree of a beam search."""

from __future__ import annotations

import math

from matplotlib.figure import Figure

from translucid.decoding.hypothesis import percent
from translucid.decoding.trace import BeamTrace
from translucid.inspection.plots.saving import new_figure

_LIGHT = {"kept": "#1f5fa8", "ended": "#1a7f37", "dropped": "#767676", "ink": "#1c2430", "paper": "white"}
_DARK = {"kept": "#60a5fa", "ended": "#4ade80", "dropped": "#9aa6b5", "ink": "#e6eaf0", "paper": "#14181f"}


def draw_beam(trace: BeamTrace, *, dark: bool = False) -> Figure:
    """Draw what a beam search kept and dropped at each step; the figure at a node is the probability of its token.

    The path of the output that was chosen is drawn thick.

    Args:
        trace: of one sentence.
        dark: for a dark page.
    """
    nodes, colours = trace.nodes, _DARK if dark else _LIGHT
    step = [0] * len(nodes)
    for i, node in enumerate(nodes[1:], 1):
        step[i] = step[node.parent] + 1
    place = [0.0] * len(nodes)
    rows: dict[int, int] = {}
    for i in range(1, len(nodes)):  # in the order of their probability at each step
        place[i] = rows.get(step[i], 0)
        rows[step[i]] = int(place[i]) + 1
    chosen = set(trace.path(trace.best)) if trace.best is not None else set()
    depth, height = max(step), max(rows.values(), default=1)
    place[0] = (height - 1) / 2 if not chosen else 0.0
    figure = new_figure(max(4.0, 1.25 * (depth + 1)), max(2.0, 0.55 * height + 0.8))
    figure.set_facecolor(colours["paper"])
    axes = figure.subplots()
    axes.set_facecolor(colours["paper"])
    axes.tick_params(colors=colours["ink"])
    axes.spines["bottom"].set_color(colours["ink"])
    for i, node in enumerate(nodes[1:], 1):
        thick = i in chosen
        axes.plot(
            [step[node.parent], step[i]],
            [place[node.parent], place[i]],
            color=colours[node.fate],
            linewidth=2.5 if thick else 0.8,
            alpha=1 if thick else 0.6,
            zorder=1,
        )
    for i, node in enumerate(nodes):
        probability = math.exp(node.log_prob - nodes[node.parent].log_prob) if i else 1.0
        label = f"{trace.name(node.token)}\n{percent(probability)}" if i else trace.name(node.token)
        box = {"boxstyle": "round,pad=0.2", "facecolor": colours["paper"], "edgecolor": colours[node.fate]}
        box["linewidth"] = 2 if i in chosen else 0.8  # type: ignore[assignment]
        axes.text(
            step[i], place[i], label, ha="center", va="center", fontsize=7, color=colours["ink"], bbox=box, zorder=2
        )
    axes.set(xlim=(-0.6, depth + 0.6), ylim=(height - 0.4, -0.7), yticks=[])
    axes.set_xlabel("step", color=colours["ink"])
    axes.set_xticks(range(depth + 1))
    for side in ("top", "left", "right"):
        axes.spines[side].set_visible(False)
    handles = [axes.plot([], [], color=colours[fate], label=fate)[0] for fate in ("kept", "ended", "dropped")]
    axes.legend(handles=handles, loc="lower left", fontsize=7, ncols=3, frameon=False, labelcolor=colours["ink"])
    return figure
