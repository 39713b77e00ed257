"""From a scene to a picture, and to where in it each thing is.

A thing is painted four times as large and then made smaller, which smooths its edges. All that is drawn at random (the
grain of grounds) depends on the scene alone, so that the same scene gives the same picture.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from math import ceil, cos, floor, pi, sin
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from .scene import Scene, Thing
from .words import COLOURS, GROUNDS

SIZE = 96
"""Of a picture in pixels, if not said otherwise."""
_FINER = 4

_Points: TypeAlias = list[tuple[float, float]]
_Part: TypeAlias = tuple[str, Any]
"""`polygon` with points, or `ellipse` with a box (x0, y0, x1, y1), in a square from -1 to 1; after `-` it is a hole."""


def paint(scene: Scene, size: int = SIZE) -> Image.Image:
    """Return the picture of a scene, `size` x `size`, RGB."""
    picture = _ground(scene, size)
    for thing in _from_behind(scene):
        corner, stencil = _stencil(thing, size)
        smaller = (stencil.width // _FINER, stencil.height // _FINER)
        surface = _surface(thing, corner, stencil.size, size * _FINER).resize(smaller, Image.Resampling.BOX)
        picture.paste(surface, corner, stencil.resize(smaller, Image.Resampling.BOX))
    return picture


def masks(scene: Scene, size: int = SIZE) -> NDArray[np.bool_]:
    """Return where each thing is seen, [things, size, size]; what stands before another hides it."""
    owner = np.full((size, size), -1)
    for thing in _from_behind(scene):
        (left, top), stencil = _stencil(thing, size)
        width, height = stencil.width // _FINER, stencil.height // _FINER
        covered = np.asarray(stencil.resize((width, height), Image.Resampling.BOX)) >= 128
        owner[top : top + height, left : left + width][covered] = scene.things.index(thing)
    return np.stack([owner == number for number in range(len(scene.things))])


def boxes(scene: Scene, size: int = SIZE) -> list[tuple[int, int, int, int]]:
    """Return the box around each thing in pixels: left, top, right, bottom, the last two excluded."""
    found = []
    for mask in masks(scene, size):
        rows, columns = np.flatnonzero(mask.any(1)), np.flatnonzero(mask.any(0))
        found.append((int(columns[0]), int(rows[0]), int(columns[-1]) + 1, int(rows[-1]) + 1))
    return found


def _from_behind(scene: Scene) -> list[Thing]:
    """What is inside of another stands before it."""
    return sorted(scene.things, key=lambda one: -one.reach)


def _ground(scene: Scene, size: int) -> Image.Image:
    """Paint the ground: its colour, and a grain that tells what it is."""
    rng = np.random.default_rng(int.from_bytes(hashlib.blake2b(repr(scene.things).encode(), digest_size=8).digest()))
    name, (_, colour) = scene.ground, GROUNDS[scene.ground]
    x, y = (np.arange(size) + 0.5)[None, :] / size, (np.arange(size) + 0.5)[:, None] / size
    noise = rng.normal(size=(size, size))
    grain: NDArray[Any]
    if name == "grass":
        grain = 12 * noise + 12 * np.sin(40 * pi * x + 2 * noise)
    elif name == "water":
        grain = 20 * np.sin(24 * pi * (y + 0.012 * np.sin(10 * pi * x)))
    elif name == "carpet":
        grain = 16.0 * (np.sin(16 * pi * (x + y)) * np.sin(16 * pi * (x - y)) > 0)
    elif name == "floor":
        grain = 3 * noise - 34 * (y * 6 % 1 < 0.08)
    elif name == "wall":
        grain = -30.0 * ((y * 8 % 1 < 0.12) | ((x * 4 + (y * 8 // 1 % 2) / 2) % 1 < 0.06))
    elif name == "paper":
        grain = -30.0 * (y * 12 % 1 < 0.12) * np.ones_like(x)
    elif name == "road":
        grain = 6 * noise + 110 * ((abs(x - 0.5) < 0.016) & (y * 5 % 1 < 0.6))
    elif name == "night sky":
        grain = 200.0 * (rng.random((size, size)) > 0.992)
    elif name == "beach":
        grain = 5 * noise + 40 * (y < 0.2 + 0.02 * np.sin(8 * pi * x))
    else:
        grain = {"sand": 8, "snow": 3, "gravel": 24}[name] * noise
    return Image.fromarray((np.array(colour) + grain[..., None]).clip(0, 255).astype(np.uint8))


def _stencil(thing: Thing, size: int) -> tuple[tuple[int, int], Image.Image]:
    """Return the form of a thing, 255 where it is, so many times finer, and the pixel of its upper left corner."""
    left, top = (max(0, floor((at - thing.reach) * size)) for at in (thing.x, thing.y))
    right, bottom = (min(size, ceil((at + thing.reach) * size) + 1) for at in (thing.x, thing.y))
    image = Image.new("L", ((right - left) * _FINER, (bottom - top) * _FINER))
    draw = ImageDraw.Draw(image)

    def at(x: float, y: float) -> tuple[float, float]:
        across, down = (thing.x + x * thing.reach) * size - left, (thing.y + y * thing.reach) * size - top
        return across * _FINER, down * _FINER

    for kind, form in _SHAPES[thing.shape]:
        fill = 0 if kind.startswith("-") else 255
        if kind.endswith("polygon"):
            draw.polygon([at(*point) for point in form], fill=fill)
        else:
            draw.ellipse([*at(*form[:2]), *at(*form[2:])], fill=fill)
    return (left, top), image


def _surface(thing: Thing, corner: tuple[int, int], extent: tuple[int, int], whole: int) -> Image.Image:
    """Return the colour of a thing in a box of the finer picture, by its material."""
    x = ((np.arange(extent[0]) + corner[0] * _FINER) / whole - thing.x)[None, :]
    y = ((np.arange(extent[1]) + corner[1] * _FINER) / whole - thing.y)[:, None]
    colour = np.array(COLOURS[thing.colour], float)
    other = colour * 0.45 if colour.mean() > 90 else colour + 0.55 * (255 - colour)
    share: NDArray[Any] = np.zeros(extent[::-1])
    u, v = x / 0.085, y / 0.085  # patterns are as coarse on large things as on small ones
    if thing.material == "striped":
        share = (u + v) * 1.25 % 1 < 0.5
    elif thing.material == "dotted":
        share = ((u * 1.6 % 1 - 0.5) ** 2 + (v * 1.6 % 1 - 0.5) ** 2) < 0.09
    elif thing.material == "checked":
        share = (u * 1.3 // 1 + v * 1.3 // 1) % 2
    elif thing.material == "shiny":
        from_light = np.hypot(x + 0.4 * thing.reach, y + 0.4 * thing.reach) / thing.reach
        colour, other, share = colour * 0.75, np.full(3, 255.0), np.exp(-5 * from_light**2)
    image = colour + share[..., None] * (other - colour)
    return Image.fromarray(image.clip(0, 255).astype(np.uint8))


def _turned(corners: int, outer: float = 1.0, inner: float | None = None, first: float = -pi / 2) -> _Points:
    """Return the corners of a regular polygon, or of a star with an `inner` radius."""
    count = corners if inner is None else 2 * corners
    radii = [outer if inner is None or i % 2 == 0 else inner for i in range(count)]
    return [(r * cos(first + 2 * pi * i / count), r * sin(first + 2 * pi * i / count)) for i, r in enumerate(radii)]


def _curve(point: Callable[[float], tuple[float, float]], count: int = 60) -> _Points:
    return [point(2 * pi * i / count) for i in range(count)]


_SHAPES: dict[str, list[_Part]] = {
    "anchor": [
        ("ellipse", (-0.25, -1, 0.25, -0.5)),
        ("-ellipse", (-0.1, -0.85, 0.1, -0.65)),
        ("ellipse", (-0.95, -0.9, 0.95, 1)),
        ("-ellipse", (-0.68, -1.2, 0.68, 0.65)),
        ("polygon", [(-0.13, -0.6), (0.13, -0.6), (0.13, 0.9), (-0.13, 0.9)]),
        ("polygon", [(-0.5, -0.35), (0.5, -0.35), (0.5, -0.12), (-0.5, -0.12)]),
        ("-polygon", [(-1.1, -1.1), (-0.5, -1.1), (-0.5, 0.1), (-1.1, 0.1)]),
        ("-polygon", [(1.1, -1.1), (0.5, -1.1), (0.5, 0.1), (1.1, 0.1)]),
    ],
    "apple": [
        ("ellipse", (-0.9, -0.5, 0.15, 0.95)),
        ("ellipse", (-0.15, -0.5, 0.9, 0.95)),
        ("polygon", [(-0.08, -0.95), (0.12, -0.95), (0.06, -0.2), (-0.06, -0.2)]),
        ("ellipse", (0.08, -1, 0.7, -0.62)),
    ],
    "arrow": [("polygon", [(-1, -0.3), (0.1, -0.3), (0.1, -0.8), (1, 0), (0.1, 0.8), (0.1, 0.3), (-1, 0.3)])],
    "bell": [
        ("ellipse", (-0.6, -0.9, 0.6, 0.5)),
        ("polygon", [(-0.6, -0.2), (0.6, -0.2), (0.95, 0.6), (-0.95, 0.6)]),
        ("ellipse", (-0.2, 0.5, 0.2, 0.95)),
    ],
    "boat": [
        ("polygon", [(-1, 0.3), (1, 0.3), (0.6, 0.9), (-0.6, 0.9)]),
        ("polygon", [(-0.05, -1), (0.75, 0.15), (-0.05, 0.15)]),
        ("polygon", [(-0.15, -0.8), (-0.15, 0.15), (-0.7, 0.15)]),
    ],
    "bolt": [("polygon", [(0.3, -1), (-0.6, 0.15), (-0.05, 0.15), (-0.3, 1), (0.6, -0.25), (0.05, -0.25)])],
    "bottle": [
        (
            "polygon",
            [
                (-0.15, -1),
                (0.15, -1),
                (0.15, -0.45),
                (0.45, -0.1),
                (0.45, 1),
                (-0.45, 1),
                (-0.45, -0.1),
                (-0.15, -0.45),
            ],
        )
    ],
    "bow": [
        ("polygon", [(-1, -0.65), (0, -0.12), (1, -0.65), (1, 0.65), (0, 0.12), (-1, 0.65)]),
        ("ellipse", (-0.26, -0.26, 0.26, 0.26)),
    ],
    "butterfly": [
        ("ellipse", (-1, -0.9, -0.08, 0.15)),
        ("ellipse", (0.08, -0.9, 1, 0.15)),
        ("ellipse", (-0.8, 0, -0.05, 0.9)),
        ("ellipse", (0.05, 0, 0.8, 0.9)),
        ("ellipse", (-0.12, -0.7, 0.12, 0.8)),
    ],
    "cactus": [
        ("polygon", [(-0.25, -0.8), (0.25, -0.8), (0.25, 1), (-0.25, 1)]),
        ("ellipse", (-0.25, -1, 0.25, -0.55)),
        ("polygon", [(-0.9, -0.35), (-0.6, -0.35), (-0.6, 0.1), (0, 0.1), (0, 0.4), (-0.9, 0.4)]),
        ("polygon", [(0.9, -0.6), (0.6, -0.6), (0.6, -0.1), (0, -0.1), (0, 0.2), (0.9, 0.2)]),
    ],
    "cherry": [
        ("ellipse", (-1, 0, -0.05, 0.95)),
        ("ellipse", (0.05, 0, 1, 0.95)),
        ("polygon", [(-0.58, 0.1), (0.1, -1), (0.24, -0.95), (-0.42, 0.1)]),
        ("polygon", [(0.42, 0.1), (0.05, -0.9), (0.2, -1), (0.6, 0.1)]),
    ],
    "circle": [("ellipse", (-1, -1, 1, 1))],
    "cloud": [
        ("ellipse", (-1, -0.25, -0.1, 0.65)),
        ("ellipse", (-0.6, -0.75, 0.4, 0.3)),
        ("ellipse", (0, -0.45, 1, 0.65)),
        ("polygon", [(-0.6, 0.2), (0.6, 0.2), (0.6, 0.65), (-0.6, 0.65)]),
    ],
    "cross": [
        ("polygon", [(-0.33, -1), (0.33, -1), (0.33, 1), (-0.33, 1)]),
        ("polygon", [(-1, -0.33), (1, -0.33), (1, 0.33), (-1, 0.33)]),
    ],
    "crown": [("polygon", [(-1, -0.6), (-0.5, 0), (0, -0.85), (0.5, 0), (1, -0.6), (0.8, 0.8), (-0.8, 0.8)])],
    "cup": [
        ("ellipse", (0.25, -0.5, 1, 0.5)),
        ("-ellipse", (0.42, -0.3, 0.82, 0.3)),
        ("polygon", [(-0.9, -0.8), (0.6, -0.8), (0.4, 0.8), (-0.7, 0.8)]),
    ],
    "diamond": [("polygon", [(0, -1), (0.7, 0), (0, 1), (-0.7, 0)])],
    "drop": [("ellipse", (-0.65, -0.3, 0.65, 1)), ("polygon", [(0, -1), (0.58, 0.1), (-0.58, 0.1)])],
    "fish": [
        ("ellipse", (-1, -0.55, 0.55, 0.55)),
        ("polygon", [(0.3, 0), (1, -0.6), (0.8, 0), (1, 0.6)]),
        ("-ellipse", (-0.72, -0.25, -0.5, -0.03)),
    ],
    "flag": [
        ("polygon", [(-0.8, -1), (-0.62, -1), (-0.62, 1), (-0.8, 1)]),
        ("polygon", [(-0.7, -0.95), (0.9, -0.95), (0.6, -0.45), (0.9, 0.05), (-0.7, 0.05)]),
    ],
    "flower": [
        *(("ellipse", (0.6 * x - 0.4, 0.6 * y - 0.4, 0.6 * x + 0.4, 0.6 * y + 0.4)) for x, y in _turned(6)),
        ("-ellipse", (-0.25, -0.25, 0.25, 0.25)),
    ],
    "frame": [
        ("polygon", [(-1, -1), (1, -1), (1, 1), (-1, 1)]),
        ("-polygon", [(-0.72, -0.72), (0.72, -0.72), (0.72, 0.72), (-0.72, 0.72)]),
    ],
    "hammer": [
        ("polygon", [(-0.8, -0.95), (0.6, -0.95), (0.9, -0.45), (-0.8, -0.45)]),
        ("polygon", [(-0.2, -0.5), (0.15, -0.5), (0.15, 1), (-0.2, 1)]),
    ],
    "hat": [
        ("polygon", [(-1, 0.45), (1, 0.45), (1, 0.7), (-1, 0.7)]),
        ("polygon", [(-0.55, -0.7), (0.55, -0.7), (0.6, 0.5), (-0.6, 0.5)]),
    ],
    "heart": [
        (
            "polygon",
            _curve(
                lambda t: (sin(t) ** 3, -(13 * cos(t) - 5 * cos(2 * t) - 2 * cos(3 * t) - cos(4 * t)) / 16),
            ),
        )
    ],
    "hourglass": [("polygon", [(-0.75, -1), (0.75, -1), (0.1, 0), (0.75, 1), (-0.75, 1), (-0.1, 0)])],
    "house": [
        ("polygon", [(0, -1), (1, -0.15), (0.75, -0.15), (0.75, 0.95), (-0.75, 0.95), (-0.75, -0.15), (-1, -0.15)]),
        ("-polygon", [(-0.2, 0.35), (0.2, 0.35), (0.2, 0.95), (-0.2, 0.95)]),
    ],
    "key": [
        ("ellipse", (-1, -0.5, 0, 0.5)),
        ("-ellipse", (-0.7, -0.2, -0.3, 0.2)),
        (
            "polygon",
            [
                (-0.1, -0.14),
                (1, -0.14),
                (1, 0.5),
                (0.8, 0.5),
                (0.8, 0.14),
                (0.6, 0.14),
                (0.6, 0.4),
                (0.42, 0.4),
                (0.42, 0.14),
                (-0.1, 0.14),
            ],
        ),
    ],
    "knife": [
        ("polygon", [(-1, 0.3), (-0.2, -0.3), (0.3, -0.3), (0.3, 0.3)]),
        ("polygon", [(0.25, -0.18), (1, -0.18), (1, 0.2), (0.25, 0.2)]),
    ],
    "ladder": [
        ("polygon", [(-0.6, -1), (-0.38, -1), (-0.38, 1), (-0.6, 1)]),
        ("polygon", [(0.6, -1), (0.38, -1), (0.38, 1), (0.6, 1)]),
        *(("polygon", [(-0.5, y), (0.5, y), (0.5, y + 0.18), (-0.5, y + 0.18)]) for y in (-0.8, -0.32, 0.16, 0.64)),
    ],
    "lamp": [
        ("polygon", [(-0.4, -1), (0.4, -1), (0.85, 0.1), (-0.85, 0.1)]),
        ("polygon", [(-0.1, 0.1), (0.1, 0.1), (0.1, 0.8), (-0.1, 0.8)]),
        ("ellipse", (-0.55, 0.7, 0.55, 1)),
    ],
    "leaf": [
        ("polygon", _curve(lambda t: (0.15 + 0.85 * cos(t), 0.55 * sin(t) * abs(sin(t))))),
        ("polygon", [(-1, -0.08), (-0.5, -0.08), (-0.5, 0.08), (-1, 0.08)]),
    ],
    "moon": [("ellipse", (-1, -1, 1, 1)), ("-ellipse", (-0.45, -0.95, 1.35, 0.85))],
    "mouse": [
        ("ellipse", (-0.75, -0.25, 0.7, 0.75)),
        ("polygon", [(-1, 0.45), (-0.4, -0.15), (-0.3, 0.7)]),
        ("ellipse", (-0.6, -0.75, 0, -0.05)),
        ("polygon", [(0.5, 0.5), (1, -0.4), (1, -0.15), (0.6, 0.7)]),
    ],
    "mushroom": [
        ("ellipse", (-1, -0.95, 1, 0.75)),
        ("-polygon", [(-1, -0.05), (1, -0.05), (1, 1), (-1, 1)]),
        ("polygon", [(-0.3, -0.1), (0.3, -0.1), (0.42, 0.95), (-0.42, 0.95)]),
    ],
    "note": [
        ("ellipse", (-0.75, 0.3, 0.1, 0.95)),
        ("polygon", [(-0.1, -1), (0.1, -1), (0.1, 0.65), (-0.1, 0.65)]),
        ("polygon", [(0.1, -1), (0.75, -0.45), (0.65, 0.05), (0.1, -0.4)]),
    ],
    "oval": [("ellipse", (-1, -0.58, 1, 0.58))],
    "pear": [
        ("ellipse", (-0.75, -0.2, 0.75, 1)),
        ("ellipse", (-0.42, -0.8, 0.42, 0.4)),
        ("polygon", [(-0.06, -1), (0.14, -1), (0.06, -0.6), (-0.06, -0.6)]),
    ],
    "ring": [("ellipse", (-1, -1, 1, 1)), ("-ellipse", (-0.7, -0.7, 0.7, 0.7))],
    "snowman": [
        ("ellipse", (-0.7, -0.15, 0.7, 1)),
        ("ellipse", (-0.45, -0.75, 0.45, 0.1)),
        ("polygon", [(-0.3, -1), (0.3, -1), (0.3, -0.6), (-0.3, -0.6)]),
        ("polygon", [(-0.55, -0.7), (0.55, -0.7), (0.55, -0.58), (-0.55, -0.58)]),
    ],
    "spoon": [
        ("ellipse", (-1, -0.42, -0.05, 0.42)),
        ("polygon", [(-0.15, -0.12), (1, -0.16), (1, 0.16), (-0.15, 0.12)]),
    ],
    "square": [("polygon", [(-0.88, -0.88), (0.88, -0.88), (0.88, 0.88), (-0.88, 0.88)])],
    "star": [("polygon", _turned(5, inner=0.42))],
    "sun": [("polygon", _turned(10, inner=0.62)), ("ellipse", (-0.66, -0.66, 0.66, 0.66))],
    "tower": [
        ("polygon", [(-0.4, -0.5), (0.4, -0.5), (0.55, 1), (-0.55, 1)]),
        (
            "polygon",
            [
                (-0.6, -1),
                (-0.3, -1),
                (-0.3, -0.75),
                (-0.15, -0.75),
                (-0.15, -1),
                (0.15, -1),
                (0.15, -0.75),
                (0.3, -0.75),
                (0.3, -1),
                (0.6, -1),
                (0.6, -0.4),
                (-0.6, -0.4),
            ],
        ),
        ("-polygon", [(-0.15, 0.4), (0.15, 0.4), (0.15, 1), (-0.15, 1)]),
    ],
    "tree": [
        ("polygon", [(0, -1), (0.55, -0.3), (-0.55, -0.3)]),
        ("polygon", [(0, -0.65), (0.75, 0.2), (-0.75, 0.2)]),
        ("polygon", [(0, -0.2), (0.95, 0.65), (-0.95, 0.65)]),
        ("polygon", [(-0.18, 0.6), (0.18, 0.6), (0.18, 1), (-0.18, 1)]),
    ],
    "triangle": [("polygon", [(0, -0.9), (1, 0.85), (-1, 0.85)])],
    "umbrella": [
        ("ellipse", (-1, -0.9, 1, 0.9)),
        ("-polygon", [(-1.1, 0), (1.1, 0), (1.1, 1), (-1.1, 1)]),
        ("polygon", [(-0.08, -0.1), (0.08, -0.1), (0.08, 0.95), (-0.08, 0.95)]),
        ("polygon", [(-0.45, 0.78), (0.08, 0.78), (0.08, 0.95), (-0.45, 0.95)]),
    ],
    "wheel": [
        ("ellipse", (-1, -1, 1, 1)),
        ("-ellipse", (-0.72, -0.72, 0.72, 0.72)),
        *(
            (
                "polygon",
                [
                    (-0.1 * y - x, 0.1 * x - y),
                    (0.1 * y - x, -0.1 * x - y),
                    (0.1 * y + x, -0.1 * x + y),
                    (x - 0.1 * y, y + 0.1 * x),
                ],
            )
            for x, y in ((0.8, 0), (0, 0.8), (0.57, 0.57), (0.57, -0.57))
        ),
        ("ellipse", (-0.22, -0.22, 0.22, 0.22)),
    ],
}
