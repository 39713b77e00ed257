"""Outlines of plain figures and signs."""

from __future__ import annotations

from math import cos, pi, sin

from .parts import Outlines, Points, box, curve, line, turned


def _spiral() -> Points:
    points = []
    for i in range(61):
        radius = 0.1 + 0.77 * i / 60
        points.append((radius * cos(6 * pi * radius), radius * sin(6 * pi * radius)))
    return points


SIGNS: Outlines = {
    "arrow": [("polygon", [(-1, -0.3), (0.1, -0.3), (0.1, -0.8), (1, 0), (0.1, 0.8), (0.1, 0.3), (-1, 0.3)])],
    "circle": [("ellipse", (-1, -1, 1, 1))],
    "cross": [
        ("polygon", box(-0.33, -1, 0.33, 1)),
        ("polygon", box(-1, -0.33, 1, 0.33)),
    ],
    "diamond": [("polygon", [(0, -1), (0.7, 0), (0, 1), (-0.7, 0)])],
    "frame": [
        ("polygon", box(-1, -1, 1, 1)),
        ("-polygon", box(-0.72, -0.72, 0.72, 0.72)),
    ],
    "heart": [
        (
            "polygon",
            curve(
                lambda t: (sin(t) ** 3, -(13 * cos(t) - 5 * cos(2 * t) - 2 * cos(3 * t) - cos(4 * t)) / 16),
            ),
        )
    ],
    "note": [
        ("ellipse", (-0.75, 0.3, 0.1, 0.95)),
        ("polygon", box(-0.1, -1, 0.1, 0.65)),
        ("polygon", [(0.1, -1), (0.75, -0.45), (0.65, 0.05), (0.1, -0.4)]),
    ],
    "oval": [("ellipse", (-1, -0.58, 1, 0.58))],
    "ring": [("ellipse", (-1, -1, 1, 1)), ("-ellipse", (-0.7, -0.7, 0.7, 0.7))],
    "spiral": [("polygon", line(_spiral(), 0.2))],
    "square": [("polygon", box(-0.88, -0.88, 0.88, 0.88))],
    "star": [("polygon", turned(5, inner=0.42))],
    "triangle": [("polygon", [(0, -0.9), (1, 0.85), (-1, 0.85)])],
}
