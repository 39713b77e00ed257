"""Figures without a screen, in the fonts that are there, and onto disk."""

from __future__ import annotations

import io
import logging
from pathlib import Path
from typing import Any

from matplotlib import font_manager, rc_context
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from translucid.ground.atomic import write_output
from translucid.ground.errors import UserError

_SCRIPTS = ("CJK", "Arabic", "Hebrew", "Devanagari", "Thai", "Bengali", "Tamil", "Georgian", "Armenian", "Ethiopic")
"""What fonts of other scripts have in their names."""


class ShownFigure(Figure):
    """A figure that shows itself in a notebook, whatever is said of Matplotlib there."""

    def _repr_png_(self) -> bytes:
        return rendered(self, "png", dpi=90)


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure of this size in inches; nothing is drawn on a screen."""
    figure = ShownFigure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def save_figure(figure: Figure, file: Path, dpi: int = 144) -> None:
    """Write a figure as .png, .svg or .pdf.

    Raises:
        UserError: the file ends in something else.
    """
    kind = file.suffix.lower().lstrip(".")
    if kind not in ("png", "svg", "pdf"):
        raise UserError("is no kind of picture that can be drawn", file=file, fix="End it in .png, .svg or .pdf.")
    write_output(file, rendered(figure, kind, dpi))


def _widen_for_titles(figure: Figure) -> None:
    """Widen a figure whose titles are cut off at its edges: the layout makes room for their height only."""
    figure.draw_without_rendering()  # only then titles are where they will be
    titles = [*figure.texts, *(text for axes in figure.axes for text in (axes.title, axes.xaxis.label))]
    extents = [title.get_window_extent() for title in titles if title.get_text()]
    over = max((max(-box.x0, box.x1 - figure.bbox.width) for box in extents), default=0)
    if over > 0:
        # Titles are centred, so that each side needs as much; 4 points stay free.
        figure.set_figwidth(figure.get_figwidth() + 2 * over / figure.dpi + 8 / 72)


def rendered(figure: Figure, kind: str, dpi: int = 144) -> bytes:
    """Return the bytes of a figure as `png`, `svg` or `pdf`."""
    # Matplotlib says on the log what glyphs no font has; it draws a box for them, which says it as well.
    logging.getLogger("matplotlib.font_manager").setLevel(logging.ERROR)
    buffer = io.BytesIO()
    # Without dates and random names, so that the same figure gives the same bytes.
    dates: dict[str, dict[str, Any]] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
    with rc_context({"font.family": _fonts(), "svg.fonttype": "path", "svg.hashsalt": "translucid"}):
        for text in figure.findobj(lambda artist: hasattr(artist, "set_fontfamily")):
            text.set_fontfamily(_fonts())  # type: ignore[attr-defined]
        _widen_for_titles(figure)
        figure.savefig(buffer, format=kind, dpi=dpi, metadata=dates.get(kind))
    return buffer.getvalue()


def _fonts() -> list[str]:
    """Matplotlib's own font first, then those installed for other scripts, which fill in what it lacks."""
    installed = sorted({font.name for font in font_manager.fontManager.ttflist})
    others = [name for name in installed if any(script in name for script in _SCRIPTS)]
    return ["DejaVu Sans", *others]
