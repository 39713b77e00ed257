"""The picture of a scene, with the outlines of its shapes, and the place of each thing in it.

A thing is painted four times as large and then reduced, which smooths its edges. Random details (the grain of grounds)
depend only on the scene, so the same scene gives the same picture. Outlines are rows of `outlines.tsv`, or curves that
are computed.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Sequence
from math import ceil, cos, floor, hypot, pi, sin
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from translucid.corpora import table
from translucid.ground.errors import missing_package

from .scene import COLOURS, GROUNDS, Scene, Thing

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
    for row in table("outlines.tsv", __package__):
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


try:
    from PIL import Image, ImageDraw
except ModuleNotFoundError as error:
    raise missing_package("painting scenes", error.name, "vision") from error

SIZE = 96
"""The default side of a picture in pixels."""
_SUPERSAMPLING = 4
"""The factor by which things are painted larger."""


def paint(scene: Scene, size: int = SIZE) -> Image.Image:
    """Return the picture of a scene, `size` x `size`, RGB."""
    picture = _ground(scene, size)
    for thing in _back_to_front(scene):
        corner, stencil = _stencil(thing, size)
        picture.paste(_surface(thing, corner, stencil.size, size), corner, stencil)
    return picture


def masks(scene: Scene, size: int = SIZE) -> NDArray[np.bool_]:
    """Return where each thing is visible, [things, size, size]; things in front hide others."""
    owner = np.full((size, size), -1)
    for thing in _back_to_front(scene):
        (left, top), stencil = _stencil(thing, size)
        covered = np.asarray(stencil) >= 128
        owner[top : top + stencil.height, left : left + stencil.width][covered] = scene.things.index(thing)
    return np.stack([owner == number for number in range(len(scene.things))])


def boxes(scene: Scene, size: int = SIZE) -> list[tuple[int, int, int, int]]:
    """Return the box around each thing in pixels: left, top, right, bottom, the last two excluded."""
    corners = []
    for mask in masks(scene, size):
        rows, columns = np.flatnonzero(mask.any(1)), np.flatnonzero(mask.any(0))
        corners.append((int(columns[0]), int(rows[0]), int(columns[-1]) + 1, int(rows[-1]) + 1))
    return corners


def _back_to_front(scene: Scene) -> list[Thing]:
    """Return the things in the order of painting: large ones first, because a thing inside another is smaller."""
    return sorted(scene.things, key=lambda thing: -thing.reach)


def _ground(scene: Scene, size: int) -> Image.Image:
    """Paint the ground: its colour, and a grain by which it can be recognised."""
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
    """Return the pixel of a thing's upper left corner and its shape, 255 where it is."""
    left = max(0, floor((thing.x - thing.reach) * size))
    top = max(0, floor((thing.y - thing.reach) * size))
    right = min(size, ceil((thing.x + thing.reach) * size) + 1)
    bottom = min(size, ceil((thing.y + thing.reach) * size) + 1)
    width, height = right - left, bottom - top
    image = Image.new("L", (width * _SUPERSAMPLING, height * _SUPERSAMPLING))
    draw = ImageDraw.Draw(image)

    def to_pixel(x: float, y: float) -> tuple[float, float]:
        across, down = (thing.x + x * thing.reach) * size - left, (thing.y + y * thing.reach) * size - top
        return across * _SUPERSAMPLING, down * _SUPERSAMPLING

    for part in OUTLINES[thing.shape]:
        points = [to_pixel(*point) for point in part.points]
        fill = 0 if part.is_hole else 255
        if part.is_ellipse:
            draw.ellipse(points, fill=fill)
        else:
            draw.polygon(points, fill=fill)
    return (left, top), image.resize((width, height), Image.Resampling.BOX)


def _surface(thing: Thing, corner: tuple[int, int], extent: tuple[int, int], size: int) -> Image.Image:
    """Return the colour of a thing in a box of the picture of this corner and extent, by its material."""
    columns, rows = extent
    x = ((np.arange(columns * _SUPERSAMPLING) + corner[0] * _SUPERSAMPLING) / (size * _SUPERSAMPLING) - thing.x)[
        None, :
    ]
    y = ((np.arange(rows * _SUPERSAMPLING) + corner[1] * _SUPERSAMPLING) / (size * _SUPERSAMPLING) - thing.y)[:, None]
    colour = np.array(COLOURS[thing.colour], float)
    contrast = colour * 0.45 if colour.mean() > 90 else colour + 0.55 * (255 - colour)
    share: NDArray[Any] = np.zeros((rows * _SUPERSAMPLING, columns * _SUPERSAMPLING))
    u, v = x / 0.085, y / 0.085  # patterns do not grow with the thing
    if thing.material == "striped":
        share = (u + v) * 1.25 % 1 < 0.5
    elif thing.material == "dotted":
        share = ((u * 1.6 % 1 - 0.5) ** 2 + (v * 1.6 % 1 - 0.5) ** 2) < 0.09
    elif thing.material == "checked":
        share = (u * 1.3 // 1 + v * 1.3 // 1) % 2
    elif thing.material == "shiny":
        light_distance = np.hypot(x + 0.4 * thing.reach, y + 0.4 * thing.reach) / thing.reach
        colour, contrast, share = colour * 0.75, np.full(3, 255.0), np.exp(-5 * light_distance**2)
    mixture = share.reshape(rows, _SUPERSAMPLING, columns, _SUPERSAMPLING).mean((1, 3))
    image = colour + mixture[..., None] * (contrast - colour)
    return Image.fromarray(image.clip(0, 255).astype(np.uint8))
