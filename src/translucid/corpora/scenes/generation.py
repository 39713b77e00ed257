"""Draw distinct scenes of a split."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from itertools import product
from random import Random
from typing import Literal, TypeAlias

from translucid.ground.errors import UserError

from .captions import Speaker
from .scene import Scene, Thing
from .words import COLOURS, GROUNDS, HOLLOW, MATERIALS, SHAPES, SIZES, far_apart

Split: TypeAlias = Literal["train", "valid", "test", "composition"]

SPLITS = ("train", "valid", "test", "composition")
HELD_OUT = 10
"""Percent of the scenes in each of valid and test."""
APART = 0.02
"""Between two things, at least; a share of the picture's side."""
TRIES = 200
"""To find a place for everything in a scene, before another is drawn."""
PATIENCE = 30_000
"""Draws in a row that bring nothing new before the scenes count as exhausted."""

_Look: TypeAlias = tuple[str, str, str, str]
_Spot: TypeAlias = tuple[float, float, float]


def _percent(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=4).digest(), "big") % 100


HELD_OUT_PAIRS = frozenset(pair for pair in product(COLOURS, SHAPES) if _percent(" ".join(pair)) < HELD_OUT)
"""Colours and shapes that are never seen together but in the split `composition`."""


def split_of(scene: Scene) -> Split:
    """Tell which split a scene belongs to, by its content."""
    if any((thing.colour, thing.shape) in HELD_OUT_PAIRS for thing in scene.things):
        return "composition"
    percent = _percent(scene.content)
    return "test" if percent < HELD_OUT else "valid" if percent < 2 * HELD_OUT else "train"


def generate(
    count: int, *, split: Split = "train", seed: int = 1, shapes: Sequence[str] = tuple(SHAPES)
) -> Iterator[Scene]:
    """Generate scenes with distinct contents.

    Args:
        count: how many.
        split: which split they belong to; decided by content, so the splits share no scene. Each scene of `composition`
            has a colour on a shape that no scene of another split has it on.
        seed: another seed draws other scenes of the same split.
        shapes: what there may be, besides what things can be inside of; fewer are learned sooner.

    Raises:
        UserError: there is no such split, or, while iterating, it holds too few scenes.
    """
    if split not in SPLITS:
        raise UserError(f"unknown split {split!r} of the scenes", fix=f"Known: {', '.join(SPLITS)}.")
    return _generate(count, split, Random(f"scenes {split} {seed}"), shapes)


def _generate(count: int, split: Split, rng: Random, shapes: Sequence[str]) -> Iterator[Scene]:
    seen: set[str] = set()
    vain = 0
    while len(seen) < count:
        if vain > PATIENCE:
            raise UserError(f"only {len(seen)} of {count} {split} scenes were found", fix="Ask for fewer.")
        vain += 1
        scene = draw(rng, shapes)
        if scene and split_of(scene) == split and scene.content not in seen:
            seen.add(scene.content)
            vain = 0
            yield scene


def draw(rng: Random, shapes: Sequence[str] = tuple(SHAPES)) -> Scene | None:
    """Draw one scene; None if there is no room for it."""
    ground, every = rng.choice(list(GROUNDS)), (*shapes, *HOLLOW)
    kind = rng.choices(("alone", "beside", "inside", "size", "between"), (30, 35, 10, 10, 15))[0]
    relation: str | None = None
    if kind == "alone":
        looks, counts = [_look(rng, ground, every)], [rng.choices((1, 2, 3, 4, 5), (5, 3, 2, 1, 1))[0]]
        if counts[0] > 2 and looks[0][2] != "small":
            looks = [(*looks[0][:2], "small", looks[0][3])]
        spots = _scattered(rng, [SIZES[looks[0][2]]] * counts[0])
    elif kind == "beside":
        relation = rng.choice(("left", "right", "above", "below"))
        looks, counts = _looks(rng, ground, 2, shapes), rng.choice(([1, 1], [1, 1], [1, 2], [2, 1]))
        looks = [(*look[:2], "small" if n > 1 else look[2], look[3]) for look, n in zip(looks, counts, strict=True)]
        if counts == [1, 1] and {look[2] for look in looks} == {"small", "huge"}:
            return None  # there, the size is what is told
        spots = _beside(rng, relation, [SIZES[look[2]] for look in looks], counts)
    elif kind == "inside":
        relation, counts = "inside", [1, 1]
        looks = _looks(rng, ground, 2, shapes, hollow=True)
        x, y = (rng.uniform(0.25, 0.75) for _ in range(2))
        spots = [(x, y, SIZES["small"]), (x, y, SIZES["huge"])]
    elif kind == "size":
        relation, counts = rng.choice(("larger", "smaller")), [1, 1]
        looks = _looks(rng, ground, 2, shapes)
        sizes = ("huge", "small") if relation == "larger" else ("small", "huge")
        looks = [(*look[:2], size, look[3]) for look, size in zip(looks, sizes, strict=True)]
        spots = _scattered(rng, [SIZES[size] for size in sizes])
    else:
        relation, counts = "between", [1, 1, 1]
        looks = _looks(rng, ground, 3, shapes)
        spots = _between(rng, [SIZES[look[2]] for look in looks])
    if spots is None or len({look[:2] for look in looks}) < len(looks):
        return None
    owners = [group for group, n in enumerate(counts) for _ in range(n)]
    things = [Thing(*looks[group], *spot) for group, spot in zip(owners, spots, strict=True)]
    groups = tuple(tuple(i for i, owner in enumerate(owners) if owner == group) for group in range(len(counts)))
    captions = Speaker(ground, things, groups, rng).captions(relation)
    return Scene(ground, tuple(things), groups, relation, captions)


def _look(rng: Random, ground: str, shapes: Sequence[str], sizes: Sequence[str] = tuple(SIZES)) -> _Look:
    behind = GROUNDS[ground][1]
    colours = [name for name, colour in COLOURS.items() if far_apart(colour, behind)]
    material = rng.choices(MATERIALS, (4, 1, 1, 1, 1))[0]
    return rng.choice(shapes), rng.choice(colours), rng.choice(sizes), material


def _looks(rng: Random, ground: str, count: int, shapes: Sequence[str], *, hollow: bool = False) -> list[_Look]:
    if not hollow:
        sizes = ("small", "large") if count == 3 else tuple(SIZES)
        return [_look(rng, ground, (*shapes, *HOLLOW), sizes) for _ in range(count)]
    return [_look(rng, ground, shapes, ("small",)), _look(rng, ground, tuple(HOLLOW), ("huge",))]


def _scattered(rng: Random, reaches: Sequence[float]) -> list[_Spot] | None:
    """Find places that do not touch, in any order."""
    spots: list[_Spot] = []
    for reach in reaches:
        for _ in range(TRIES):
            x, y = (rng.uniform(reach + APART, 1 - reach - APART) for _ in range(2))
            if all(max(abs(x - a), abs(y - b)) > reach + other + APART for a, b, other in spots):
                spots.append((x, y, reach))
                break
        else:
            return None
    return spots


def _beside(rng: Random, relation: str, reaches: Sequence[float], counts: Sequence[int]) -> list[_Spot] | None:
    """Find places where all of the first group stand on one side of all of the second, and on about the same height."""
    sizes = [reach for reach, n in zip(reaches, counts, strict=True) for _ in range(n)]
    axis, sign = (
        (0, 1) if relation == "left" else (0, -1) if relation == "right" else (1, 1 if relation == "above" else -1)
    )
    for _ in range(TRIES):
        spots = _scattered(rng, sizes)
        if spots is None:
            return None
        first, second = spots[: counts[0]], spots[counts[0] :]
        if all(
            sign * (b[axis] - a[axis]) > a[2] + b[2] and abs(b[1 - axis] - a[1 - axis]) < 0.25
            for a in first
            for b in second
        ):
            return spots
    return None


def _between(rng: Random, reaches: Sequence[float]) -> list[_Spot] | None:
    """Find places where the first stands between the other two, side by side or one above the other."""
    middle, one, other = reaches
    room = 1 - 2 * (middle + one + other) - 4 * APART
    if room < 0:
        return None
    free = sorted(rng.uniform(0, room) for _ in range(3))
    a = APART + one + free[0]
    b = a + one + APART + middle + (free[1] - free[0])
    c = b + middle + APART + other + (free[2] - free[1])
    along = [b, a, c]  # what is named first of the two is on the left, or above
    across = rng.uniform(max(reaches) + APART, 1 - max(reaches) - APART)
    upright = rng.random() < 0.3
    places = [(across, at) if upright else (at, across) for at in along]
    return [(*place, reach) for place, reach in zip(places, reaches, strict=True)]
