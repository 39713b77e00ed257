"""Saliency over an image: for each word of a caption, its attention or its explanation."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from translucid.decoding.hypothesis import percent

if TYPE_CHECKING:
    from translucid.inspection.attention_result import AttentionResult

SPREAD = 0.6
"""Standard deviation of the light that comes from a cell, in cells, or in pixels if those are larger."""
SHADE = np.array([10, 14, 24], np.float32)
"""What lies over the dark parts, in RGB."""
GLOW = np.array([255, 214, 90], np.float32)
"""What lies over the bright parts."""
DARKEST, BRIGHTEST = 0.82, 0.12
"""How much of the image those two cover at most."""
PLACES = (("top left", "top", "top right"), ("left", "middle", "right"), ("bottom left", "bottom", "bottom right"))
"""Names of the thirds of an image, row by row."""


@dataclass(frozen=True)
class SaliencyOverlay:
    """An image, and where it lights up for each word."""

    pixels: NDArray[np.uint8]
    """[height, width, 3]."""
    words: list[str]
    notes: list[str]
    """What is said beside each word, such as its probability."""
    weights: NDArray[np.float32]
    """[words, rows, columns], not negative: as many rows and columns as there are cells, or as pixels."""
    verb: str = "attends to"
    """What the word did with the places that light up."""

    @classmethod
    def of(cls, looked: AttentionResult, layer: int | None = None, head: int | None = None) -> SaliencyOverlay:
        """Light up where a captioner looked; layers and heads are averaged unless one is chosen.

        Raises:
            UserError: the model has no attention, no such layer or no such head.
        """
        notes = [percent(math.exp(value)) for value in looked.log_probs]
        return cls(looked.pixels, looked.words, notes, looked.weights(layer, head).float().numpy())

    def brightness(self, word: int, height: int, width: int) -> NDArray[np.float32]:
        """Return how bright the image is for a word [height, width]: 1 where most, 0 where nothing is.

        A word for which nothing is anywhere leaves it all dark.
        """
        light = spread(self.weights[word], height, width)
        return np.divide(light, max(float(light.max()), 1e-9), dtype=np.float32)

    def panel(self, word: int, side: int) -> NDArray[np.uint8]:
        """Return the image as it is lit for a word, its longer side that long [height, width, 3]."""
        image = self.scaled(side)
        colour, alpha = overlay(self.brightness(word, *image.shape[:2]))
        return (image * (1 - alpha) + colour * alpha).round().astype(np.uint8)

    def scaled(self, side: int) -> NDArray[np.uint8]:
        """Return the image itself, its longer side that long."""
        from PIL import Image

        height, width = self.pixels.shape[:2]
        factor = side / max(height, width)
        size = max(1, round(width * factor)), max(1, round(height * factor))
        return np.array(Image.fromarray(self.pixels).resize(size, Image.Resampling.BICUBIC))

    def places(self, word: int, most: int = 2) -> list[tuple[str, float]]:
        """Return the thirds of the image with most light for a word, and their shares of all of it; see `places`."""
        return places(self.weights[word])[:most]

    def said(self, word: int) -> str:
        """Return in words what lights up for a word."""
        found = [f"{place} {percent(share)}" for place, share in self.places(word, 3) if share >= 0.1]
        return ", ".join(found) or "nothing in particular"


def spread(weights: NDArray[np.float32], height: int, width: int) -> NDArray[np.float32]:
    """Return weights [rows, columns] upsampled smoothly [height, width].

    A pixel's value is the mean of all cells, each with the weight that a Gaussian around the cell's middle has there
    (Xu et al. 2015, arXiv 1502.03044, section 5.4, upsample and filter with a Gaussian as well).
    """
    down, across = _reach(weights.shape[0], height), _reach(weights.shape[1], width)
    return np.matmul(down @ weights, across.T, dtype=np.float32)


def _reach(cells: int, pixels: int) -> NDArray[np.float32]:
    """Return the part of each cell in each pixel of a line [pixels, cells]; rows sum to 1."""
    pixel, cell = (np.arange(pixels) + 0.5) / pixels * cells, np.arange(cells) + 0.5
    wide = SPREAD * max(1, cells / pixels)
    reach = np.exp(-((pixel[:, None] - cell) ** 2) / (2 * wide**2))
    return (reach / reach.sum(1, keepdims=True)).astype(np.float32)


def overlay(brightness: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return what is laid over an image: colours [height, width, 3] and opacities, 0 .. 1, [height, width, 1].

    A shade where it is dark, and over that a glow where it is bright, so that bright parts are seen on black as well.
    """
    shade, glow = DARKEST * (1 - brightness[..., None]), BRIGHTEST * brightness[..., None] ** 2
    alpha = 1 - (1 - shade) * (1 - glow)
    return (SHADE * shade * (1 - glow) + GLOW * glow) / np.maximum(alpha, 1e-6), alpha


def places(weights: NDArray[np.float32]) -> list[tuple[str, float]]:
    """Return the thirds of a grid [rows, columns] by name, and their shares of all weights, the greatest first.

    A cell belongs to the third in which its middle lies. If all weights are 0, so are the shares.
    """
    rows, columns = ((2 * np.arange(n) + 1) * 3 // (2 * n) for n in weights.shape)
    total = max(float(weights.sum()), 1e-12)
    shares = {
        name: float(weights[np.ix_(rows == row, columns == column)].sum()) / total
        for row, names in enumerate(PLACES)
        for column, name in enumerate(names)
    }
    return sorted(shares.items(), key=lambda item: -item[1])
