"""Positional encodings: the matrix, single dimensions over positions, one position over the dimensions."""

from __future__ import annotations

from matplotlib.figure import Figure
from torch import Tensor

from translucid.inspection.plots.saving import new_figure


def draw_positions(table: Tensor, position: int | None = None, dimensions: tuple[int, ...] = (0, 1, 16, 17)) -> Figure:
    """Draw a table of positions [length, D] in three ways.

    Args:
        table: such as `sinusoidal_positions(100, 128)`, or the learned ones of a model.
        position: the one to draw over the dimensions; that in the middle if not given.
        dimensions: those to draw over the positions.
    """
    length, width = table.shape
    position = length // 2 if position is None else position
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
