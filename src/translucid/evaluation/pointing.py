"""Whether a captioner looks at what it says: the most looked-at cell of the image, against gold boxes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from translucid.evaluation.scene_gold import KINDS, Box, GoldImage, gold_of_words


class Hit(NamedTuple):
    """Where a word looked most, and whether that is where it should look."""

    row: int
    column: int
    """Of the cell."""
    overlaps: bool
    """Whether a part of the cell lies in one of the boxes."""
    centred: bool
    """Whether its centre does; never so for a box between the centres."""
    chance: float
    """The share of all cells that overlap: what looking anywhere would bring."""
    chance_centred: float
    """The share of all cells whose centre lies in a box."""


class KindScore(NamedTuple):
    """Figures of one kind of word, 0 to 1; of no word that could be judged, 0."""

    words: int
    """All of that kind."""
    judged: int
    """Those of which it is known where they should look."""
    overlaps: float
    """Of those judged, the share whose cell overlaps a box."""
    centred: float
    """The share whose cell has its centre in a box."""
    chance: float
    """What looking anywhere would bring, in place of `overlaps`."""
    chance_centred: float
    """And in place of `centred`."""


def pointing(
    weights: ArrayLike | Tensor, grid: tuple[int, int], targets: Sequence[Sequence[Box] | None]
) -> list[Hit | None]:
    """Say of each word whether its most looked-at cell, the first one of several, is in one of its boxes.

    This is the pointing game (Zhang et al. 2016, arXiv 1608.00507), with cells in the place of pixels.

    Args:
        weights: [T, S], of each word over the cells of the image, row by row. A word of several pieces has one row.
        grid: rows and columns.
        targets: of each word the boxes it should look at, in shares of the image's sides; none if that is not asked.

    Returns:
        Of each word with boxes, how it looked; None for the others.

    Raises:
        ValueError: the shapes do not fit together, or a weight is not a number.
    """
    rows, columns = grid
    table = _table(weights)
    if table.shape != (len(targets), rows * columns):
        raise ValueError(f"weights {list(table.shape)} of {len(targets)} words over {rows} x {columns} cells")
    if not np.isfinite(table).all():
        raise ValueError("a weight is not a number")
    return [_hit(int(row.argmax()), grid, boxes) if boxes else None for row, boxes in zip(table, targets, strict=True)]


def points_of(
    words: Sequence[str], weights: ArrayLike | Tensor, grid: tuple[int, int], gold: GoldImage
) -> list[tuple[str, Hit | None]]:
    """Return of each word that is about things its kind and how it looked; None if it is not known where it should.

    Args:
        words: of a caption of the scene, generated or its own.
        weights: [T, S], see `pointing`.
        grid: rows and columns.
        gold: of the scene.
    """
    kinds = [KINDS.get(word) for word in words]
    about = [things if kind and things else () for kind, things in zip(kinds, gold_of_words(words, gold), strict=True)]
    hits = pointing(weights, grid, [[gold.box_of(thing) for thing in things] for things in about])
    return [(kind, hit) for kind, hit in zip(kinds, hits, strict=True) if kind]


def by_kind(points: Iterable[tuple[str, Hit | None]]) -> dict[str, KindScore]:
    """Return the figures of each kind of word that there is, and of `all`."""
    found: dict[str, list[Hit | None]] = {"all": []}
    for kind, hit in points:
        found["all"].append(hit)
        found.setdefault(kind, []).append(hit)
    return {kind: _score(hits) for kind, hits in found.items()}


def _score(hits: Sequence[Hit | None]) -> KindScore:
    judged = [hit for hit in hits if hit is not None]
    count = max(1, len(judged))
    return KindScore(
        len(hits),
        len(judged),
        sum(hit.overlaps for hit in judged) / count,
        sum(hit.centred for hit in judged) / count,
        sum(hit.chance for hit in judged) / count,
        sum(hit.chance_centred for hit in judged) / count,
    )


def _hit(cell: int, grid: tuple[int, int], boxes: Sequence[Box]) -> Hit:
    overlapping, centred = np.zeros(grid, bool), np.zeros(grid, bool)
    for left, top, right, bottom in boxes:
        down, across = _cells(grid[0], top, bottom), _cells(grid[1], left, right)
        overlapping |= np.outer(down[0], across[0])
        centred |= np.outer(down[1], across[1])
    row, column = divmod(cell, grid[1])
    shares = float(overlapping.mean()), float(centred.mean())
    return Hit(row, column, bool(overlapping[row, column]), bool(centred[row, column]), *shares)


def _cells(count: int, start: float, end: float) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return [count] twice: which cells along a side reach into start .. end, and which of their centres lie in it."""
    edges, centres = np.arange(count + 1) / count, (np.arange(count) + 0.5) / count
    return (edges[:-1] < end) & (edges[1:] > start), (centres >= start) & (centres < end)


def _table(weights: ArrayLike | Tensor) -> NDArray[Any]:
    return np.asarray(weights.detach().float().cpu() if isinstance(weights, Tensor) else weights, float)
