"""Random scenes of a split, all different."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from random import Random
from typing import Literal, TypeAlias, get_args

from translucid.corpora import splits
from translucid.corpora.splits import HELD_OUT, percentile
from translucid.ground.errors import UserError

from .captions import Speaker
from .scene import (
    COLOURS,
    GROUNDS,
    HOLLOW,
    MATERIALS,
    SHAPES,
    SIZES,
    Look,
    Scene,
    Thing,
    far_apart,
)

Split: TypeAlias = Literal["train", "valid", "test", "composition"]

SPLITS: tuple[Split, ...] = get_args(Split)
APART = 0.02
"""The least distance between two things, as a share of the picture's side."""
TRIES = 200
"""The number of attempts to place all things of a scene, before another scene is drawn."""

_Spot: TypeAlias = tuple[float, float, float]


HELD_OUT_PAIRS = frozenset(pair for pair in product(COLOURS, SHAPES) if percentile(" ".join(pair)) < HELD_OUT)
"""Colours and shapes that occur together only in the split `composition`."""


def split_of(scene: Scene) -> Split:
    """Return the split of a scene, which depends on its content."""
    if any((thing.colour, thing.shape) in HELD_OUT_PAIRS for thing in scene.things):
        return "composition"
    return splits.split_of(scene.content)


def generate(
    count: int, *, split: Split = "train", seed: int = 1, shapes: Sequence[str] = tuple(SHAPES)
) -> Iterator[Scene]:
    """Generate scenes with distinct contents.

    Args:
        count: the number of scenes.
        split: the split of the scenes. It depends on their content, so the splits share no scene. Each scene of
            `composition` has a shape in a colour that this shape has in no other split.
        seed: determines which scenes of the split are drawn.
        shapes: the shapes besides the hollow ones; fewer shapes are learned sooner.

    Raises:
        UserError: there is no such split, or, while iterating, it has too few scenes.
    """
    if split not in SPLITS:
        raise UserError(f"unknown split {split!r} of the scenes", fix=f"Known: {', '.join(SPLITS)}.")
    rng = Random(f"scenes {split} {seed}")

    def draw_from_split() -> Scene | None:
        scene = draw(rng, shapes)
        return scene if scene and split_of(scene) == split else None

    what = f"{split} scenes were found"
    return splits.distinct(count, draw_from_split, lambda scene: scene.content, what=what, fix="Ask for fewer.")


def draw(rng: Random, shapes: Sequence[str] = tuple(SHAPES)) -> Scene | None:
    """Draw a scene; return None if there is no room for its things, or if groups look alike."""
    ground = rng.choice(list(GROUNDS))
    kind = rng.choices(("alone", "beside", "inside", "size", "between"), (30, 35, 10, 10, 15))[0]
    relation: str | None = None
    if kind == "alone":
        look = _look(rng, ground, (*shapes, *HOLLOW))
        counts = rng.choices(([1], [2], [3], [4], [5]), (5, 3, 2, 1, 1))[0]
        looks = [look._replace(size="small") if counts[0] > 2 else look]
        spots = _scattered(rng, _reaches(looks) * counts[0])
    elif kind == "beside":
        relation = rng.choice(("left", "right", "above", "below"))
        looks, counts = _looks(rng, ground, 2, shapes), rng.choice(([1, 1], [1, 1], [1, 2], [2, 1]))
        if counts == [1, 1] and {look.size for look in looks} == {"small", "huge"}:
            return None  # such a pair belongs to the kind `size`
        for group, count in enumerate(counts):
            if count > 1:
                looks[group] = looks[group]._replace(size="small")
        spots = _beside(rng, relation, _reaches(looks), counts)
    elif kind == "inside":
        relation, counts = "inside", [1, 1]
        looks = _looks(rng, ground, 2, shapes, hollow=True)
        x, y = rng.uniform(0.25, 0.75), rng.uniform(0.25, 0.75)
        spots = [(x, y, SIZES["small"]), (x, y, SIZES["huge"])]
    elif kind == "size":
        relation, counts = rng.choice(("larger", "smaller")), [1, 1]
        sizes = ["huge", "small"]
        if relation == "smaller":
            sizes.reverse()
        looks = [look._replace(size=size) for look, size in zip(_looks(rng, ground, 2, shapes), sizes, strict=True)]
        spots = _scattered(rng, _reaches(looks))
    else:
        relation, counts = "between", [1, 1, 1]
        looks = _looks(rng, ground, 3, shapes)
        spots = _between(rng, _reaches(looks))
    if spots is None or len({look[:2] for look in looks}) < len(looks):
        return None
    things: list[Thing] = []
    groups: list[tuple[int, ...]] = []
    for look, count in zip(looks, counts, strict=True):
        groups.append(tuple(range(len(things), len(things) + count)))
        for spot in spots[len(things) : len(things) + count]:
            things.append(Thing(*look, *spot))
    captions = Speaker(ground, things, groups, rng).captions(relation)
    return Scene(ground, tuple(things), tuple(groups), relation, captions)


def _reaches(looks: Sequence[Look]) -> list[float]:
    return [SIZES[look.size] for look in looks]


def _look(rng: Random, ground: str, shapes: Sequence[str], sizes: Sequence[str] = tuple(SIZES)) -> Look:
    ground_colour = GROUNDS[ground][1]
    colours = [name for name, colour in COLOURS.items() if far_apart(colour, ground_colour)]
    material = rng.choices(MATERIALS, (4, 1, 1, 1, 1))[0]
    return Look(rng.choice(shapes), rng.choice(colours), rng.choice(sizes), material)


def _looks(rng: Random, ground: str, count: int, shapes: Sequence[str], *, hollow: bool = False) -> list[Look]:
    if not hollow:
        sizes: tuple[str, ...] = tuple(SIZES)
        if count == 3:
            sizes = ("small", "large")
        return [_look(rng, ground, (*shapes, *HOLLOW), sizes) for _ in range(count)]
    return [_look(rng, ground, shapes, ("small",)), _look(rng, ground, tuple(HOLLOW), ("huge",))]


def _scattered(rng: Random, reaches: Sequence[float]) -> list[_Spot] | None:
    """Return random places at which things do not touch."""
    spots: list[_Spot] = []
    for reach in reaches:
        for _ in range(TRIES):
            x = rng.uniform(reach + APART, 1 - reach - APART)
            y = rng.uniform(reach + APART, 1 - reach - APART)
            if all(max(abs(x - a), abs(y - b)) > reach + radius + APART for a, b, radius in spots):
                spots.append((x, y, reach))
                break
        else:
            return None
    return spots


def _beside(rng: Random, relation: str, reaches: Sequence[float], counts: Sequence[int]) -> list[_Spot] | None:
    """Return places at which the whole first group is on one side of the whole second group, at a similar height."""
    sizes: list[float] = []
    for reach, count in zip(reaches, counts, strict=True):
        sizes += [reach] * count
    axis, sign = {"left": (0, 1), "right": (0, -1), "above": (1, 1), "below": (1, -1)}[relation]
    for _ in range(TRIES):
        spots = _scattered(rng, sizes)
        if spots is None:
            return None
        for a, b in product(spots[: counts[0]], spots[counts[0] :]):
            is_on_side = sign * (b[axis] - a[axis]) > a[2] + b[2]
            if not is_on_side or abs(b[1 - axis] - a[1 - axis]) >= 0.25:
                break
        else:
            return spots
    return None


def _between(rng: Random, reaches: Sequence[float]) -> list[_Spot] | None:
    """Return places at which the first thing is between the other two, horizontally or vertically."""
    middle, before, after = reaches
    room = 1 - 2 * (middle + before + after) - 4 * APART
    if room < 0:
        return None
    # The free room is distributed at random before, between and after the things.
    free = sorted(rng.uniform(0, room) for _ in range(3))
    a = APART + before + free[0]
    b = a + before + APART + middle + (free[1] - free[0])
    c = b + middle + APART + after + (free[2] - free[1])
    along = [b, a, c]  # the other thing that a caption names first is on the left, or above
    across = rng.uniform(max(reaches) + APART, 1 - max(reaches) - APART)
    if rng.random() < 0.3:
        return [(across, position, reach) for position, reach in zip(along, reaches, strict=True)]
    return [(position, across, reach) for position, reach in zip(along, reaches, strict=True)]
