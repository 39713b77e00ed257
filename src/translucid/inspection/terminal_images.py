"""Where a captioner looked, in the terminal."""

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
from translucid.inspection.saliency_overlay import SaliencyOverlay, spread
from translucid.inspection.terminal import BAR, SHADES

WIDEST = 16
"""Cells across of a drawing; a finer grid is drawn coarser."""
GAP = 2


def drawings(lit: SaliencyOverlay, width: int, *, colour: bool) -> RenderableType:
    """For each word a small drawing of the grid, as many beside each other as fit; the brighter the more.

    Args:
        lit: what is drawn.
        width: of the terminal.
        colour: two rows of cells on a line in half blocks of two colours; without it, shades.
    """
    blocks = [_drawing(lit, i, colour=colour) for i in range(len(lit.words))]
    room = max((cell_len(block[0].plain) for block in blocks), default=1) + GAP
    together = max(1, width // room)
    lines: list[Text] = []
    for first in range(0, len(blocks), together):
        for parts in zip(*blocks[first : first + together], strict=True):
            lines.append(Text(" " * GAP).join(parts))
        lines.append(Text())
    return Group(*lines[:-1])


def place_table(lit: SaliencyOverlay, scores: Sequence[str] = ()) -> RenderableType:
    """For each word its probability or what else is noted, and the thirds of the image with most light.

    `scores`: one more figure for each word, if any.
    """
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(justify="right", style="bold")
    table.add_column(justify="right")
    for i, (word, note) in enumerate(zip(lit.words, lit.notes, strict=True)):
        (place, share), *others = lit.places(i, 3)
        rest = ", ".join(f"{name} {percent(part)}" for name, part in others if part >= 0.1)
        bar = "▇" * max(1, round(share * BAR)) if share else ""
        best = f"{place} {percent(share)}" if share else "nothing"
        score = [Text(scores[i])] if scores else []
        table.add_row(Text(word), Text(note), "←", Text(best), Text(bar, "cyan"), Text(rest, "dim"), *score)
    return table


def _drawing(lit: SaliencyOverlay, word: int, *, colour: bool) -> list[Text]:
    """Return the lines of one word: the word itself, what is noted, the grid."""
    rows, columns = lit.weights[word].shape
    across = min(columns, WIDEST)
    down = max(2, 2 * round(rows * across / columns / 2))  # an even number: two rows stand on a line
    exact = (rows, columns) == (down, across)
    weights = lit.weights[word] if exact else spread(lit.weights[word], down, across)
    bright = weights / max(float(weights.max()), 1e-9)
    room = max(across, 8)
    head = [Text(set_cell_size(lit.words[word], room), "bold"), Text(set_cell_size(lit.notes[word], room), "dim")]
    return head + [_line(*pair, room, colour=colour) for pair in zip(bright[::2], bright[1::2], strict=True)]


def _line(upper: NDArray[np.float32], lower: NDArray[np.float32], room: int, *, colour: bool) -> Text:
    line = Text()
    for above, below in zip(upper.tolist(), lower.tolist(), strict=True):
        if colour:
            line.append("▀", Style(color=_colour(above), bgcolor=_colour(below)))
        else:
            line.append(SHADES[round((above + below) / 2 * (len(SHADES) - 1))])
    line.append(" " * (room - len(upper)))
    return line


def _colour(bright: float) -> str:
    level = round(40 + 215 * bright)
    return f"rgb({level // 3},{level // 2},{level})"
