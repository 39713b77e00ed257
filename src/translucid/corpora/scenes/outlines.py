"""The outlines of all shapes: the rows of `outlines.tsv`, and curves that are computed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from math import cos, hypot, pi, sin
from typing import NamedTuple, TypeAlias

from translucid.corpora import table

Point: TypeAlias = tuple[float, float]
Points: TypeAlias = list[Point]


class Part(NamedTuple):
    """A part of an outline, in a square from -1 to 1."""

    points: Points
    """The corners of a polygon, or opposite corners of the box around an ellipse."""
    is_ellipse: bool
    is_hole: bool


def outlines() -> dict[str, list[Part]]:
    """Read the parts of each shape, in the order in which they are painted.

    Each row of `outlines.tsv` describes a part by its form, which begins with `-` if it is a hole, and by points:

    - `ellipse` and `box` (an upright rectangle): two opposite corners.
    - `polygon`: the corners.
    - `slanted`: the corners of a polygon before it is turned by 45 degrees, so that its top is at the upper right.
    - `mirrored`: the corners of the right half of a symmetric polygon, from the top down.
    - `line`: the points that a line of some width joins.
    - `curve`: a key of `CURVES`.
    """
    shapes = defaultdict(list)
    for row in table("scenes/outlines.tsv"):
        form = row["form"].removeprefix("-")
        points = _points(form, row["points"], float(row["width"] or 0))
        shapes[row["shape"]].append(Part(points, form == "ellipse", form != row["form"]))
    return shapes


def _points(form: str, text: str, width: float) -> Points:
    """Return the points of a part, given a row of `outlines.tsv`."""
    if form == "curve":
        return CURVES[text]
    points = []
    for point in text.split():
        x, y = map(float, point.split(","))
        points.append((x, y))
    if form == "box":
        (left, top), (right, bottom) = points
        return [(left, top), (right, top), (right, bottom), (left, bottom)]
    if form == "slanted":
        return [((x - y) / 2**0.5, (x + y) / 2**0.5) for x, y in points]
    if form == "mirrored":
        return points + [(-x, y) for x, y in reversed(points) if x]
    if form == "line":
        return line(points, width)
    return points


def line(points: Sequence[Point], width: float) -> Points:
    """Return the outline of a line of some width through points."""
    ahead, back = [], []
    for i, (x, y) in enumerate(points):
        (a, b), (c, d) = points[max(0, i - 1)], points[min(len(points) - 1, i + 1)]
        across, down = width / 2 * (b - d) / hypot(c - a, d - b), width / 2 * (c - a) / hypot(c - a, d - b)
        ahead.append((x + across, y + down))
        back.append((x - across, y - down))
    return ahead + back[::-1]


def star(corners: int, inner: float) -> Points:
    """Return the corners of a star with outer radius 1, the first at the top."""
    points = []
    for i, radius in enumerate([1.0, inner] * corners):
        angle = -pi / 2 + 2 * pi * i / (2 * corners)
        points.append((radius * cos(angle), radius * sin(angle)))
    return points


def curve(point: Callable[[float], Point]) -> Points:
    """Return points of a closed curve, from its parametric equation for 0 .. 2 pi."""
    return [point(2 * pi * i / 60) for i in range(60)]


def _heart(t: float) -> Point:
    return sin(t) ** 3, -(13 * cos(t) - 5 * cos(2 * t) - 2 * cos(3 * t) - cos(4 * t)) / 16


def _eye(t: float) -> Point:
    return cos(t), 0.72 * sin(t) * abs(sin(t)) ** 0.5


def _white_of_the_eye(t: float) -> Point:
    return 0.72 * cos(t), 0.48 * sin(t) * abs(sin(t)) ** 0.5


def _leaf(t: float) -> Point:
    return 0.15 + 0.85 * cos(t), 0.55 * sin(t) * abs(sin(t))


def _spiral() -> Points:
    points = []
    for i in range(61):
        radius = 0.1 + 0.77 * i / 60
        points.append((radius * cos(6 * pi * radius), radius * sin(6 * pi * radius)))
    return points


CURVES = {
    "eye": curve(_eye),
    "white of the eye": curve(_white_of_the_eye),
    "heart": curve(_heart),
    "leaf": curve(_leaf),
    "spiral": line(_spiral(), 0.2),
    "star": star(5, 0.42),
    "sun": star(10, 0.62),
}
"""Parts that are computed, by name."""
OUTLINES = outlines()
