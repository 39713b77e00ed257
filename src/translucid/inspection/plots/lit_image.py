"""The figure of "Show, Attend and Tell": one panel a word, lit where the model looked."""

from __future__ import annotations

from matplotlib.figure import Figure

from translucid.inspection.lit_image import LitImage
from translucid.inspection.plots.saving import new_figure

INCHES = 1.7
"""Of a panel's longer side."""
WIDEST = 12.0
"""Inches of a row of panels, at most."""
FINENESS = 240
"""Pixels of a panel's longer side."""


def draw_lit(lit: LitImage, title: str = "") -> Figure:
    """Draw the image alone, then lit for each word, as many panels a row as fit (Xu et al. 2015, figures 2 and 3)."""
    height, width = lit.pixels.shape[:2]
    inches = INCHES * width / max(height, width), INCHES * height / max(height, width) + 0.42
    count = len(lit.words) + 1
    columns = min(count, max(1, int(WIDEST / inches[0])))
    rows = -(-count // columns)
    columns = -(-count // rows)  # rows of like length
    figure = new_figure(inches[0] * columns, inches[1] * rows + (0.3 if title else 0))
    grid = list(figure.subplots(rows, columns, squeeze=False).flat)
    for axes in grid:
        axes.set_axis_off()
    grid[0].imshow(lit.scaled(FINENESS))
    for i, (axes, word, note) in enumerate(zip(grid[1:], lit.words, lit.notes, strict=False)):
        axes.imshow(lit.panel(i, FINENESS))
        axes.set_title(f"{word}\n", fontsize=9, pad=2)
        axes.text(0.5, 1.02, note, transform=axes.transAxes, fontsize=6.5, color="#5b6675", ha="center", va="bottom")
    if title:
        figure.suptitle(title, fontsize=9)
    return figure
