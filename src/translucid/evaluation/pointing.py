"""The pointing game for captioners: whether the cell with most attention lies in a gold box."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from translucid.evaluation.scene_gold import KINDS, Box, GoldImage, gold_of_words


class Hit(NamedTuple):
    """The cell with most attention for a word, and whether it is in a gold box."""

    row: int
    column: int
    """The row and the column of the cell."""
    overlaps: bool
    """Whether a part of the cell lies in a box."""
    centred: bool
    """Whether the centre of the cell lies in a box, which is impossible for a box between the centres."""
    chance: float
    """The share of all cells that overlap a box, which is the chance of a random cell."""
    chance_centred: float
    """The share of all cells whose centre lies in a box."""


class KindScore(NamedTuple):
    """The scores of one kind of word, 0 to 1; 0 if no word has gold boxes."""

    words: int
    """The number of words of that kind."""
    judged: int
    """The number of those with gold boxes."""
    overlaps: float
    """The share of these whose cell overlaps a box."""
    centred: float
    """The share whose cell has its centre in a box."""
    chance: float
    """`overlaps` for random cells."""
    chance_centred: float
    """`centred` for random cells."""


def pointing(
    weights: ArrayLike | Tensor, grid: tuple[int, int], targets: Sequence[Sequence[Box] | None]
) -> list[Hit | None]:
    """Return for each word whether the cell with most attention, the first of several, is in one of its boxes.

    This is the pointing game (Zhang et al. 2016, arXiv 1608.00507), with cells instead of pixels.

    Args:
        weights: [T, S], the attention of each word to the cells of the image, row by row. A word of several pieces has
            one row.
        grid: the numbers of rows and columns.
        targets: the gold boxes of each word, in shares of the image's sides, or None.

    Returns:
        A hit for each word with boxes, and None for the others.

    Raises:
        ValueError: the shapes do not match, or a weight is not a number.
    """
    rows, columns = grid
    table = _table(weights)
    if table.shape != (len(targets), rows * columns):
        raise ValueError(f"weights {list(table.shape)} of {len(targets)} words over {rows} x {columns} cells")
    if not np.isfinite(table).all():
        raise ValueError("a weight is not a number")
    hits: list[Hit | None] = []
    for row, boxes in zip(table, targets, strict=True):
        hit = None
        if boxes:
            hit = _hit(int(row.argmax()), grid, boxes)
        hits.append(hit)
    return hits


def points_of(
    words: Sequence[str], weights: ArrayLike | Tensor, grid: tuple[int, int], gold: GoldImage
) -> list[tuple[str, Hit | None]]:
    """Return the kind and the hit of each word that refers to things; the hit is None without a gold box.

    Args:
        words: a caption of the scene, generated or gold.
        weights: [T, S], as in `pointing`.
        grid: the numbers of rows and columns.
        gold: the gold boxes of the scene.
    """
    kinds = list(map(KINDS.get, words))
    boxes: list[list[Box]] = []
    for kind, things in zip(kinds, gold_of_words(words, gold), strict=True):
        of_word: list[Box] = []
        if kind and things:
            of_word += map(gold.box_of, things)
        boxes.append(of_word)
    hits = pointing(weights, grid, boxes)
    return [(kind, hit) for kind, hit in zip(kinds, hits, strict=True) if kind]


def by_kind(points: Iterable[tuple[str, Hit | None]]) -> dict[str, KindScore]:
    """Return the scores of each kind of word, and of `all`."""
    by_kind: dict[str, list[Hit | None]] = {"all": []}
    for kind, hit in points:
        by_kind["all"].append(hit)
        by_kind.setdefault(kind, []).append(hit)
    return {kind: _score(hits) for kind, hits in by_kind.items()}


def _score(hits: Sequence[Hit | None]) -> KindScore:
    judged = list(filter(None, hits))
    count = max(1, len(judged))  # all scores are 0 if there is none
    return KindScore(
        words=len(hits),
        judged=len(judged),
        overlaps=sum(hit.overlaps for hit in judged) / count,
        centred=sum(hit.centred for hit in judged) / count,
        chance=sum(hit.chance for hit in judged) / count,
        chance_centred=sum(hit.chance_centred for hit in judged) / count,
    )


def _hit(cell: int, grid: tuple[int, int], boxes: Sequence[Box]) -> Hit:
    # A word may refer to several things: any of their boxes counts.
    overlapping, centred = np.zeros(grid, bool), np.zeros(grid, bool)
    for left, top, right, bottom in boxes:
        down, across = _cells(grid[0], top, bottom), _cells(grid[1], left, right)
        overlapping |= np.outer(down[0], across[0])
        centred |= np.outer(down[1], across[1])
    row, column = divmod(cell, grid[1])
    shares = float(overlapping.mean()), float(centred.mean())
    return Hit(row, column, bool(overlapping[row, column]), bool(centred[row, column]), *shares)


def _cells(count: int, start: float, end: float) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return [count] twice: which cells along a side overlap start .. end, and which of their centres lie in it."""
    edges, centres = np.arange(count + 1) / count, (np.arange(count) + 0.5) / count
    return (edges[:-1] < end) & (edges[1:] > start), (centres >= start) & (centres < end)


def _table(weights: ArrayLike | Tensor) -> NDArray[Any]:
    if isinstance(weights, Tensor):
        weights = weights.detach().float().cpu()
    return np.asarray(weights, float)
