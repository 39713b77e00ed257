"""The picture of a scene, and the place of each thing in it.

A thing is painted four times as large and then reduced, which smooths its edges. Random details (the grain of grounds)
depend only on the scene, so the same scene gives the same picture.
"""

from __future__ import annotations

import hashlib
from math import ceil, floor, pi
from typing import Any

import numpy as np
from numpy.typing import NDArray

from translucid.ground.errors import missing_package

from .outlines import OUTLINES
from .scene import Scene, Thing
from .words import COLOURS, GROUNDS

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
