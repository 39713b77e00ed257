"""Rendering figures without a screen, with the installed fonts, and saving them."""

from __future__ import annotations

import io
import logging
import re
from pathlib import Path
from typing import Any

from matplotlib import font_manager, rc_context
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text

from translucid.ground.atomic import write_output
from translucid.ground.errors import UserError

_SCRIPTS = ("CJK", "Arabic", "Hebrew", "Devanagari", "Thai", "Bengali", "Tamil", "Georgian", "Armenian", "Ethiopic")
"""Parts of the names of fonts for other scripts."""


class ShownFigure(Figure):
    """A figure that shows itself in a notebook, whatever backend Matplotlib has there."""

    def _repr_png_(self) -> bytes:
        return rendered(self, "png", dpi=90)


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure of this size in inches; nothing is drawn on a screen."""
    figure = ShownFigure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)  # registers itself as the figure's canvas
    return figure


def save_figure(figure: Figure, file: Path, dpi: int = 144) -> None:
    """Write a figure as .png, .svg or .pdf.

    Raises:
        UserError: the file has another ending.
    """
    kind = file.suffix.lower().lstrip(".")
    if kind not in ("png", "svg", "pdf"):
        raise UserError("is no kind of picture that can be drawn", file=file, fix="End it in .png, .svg or .pdf.")
    write_output(file, rendered(figure, kind, dpi))


def _widen_for_titles(figure: Figure) -> bool:
    """Widen a figure whose titles are cut off, because the layout fits heights only; return whether any were."""
    figure.draw_without_rendering()  # determines the positions of titles
    titles = list(figure.texts)
    for axes in figure.axes:
        titles += [axes.title, axes.xaxis.label]
    excess = 0.0
    for title in titles:
        if title.get_text():
            box = title.get_window_extent()
            excess = max(excess, -box.x0, box.x1 - figure.bbox.width)
    if excess > 0:
        # Titles are centered, so that both sides need the same room; 4 points (of 1/72 inch) stay free on each.
        figure.set_figwidth(figure.get_figwidth() + 2 * excess / figure.dpi + 8 / 72)
    return excess > 0


def rendered(figure: Figure, kind: str, dpi: int = 144) -> bytes:
    """Return the bytes of a figure as `png`, `svg` or `pdf`."""
    # Matplotlib warns of each glyph that no font has; the box that it draws in its place is enough.
    logging.getLogger("matplotlib.font_manager").setLevel(logging.ERROR)
    buffer = io.BytesIO()
    # Without dates and random names, so that the same figure always has the same bytes.
    dates: dict[str, dict[str, Any]] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
    fonts = _fonts()
    with rc_context({"font.family": fonts, "svg.fonttype": "path", "svg.hashsalt": "translucid"}):
        # The settings apply to new texts only; those of the figure were created with the default font.
        for text in figure.findobj(Text):
            text.set_fontfamily(fonts)
        engine, original_dpi = figure.get_layout_engine(), figure.dpi
        # The resolution at which Matplotlib draws: the width of a text depends on it.
        figure.dpi = dpi if kind == "png" else 72
        if not _widen_for_titles(figure):
            figure.set_layout_engine("none")  # the same layout would take half of the time again
        figure.savefig(buffer, format=kind, dpi=dpi, metadata=dates.get(kind))
        figure.set_layout_engine(engine)
        figure.dpi = original_dpi
    return buffer.getvalue()


def _fonts() -> list[str]:
    """Return Matplotlib's own font, then the installed fonts of other scripts, for the glyphs that it lacks."""
    names = {font.name for font in font_manager.fontManager.ttflist}
    pattern = re.compile("|".join(_SCRIPTS))
    return ["DejaVu Sans", *sorted(filter(pattern.search, names))]
