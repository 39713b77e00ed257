"""Figures of saliency over images, by Matplotlib."""

from __future__ import annotations

from collections.abc import Mapping

from matplotlib.figure import Figure

from translucid.captions.saliency_overlay import SaliencyOverlay
from translucid.inspection.plots.saving import new_figure

INCHES = 1.7
"""The longer side of a panel."""
SMALL = 1.0
"""The longer side of a panel, in inches, if each row is a whole caption."""
WIDEST = 12.0
"""The greatest width of a row of panels, in inches."""
FINENESS = 240
"""Pixels of a panel's longer side."""


def draw_saliency(saliency: SaliencyOverlay, title: str = "") -> Figure:
    """Draw the image, then its saliency for each word, as many panels a row as fit (Xu et al. 2015, figures 2, 3)."""
    height, width = saliency.pixels.shape[:2]
    inches = INCHES * width / max(height, width), INCHES * height / max(height, width) + 0.42
    count = len(saliency.words) + 1
    columns = min(count, max(1, int(WIDEST / inches[0])))
    rows = -(-count // columns)
    columns = -(-count // rows)  # rows of similar length
    figure = new_figure(inches[0] * columns, inches[1] * rows + (0.3 if title else 0))
    grid = list(figure.subplots(rows, columns, squeeze=False).flat)
    for axes in grid:
        axes.set_axis_off()
    grid[0].imshow(saliency.scaled(FINENESS))
    for i, (axes, word, note) in enumerate(zip(grid[1:], saliency.words, saliency.notes, strict=False)):
        axes.imshow(saliency.panel(i, FINENESS))
        axes.set_title(f"{word}\n", fontsize=9, pad=2)
        axes.text(0.5, 1.02, note, transform=axes.transAxes, fontsize=6.5, color="#5b6675", ha="center", va="bottom")
    if title:
        figure.suptitle(title, fontsize=9)
    return figure


def draw_saliency_rows(sections: Mapping[str, SaliencyOverlay]) -> Figure:
    """Draw several overlays of the same words and image, such as those of heads: one a row, by name."""
    first_overlay = next(iter(sections.values()))
    height, width = first_overlay.pixels.shape[:2]
    inches = SMALL * width / max(height, width), SMALL * height / max(height, width) + 0.12
    figure = new_figure(inches[0] * len(first_overlay.words) + 0.4, inches[1] * len(sections) + 0.3)
    grid = figure.subplots(len(sections), len(first_overlay.words), squeeze=False)
    for row, (name, saliency) in zip(grid, sections.items(), strict=True):
        for i, axes in enumerate(row):
            axes.imshow(saliency.panel(i, FINENESS // 2))
            axes.set(xticks=[], yticks=[])
            axes.set_frame_on(False)
        row[0].set_ylabel(name, fontsize=7)
    for axes, word in zip(grid[0], first_overlay.words, strict=True):
        axes.set_title(word, fontsize=8)
    return figure
