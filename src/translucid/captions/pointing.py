"""The pointing game for captioners: whether the cell with most attention lies in a gold box.

The gold boxes of the built-in scenes, and the things that each word of a caption refers to, are in `gold.jsonl`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import BaseModel, PositiveInt, ValidationError, model_validator
from torch import Tensor

from translucid.captions.scenes import GROUND
from translucid.captions.scenes.scene import COLOURS, MATERIALS, NUMBERS, PLURALS, SIZES, WORDINGS
from translucid.data.readers.corpus import read_lines
from translucid.ground.errors import UserError

Box: TypeAlias = tuple[float, float, float, float]
"""Left, top, right and bottom; the last two are excluded."""
About: TypeAlias = tuple[int, ...] | None
"""The things that a word refers to, counted from 0, or `GROUND`; empty for a function word; None if unknown."""
_SINGULARS = dict(zip(PLURALS.values(), PLURALS, strict=True)) | dict(zip(PLURALS, PLURALS, strict=True))
_RELATIONS = set(" ".join(chain.from_iterable(WORDINGS.values())).split()) - {"to", "the", "of", "than"}
_PLACES = {"top", "bottom", "middle", "corner"}
KINDS: dict[str, str] = {
    **dict.fromkeys(_SINGULARS, "object"),
    **dict.fromkeys(COLOURS, "colour"),
    **dict.fromkeys(SIZES, "size"),
    **dict.fromkeys(MATERIALS, "material"),
    **dict.fromkeys(NUMBERS, "count"),
    **dict.fromkeys(_RELATIONS | _PLACES | {"between"}, "relation"),
}
"""The kind of each word that refers to things. Positions, relative to others or in the picture, are relations. Words of
the ground and function words have no kind."""


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
        word_boxes: list[Box] = []
        if kind and things:
            word_boxes += map(gold.box_of, things)
        boxes.append(word_boxes)
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
        row_masks, column_masks = _cells(grid[0], top, bottom), _cells(grid[1], left, right)
        overlapping |= np.outer(row_masks[0], column_masks[0])
        centred |= np.outer(row_masks[1], column_masks[1])
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


class Look(BaseModel, frozen=True):
    """The properties of a thing, without its position."""

    shape: str
    colour: str
    size: str
    material: str


class GoldCaption(BaseModel, frozen=True):
    """A true sentence about a scene."""

    words: tuple[str, ...]
    about: tuple[tuple[int, ...], ...]
    """The things that each word refers to."""


class GoldImage(BaseModel, frozen=True):
    """A line of `gold.jsonl`."""

    image: str
    """The name of the image in the corpus."""
    side: PositiveInt
    """The width and height of the picture, in pixels."""
    ground: str
    things: tuple[Look, ...]
    boxes: tuple[Box, ...]
    """The box of each thing, in pixels."""
    captions: tuple[GoldCaption, ...]

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if len(self.boxes) != len(self.things):
            raise ValueError(f"{len(self.boxes)} boxes for {len(self.things)} things")
        for left, top, right, bottom in self.boxes:
            if not (0 <= left < right <= self.side and 0 <= top < bottom <= self.side):
                raise ValueError("a box that is not in the picture")
        for caption in self.captions:
            if len(caption.words) != len(caption.about):
                raise ValueError(f"{len(caption.about)} words that are about something, of {len(caption.words)}")
            for thing in chain.from_iterable(caption.about):
                if not GROUND <= thing < len(self.things):
                    raise ValueError("a word about a thing that is not there")
        return self

    def box_of(self, thing: int) -> Box:
        """Return the box of a thing in shares of the picture's side."""
        left, top, right, bottom = self.boxes[thing]
        return left / self.side, top / self.side, right / self.side, bottom / self.side


def read_gold(path: str | Path) -> dict[str, GoldImage]:
    """Read `gold.jsonl`; return the gold of each image by name.

    Raises:
        UserError: the file can't be read, a line has another format, or an image has two lines.
    """
    fix = "Write the scenes anew: translucid data scenes."
    gold_images: dict[str, GoldImage] = {}
    for number, line in enumerate(read_lines(path), 1):
        try:
            gold = GoldImage.model_validate_json(line)
        except ValidationError as error:
            first_error = error.errors(include_url=False)[0]
            location, problem = ".".join(map(str, first_error["loc"])), first_error["msg"]
            if location:  # an error in the whole line has no place within it
                problem = f"{location}: {problem}"
            what = f"is not a line of gold boxes ({problem})"
            raise UserError(what, file=path, line=number, fix=fix) from error
        if gold_images.setdefault(gold.image, gold) is not gold:
            raise UserError(f"is the second line of {gold.image}", file=path, line=number, fix=fix)
    return gold_images


def gold_of_words(words: Sequence[str], gold: GoldImage) -> list[About]:
    """Return what each word of a caption refers to.

    A caption that equals one of the image's captions has its gold. In other captions, noun phrases are looked up: `two
    small red striped stars` refers to all stars that are small, red and striped. If there are none, it is unknown what
    the words of the phrase refer to; if there are more or fewer, it is unknown what the number refers to. Words of
    relation refer to the things of all noun phrases, whether or not the relation holds.
    """
    for caption in gold.captions:
        if caption.words == tuple(words):
            return list(caption.about)
    references: list[About] = [()] * len(words)
    for i, word in enumerate(words):
        if word in KINDS:
            references[i] = None
    all_things: set[int] = set()
    all_known = True
    for start, end in _noun_phrases(words):
        things = _things_like(words[start:end], gold)
        all_things.update(things)
        all_known = all_known and bool(things)
        for i in range(start, end):
            references[i] = things or None
            # A number refers to the things only if it is their number.
            if words[i] in NUMBERS and NUMBERS.index(words[i]) != len(things):
                references[i] = None
    relation_things = tuple(sorted(all_things)) if all_known else ()
    ground_words = gold.ground.split()
    for i, word in enumerate(words):
        if KINDS.get(word) == "relation":
            references[i] = relation_things or None
        elif word in ground_words:
            references[i] = (GROUND,)
    return references


def _noun_phrases(words: Sequence[str]) -> list[tuple[int, int]]:
    """Return the start and end of phrases such as `two small red striped stars`, without articles."""
    phrases = []
    start = 0
    for i, word in enumerate(words):
        kind = KINDS.get(word)
        if kind == "object":
            phrases.append((start, i + 1))
        if kind not in ("count", "size", "colour", "material"):
            start = i + 1
    return phrases


def _things_like(phrase: Sequence[str], gold: GoldImage) -> tuple[int, ...]:
    """Return the things with the properties of a noun phrase."""
    properties = {_SINGULARS.get(word, word) for word in phrase if word not in NUMBERS}
    things = []
    for number, look in enumerate(gold.things):
        if properties <= set(look.model_dump().values()):
            things.append(number)
    return tuple(things)
