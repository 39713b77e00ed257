"""Attention as ribbons between two lines of words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate, pairwise

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import PathPatch, Rectangle
from matplotlib.path import Path

from translucid.inspection.plots.saving import new_figure
from translucid.inspection.words import WordMap

LETTER, SPACE = 0.115, 0.3
"""Inches of a letter, and between words."""
GAP = 1.5
"""Inches between the lines."""
MOST, LEAST = 0.32, 0.02
"""Inches of a ribbon of weight 1, and the smallest weight that is drawn."""
FOR, AGAINST, DOUBT, INK, SOFT = "#2563eb", "#dc5014", "#a84c06", "#1c2430", "#56606d"
UNSURE = 0.3
"""A word under this probability is marked."""


def draw_ribbons(words: WordMap, log_probs: Sequence[float] = ()) -> Figure:
    """Draw source words, target words below them, and ribbons between, each as wide at the target as its weight.

    Weights below 0, as explanations have, are orange.

    Args:
        words: weights between words.
        log_probs: of the target words; a bar under each says how likely the model found it.
    """
    above, below = _places(words.source), _places(words.target)
    width = max(line[-1][1] for line in (above, below)) + SPACE
    lines = [_centred(line, width) for line in (above, below)]
    figure = new_figure(width, GAP + 0.9)
    axes = figure.subplots()
    axes.set(xlim=(0, width), ylim=(-0.45, GAP + 0.45))
    axes.set_axis_off()
    for band in bands(words.weights.tolist(), *lines):
        _ribbon(axes, *band)
    for texts, line, y in ((words.source, lines[0], GAP + 0.2), (words.target, lines[1], -0.2)):
        for text, (start, end) in zip(texts, line, strict=True):
            axes.text((start + end) / 2, y, text, ha="center", va="center", fontsize=10, color=INK)
    for (start, end), value in zip(lines[1], log_probs, strict=bool(log_probs)):
        sure = math.exp(value)
        colour = DOUBT if sure < UNSURE else SOFT
        axes.add_patch(Rectangle((start, -0.38), (end - start) * sure, 0.025, facecolor=colour, linewidth=0))
    return figure


Band = tuple[float, tuple[float, float], tuple[float, float]]
"""A weight, and from where to where its ribbon goes at the source and at the target."""


def bands(
    weights: Sequence[Sequence[float]], above: Sequence[tuple[float, float]], below: Sequence[tuple[float, float]]
) -> list[Band]:
    """Return the ribbons of weights [target, source] between words that go from where to where.

    At a target word they lie side by side, the weight times `MOST` wide; at a source word they are pressed together
    if they are wider than it.
    """
    found = [(t, s) for t, row in enumerate(weights) for s, weight in enumerate(row) if abs(weight) >= LEAST]
    wide = {}
    for t, s in found:
        total = max(1.0, sum(map(abs, weights[t])))
        wide[t, s] = abs(weights[t][s]) * min(MOST, below[t][1] - below[t][0]) / total
    into = {
        (t, s): edges
        for t, word in enumerate(below)
        for s, edges in _side_by_side(word, {s: wide[t, s] for u, s in found if u == t}).items()
    }
    start = {
        (t, s): edges
        for s, word in enumerate(above)
        for t, edges in _side_by_side(word, {t: wide[t, s] for t, v in found if v == s}).items()
    }
    return [(weights[t][s], start[t, s], into[t, s]) for t, s in found]


def _side_by_side(word: tuple[float, float], wide: dict[int, float]) -> dict[int, tuple[float, float]]:
    total = sum(wide.values())
    scale = min(1.0, (word[1] - word[0]) / total) if total else 1.0
    edges = list(accumulate((scale * one for one in wide.values()), initial=sum(word) / 2 - scale * total / 2))
    return dict(zip(wide, pairwise(edges), strict=True))


def _ribbon(axes: Axes, weight: float, above: tuple[float, float], below: tuple[float, float]) -> None:
    half = GAP / 2
    points = [(above[0], GAP), (above[0], half), (below[0], half), (below[0], 0)]
    points += [(below[1], 0), (below[1], half), (above[1], half), (above[1], GAP), (above[0], GAP)]
    curve = [Path.CURVE4] * 3
    path = Path(points, [Path.MOVETO, *curve, Path.LINETO, *curve, Path.CLOSEPOLY])
    colour = AGAINST if weight < 0 else FOR
    axes.add_patch(PathPatch(path, facecolor=colour, alpha=0.15 + 0.6 * min(1.0, abs(weight)), linewidth=0))


def _places(words: Sequence[str]) -> list[tuple[float, float]]:
    """Return from where to where each word goes, in inches."""
    widths = [max(0.25, LETTER * len(word)) for word in words]
    starts = accumulate((width + SPACE for width in widths), initial=SPACE)
    return [(start, start + width) for start, width in zip(starts, widths, strict=False)]


def _centred(line: Sequence[tuple[float, float]], width: float) -> list[tuple[float, float]]:
    shift = (width - SPACE - line[-1][1]) / 2
    return [(start + shift, end + shift) for start, end in line]
