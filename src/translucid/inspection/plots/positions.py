"""Figures of positional encodings: the matrix, dimensions over positions, and one position over the dimensions."""

from __future__ import annotations

from matplotlib.figure import Figure
from torch import Tensor

from translucid.inspection.plots.saving import new_figure


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
    image = matrix.imshow(table, cmap="RdBu", aspect="auto", interpolation="nearest")
    matrix.set(xlabel="dimension", ylabel="position", title="the matrix P")
    figure.colorbar(image, ax=matrix)
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
