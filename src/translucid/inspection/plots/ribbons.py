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
"""The width of a letter and the space between words, in inches."""
GAP = 1.5
"""The distance between the two lines, in inches."""
MAX_WIDTH, MIN_WEIGHT = 0.32, 0.02
"""The width of a ribbon of weight 1 in inches, and the smallest weight that is drawn."""
FOR, AGAINST, DOUBT, INK, SOFT = "#2563eb", "#dc5014", "#a84c06", "#1c2430", "#56606d"
"""The colors of positive and negative weights, of bars of improbable words, of words, and of other bars."""
UNSURE = 0.3
"""The bars of words with a smaller probability are orange."""


def draw_ribbons(words: WordMap, log_probs: Sequence[float] = ()) -> Figure:
    """Draw source words, target words below them, and ribbons between, each as wide at the target as its weight.

    Negative weights, which explanations may have, are orange.

    Args:
        words: weights between words.
        log_probs: log-probabilities of the target words, if a bar under each word is to show its probability.
    """
    above, below = _intervals(words.source), _intervals(words.target)
    width = max(above[-1][1], below[-1][1]) + SPACE
    above, below = _centered(above, width), _centered(below, width)
    figure = new_figure(width, GAP + 0.9)
    axes = figure.subplots()
    axes.set(xlim=(0, width), ylim=(-0.45, GAP + 0.45))
    axes.set_axis_off()
    for band in bands(words.weights.tolist(), above, below):
        _ribbon(axes, *band)
    for texts, line, y, context in ((words.source, above, GAP + 0.2, words.context), (words.target, below, -0.2, 0)):
        for position, (text, (start, end)) in enumerate(zip(texts, line, strict=True)):
            # Words of previous sentences are gray and in italics.
            color, style = (SOFT, "italic") if position < context else (INK, "normal")
            middle = (start + end) / 2
            axes.text(middle, y, text, ha="center", va="center", fontsize=10, color=color, style=style)
    for (start, end), value in zip(below, log_probs, strict=bool(log_probs)):
        probability = math.exp(value)
        color = DOUBT if probability < UNSURE else SOFT
        axes.add_patch(Rectangle((start, -0.38), (end - start) * probability, 0.025, facecolor=color, linewidth=0))
    return figure


Interval = tuple[float, float]
"""The left and right edges of a word or of one end of a ribbon, in inches."""
Band = tuple[float, Interval, Interval]
"""A weight, and the ends of its ribbon at the source and at the target."""


def bands(weights: Sequence[Sequence[float]], above: Sequence[Interval], below: Sequence[Interval]) -> list[Band]:
    """Return the ribbons of weights [target, source] between words in these places.

    At a target word ribbons lie side by side, each as wide as the weight times `MAX_WIDTH`; at a source word
    they are narrower if together they would be wider than the word.
    """
    widths: dict[tuple[int, int], float] = {}  # by target and source word
    for target, row in enumerate(weights):
        # The weights of an explanation may sum to more than 1.
        unit = min(MAX_WIDTH, below[target][1] - below[target][0])
        total = max(1.0, sum(map(abs, row)))
        for source, weight in enumerate(row):
            if abs(weight) >= MIN_WEIGHT:
                widths[target, source] = abs(weight) * unit / total
    at_target: dict[tuple[int, int], Interval] = {}
    for target, word in enumerate(below):
        at_target |= _side_by_side(word, {pair: width for pair, width in widths.items() if pair[0] == target})
    at_source: dict[tuple[int, int], Interval] = {}
    for source, word in enumerate(above):
        at_source |= _side_by_side(word, {pair: width for pair, width in widths.items() if pair[1] == source})
    return [(weights[t][s], at_source[t, s], at_target[t, s]) for t, s in widths]


def _side_by_side(word: Interval, widths: dict[tuple[int, int], float]) -> dict[tuple[int, int], Interval]:
    """Return the intervals of ribbons of these widths around the middle of a word, scaled to fit."""
    total = sum(widths.values())
    scale = min(1.0, (word[1] - word[0]) / total) if total else 1.0
    scaled = [scale * width for width in widths.values()]
    edges = accumulate(scaled, initial=sum(word) / 2 - scale * total / 2)
    return dict(zip(widths, pairwise(edges), strict=True))


def _ribbon(axes: Axes, weight: float, above: Interval, below: Interval) -> None:
    """Draw a ribbon: two Bézier curves that leave and arrive vertically, with straight ends."""
    half = GAP / 2
    points = [(above[0], GAP), (above[0], half), (below[0], half), (below[0], 0)]
    points += [(below[1], 0), (below[1], half), (above[1], half), (above[1], GAP), (above[0], GAP)]
    curve = [Path.CURVE4] * 3
    path = Path(points, [Path.MOVETO, *curve, Path.LINETO, *curve, Path.CLOSEPOLY])
    color = AGAINST if weight < 0 else FOR
    axes.add_patch(PathPatch(path, facecolor=color, alpha=0.15 + 0.6 * min(1.0, abs(weight)), linewidth=0))


def _intervals(words: Sequence[str]) -> list[Interval]:
    """Return the interval of each word on a line, from left to right."""
    intervals, start = [], SPACE
    for word in words:
        end = start + max(0.25, LETTER * len(word))
        intervals.append((start, end))
        start = end + SPACE
    return intervals


def _centered(line: Sequence[Interval], width: float) -> list[Interval]:
    """Move a line to the middle of the figure."""
    shift = (width - SPACE - line[-1][1]) / 2
    return [(start + shift, end + shift) for start, end in line]
