"""Saliency over an image in the terminal."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from rich.cells import cell_len, set_cell_size
from rich.console import Group, RenderableType
from rich.style import Style
from rich.table import Table
from rich.text import Text

from translucid.decoding.hypothesis import percent
from translucid.inspection.saliency_overlay import SaliencyOverlay, spread, strong_shares
from translucid.inspection.terminal import SHADES, bar, brightness_colour

WIDEST = 16
"""The most columns of a drawing; a finer grid is drawn coarser."""
GAP = 2
"""Spaces between two drawings."""


def drawings(lit: SaliencyOverlay, width: int, *, colour: bool) -> RenderableType:
    """Return a small drawing of the grid for each word, bright where it is salient, as many in a row as fit.

    Args:
        lit: the overlay that is drawn.
        width: columns of the terminal.
        colour: draw two rows of cells on a line, in half blocks of two colours; otherwise in shades.
    """
    blocks = [_drawing(lit, i, colour=colour) for i in range(len(lit.words))]
    room = max((cell_len(block[0].plain) for block in blocks), default=1) + GAP
    in_a_row = max(1, width // room)
    lines: list[Text] = []
    for first in range(0, len(blocks), in_a_row):
        for parts in zip(*blocks[first : first + in_a_row], strict=True):
            lines.append(Text(" " * GAP).join(parts))
        lines.append(Text())
    return Group(*lines[:-1])  # no empty line after the last row


def place_table(lit: SaliencyOverlay, scores: Sequence[str] = ()) -> RenderableType:
    """Return a table of the words with their notes and the most salient thirds of the image.

    `scores` are further figures, one for each word, if any.
    """
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(justify="right", style="bold")
    table.add_column(justify="right")
    for i, (word, note) in enumerate(zip(lit.words, lit.notes, strict=True)):
        (place, share), *others = lit.places(i, 3)
        best, length = "nothing", ""
        if share:
            best, length = f"{place} {percent(share)}", bar(share)
        cells = [Text(note), Text("←"), Text(best), Text(length, "cyan"), Text(strong_shares(others), "dim")]
        if scores:
            cells.append(Text(scores[i]))
        table.add_row(Text(word), *cells)
    return table


def _drawing(lit: SaliencyOverlay, word: int, *, colour: bool) -> list[Text]:
    """Return the lines of one word: the word itself, its note, the grid."""
    rows, columns = lit.weights[word].shape
    across = min(columns, WIDEST)
    down = max(2, 2 * round(rows * across / columns / 2))  # an even number: two rows stand on a line
    weights = lit.weights[word]
    if (rows, columns) != (down, across):
        weights = spread(weights, down, across)
    bright = weights / max(float(weights.max()), 1e-9)
    room = max(across, 8)
    lines = [Text(set_cell_size(lit.words[word], room), "bold"), Text(set_cell_size(lit.notes[word], room), "dim")]
    for upper, lower in zip(bright[::2], bright[1::2], strict=True):
        lines.append(_line(upper, lower, room, colour=colour))
    return lines


def _line(upper: NDArray[np.float32], lower: NDArray[np.float32], room: int, *, colour: bool) -> Text:
    line = Text()
    for above, below in zip(upper.tolist(), lower.tolist(), strict=True):
        if colour:
            line.append("▀", Style(color=brightness_colour(above), bgcolor=brightness_colour(below)))
        else:
            line.append(SHADES[round((above + below) / 2 * (len(SHADES) - 1))])
    line.append(" " * (room - len(upper)))
    return line
