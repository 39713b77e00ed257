"""Activation patching as heat maps."""

from __future__ import annotations

from matplotlib.figure import Figure

from translucid.inspection.patching.result import Patching
from translucid.inspection.patching.views import column_names, percents, summary
from translucid.inspection.plots.saving import new_figure


def draw_patching(patching: Patching) -> Figure:
    """Draw the share that each place carries in per cent: layers down, words across; the first layer is at the top.

    A place is blue if it makes the run like that on CLEAN (1), red if it does the opposite.
    """
    columns = max(len(part.words) for part in patching.parts)
    heights = [1.3 + 0.35 * len(part.points) for part in patching.parts]
    figure = new_figure(2.2 + 0.75 * columns, 0.5 + sum(heights))
    grid = figure.subplots(len(patching.parts), 1, squeeze=False, height_ratios=heights)
    for axes, part in zip(grid[:, 0], patching.parts, strict=True):
        axes.imshow(part.carried.numpy(), cmap="RdBu", vmin=-1, vmax=1, aspect="auto")
        axes.set_xticks(range(len(part.words)), column_names(part), rotation=30, ha="left", fontsize=8)
        axes.set_yticks(range(len(part.points)), part.layers, fontsize=8)
        axes.xaxis.tick_top()
        axes.tick_params(length=0)
        axes.set_xlim(-0.5, columns - 0.5)  # all parts have squares of the same width
        axes.set_frame_on(False)
        axes.set_title(f"{part.kind}: % of the difference carried", fontsize=8, loc="left")
        for row, texts in enumerate(percents(part)):
            for column, text in enumerate(texts):
                dark = abs(part.carried[row, column]) > 0.6
                axes.text(column, row, text, ha="center", va="center", fontsize=7, color="white" if dark else "black")
    figure.suptitle(summary(patching), fontsize=9)
    return figure
