"""Saliency over images in the terminal."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from rich.cells import cell_len, set_cell_size
from rich.console import Group, RenderableType
from rich.style import Style
from rich.table import Table
from rich.text import Text

from translucid.captions.saliency_overlay import SaliencyOverlay, spread
from translucid.decoding.hypothesis import percent
from translucid.inspection.terminal import SHADES, bar, brightness_color, strong_shares

WIDEST = 16
"""The maximum number of columns of a drawing; a finer grid is drawn coarser."""
GAP = 2
"""Spaces between two drawings."""


def drawings(saliency: SaliencyOverlay, width: int, *, color: bool) -> RenderableType:
    """Return a small drawing of the grid for each word, bright where it is salient, as many in a row as fit.

    Args:
        saliency: the overlay that is drawn.
        width: columns of the terminal.
        color: draw two rows of cells on a line, in half blocks of two colors; otherwise in shades.
    """
    blocks = [_drawing(saliency, i, color=color) for i in range(len(saliency.words))]
    block_width = max((cell_len(block[0].plain) for block in blocks), default=1) + GAP
    per_row = max(1, width // block_width)
    lines: list[Text] = []
    for start in range(0, len(blocks), per_row):
        for row_lines in zip(*blocks[start : start + per_row], strict=True):
            lines.append(Text(" " * GAP).join(row_lines))
        lines.append(Text())
    return Group(*lines[:-1])  # no empty line after the last row


def place_table(saliency: SaliencyOverlay) -> RenderableType:
    """Return a table of the words with their notes and the most salient thirds of the image."""
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(justify="right", style="bold")
    table.add_column(justify="right")
    for i, (word, note) in enumerate(zip(saliency.words, saliency.notes, strict=True)):
        (place, share), *further = saliency.places(i, 3)
        best, bar_text = "nothing", ""
        if share:
            best, bar_text = f"{place} {percent(share)}", bar(share)
        weaker = strong_shares(further)
        table.add_row(Text(word), Text(note), Text("←"), Text(best), Text(bar_text, "cyan"), Text(weaker, "dim"))
    return table


def _drawing(saliency: SaliencyOverlay, word: int, *, color: bool) -> list[Text]:
    """Return the lines of one word: the word itself, its note, the grid."""
    rows, columns = saliency.weights[word].shape
    drawn_columns = min(columns, WIDEST)
    drawn_rows = max(2, 2 * round(rows * drawn_columns / columns / 2))  # an even number: a line of text shows two rows
    weights = saliency.weights[word]
    if (rows, columns) != (drawn_rows, drawn_columns):
        weights = spread(weights, drawn_rows, drawn_columns)
    bright = weights / max(float(weights.max()), 1e-9)
    width = max(drawn_columns, 8)
    lines = [
        Text(set_cell_size(saliency.words[word], width), "bold"),
        Text(set_cell_size(saliency.notes[word], width), "dim"),
    ]
    for upper, lower in zip(bright[::2], bright[1::2], strict=True):
        lines.append(_line(upper, lower, width, color=color))
    return lines


def _line(upper: NDArray[np.float32], lower: NDArray[np.float32], width: int, *, color: bool) -> Text:
    line = Text()
    for above, below in zip(upper.tolist(), lower.tolist(), strict=True):
        if color:
            line.append("▀", Style(color=brightness_color(above), bgcolor=brightness_color(below)))
        else:
            line.append(SHADES[round((above + below) / 2 * (len(SHADES) - 1))])
    line.append(" " * (width - len(upper)))
    return line
