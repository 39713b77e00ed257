"""The parts of which the outlines of things consist."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import cos, hypot, pi, sin
from typing import Any, TypeAlias

Point: TypeAlias = tuple[float, float]
Points: TypeAlias = list[Point]
Part: TypeAlias = tuple[str, Any]
"""`polygon` with points, or `ellipse` with a box (x0, y0, x1, y1), in a square from -1 to 1; with `-`, it is a hole."""
Outlines: TypeAlias = dict[str, list[Part]]
"""The parts of each shape, in the order in which they are painted."""


def turned(corners: int, outer: float = 1.0, inner: float | None = None, first: float = -pi / 2) -> Points:
    """Return the corners of a regular polygon, or of a star with an `inner` radius."""
    radii = [outer] * corners
    if inner is not None:
        radii = [outer, inner] * corners
    points = []
    for i, radius in enumerate(radii):
        angle = first + 2 * pi * i / len(radii)
        points.append((radius * cos(angle), radius * sin(angle)))
    return points


def curve(point: Callable[[float], Point], count: int = 60) -> Points:
    """Return points of a closed curve, from its parametric equation for 0 .. 2 pi."""
    return [point(2 * pi * i / count) for i in range(count)]


def box(left: float, top: float, right: float, bottom: float) -> Points:
    """Return the corners of an upright rectangle."""
    return [(left, top), (right, top), (right, bottom), (left, bottom)]


def line(points: Sequence[Point], width: float) -> Points:
    """Return the outline of a line of some width through points."""
    ahead, back = [], []
    for i, (x, y) in enumerate(points):
        (a, b), (c, d) = points[max(0, i - 1)], points[min(len(points) - 1, i + 1)]
        across, down = width / 2 * (b - d) / hypot(c - a, d - b), width / 2 * (c - a) / hypot(c - a, d - b)
        ahead.append((x + across, y + down))
        back.append((x - across, y - down))
    return ahead + back[::-1]


def mirrored(half: Points) -> Points:
    """Return the corners of a symmetric polygon, given those of its right half from the top down."""
    return half + [(-x, y) for x, y in reversed(half) if x]


def slanted(points: Points) -> Points:
    """Return points turned by 45 degrees, so that the top is at the upper right."""
    return [((x - y) / 2**0.5, (x + y) / 2**0.5) for x, y in points]
