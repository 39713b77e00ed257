"""Random scenes of a split, all different, and their captions, which are true and agree in number."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, product
from random import Random
from typing import Literal, TypeAlias, get_args

from translucid.corpora import splits
from translucid.corpora.splits import HELD_OUT, percentile
from translucid.ground.errors import UserError

from .scene import (
    COLOURS,
    GROUND,
    GROUNDS,
    HOLLOW,
    MATERIALS,
    NUMBERS,
    PLURALS,
    RELATIONS,
    SHAPES,
    SIZES,
    WORDINGS,
    Caption,
    Look,
    Scene,
    Thing,
    article,
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


CAPTIONS = 5
"""The number of captions of a scene."""

_Words = list[tuple[str, tuple[int, ...]]]
"""Words, each with the numbers of the things that it is about."""


class Speaker:
    """Writes the captions of a scene."""

    def __init__(self, ground: str, things: Sequence[Thing], groups: Sequence[Sequence[int]], rng: Random) -> None:
        self.ground, self.things, self.groups, self.rng = ground, things, groups, rng

    def captions(self, relation: str | None) -> tuple[Caption, ...]:
        """Return different sentences, the simplest one first."""
        if relation is None:
            sentences = self._alone()
        elif relation == "between":
            sentences = self._between()
        else:
            sentences = self._pair(relation)
        captions: dict[str, Caption] = {}
        for sentence in sentences:
            words, about = zip(*sentence, strict=True)
            caption = Caption(words, about)
            captions.setdefault(caption.text, caption)
        return tuple(list(captions.values())[:CAPTIONS])

    def _alone(self) -> list[_Words]:
        full, short, be = self._noun(0), self._noun(0, size=False), self._be(0)
        members = tuple(self.groups[0])
        if len(members) == 1:
            fourth_sentence = short + be + _about(_position_phrase(self.things[members[0]]), members)
        else:
            fourth_sentence = self._grammar("we see") + short + self._ground()
        return [
            full + self._ground(),
            self._grammar("there") + be + full + self._ground(),
            self._ground() + be + full,
            fourth_sentence,
            self._grammar("the picture shows") + full,
        ]

    def _pair(self, relation: str) -> list[_Words]:
        inverse = RELATIONS[relation]
        both = (*self.groups[0], *self.groups[1])

        def wording(name: str, variant: int = 0) -> _Words:
            return _about(WORDINGS[name][variant % len(WORDINGS[name])], both)

        first, second = self._noun(0), self._noun(1)
        brief_first, brief_second = self._noun(0, size=False), self._noun(1, size=False)
        if relation in ("larger", "smaller"):  # the sentence is about the size already
            first, second = brief_first, brief_second
        return [
            first + self._be(0) + wording(relation) + second,
            second + self._be(1) + wording(inverse) + first,
            self._grammar("there") + self._be(0) + first + wording(relation, 1) + second + self._ground(),
            brief_first + wording(relation, 1) + brief_second + self._ground(),
            self._grammar("we see") + brief_first + wording(relation) + brief_second,
            self._grammar("the picture shows") + brief_second + wording(inverse) + brief_first,
        ]

    def _between(self) -> list[_Words]:
        between: _Words = [("between", tuple(chain.from_iterable(self.groups)))]
        join = self._grammar("and")
        full, brief = self._noun(0), self._noun(0, size=False)
        others = between + self._noun(1) + join + self._noun(2)
        brief_others = between + self._noun(1, size=False) + join + self._noun(2, size=False)
        return [
            full + self._be(0) + others,
            self._grammar("there") + self._be(0) + full + others + self._ground(),
            brief + brief_others,
            brief_others + self._be(0) + brief,
            self._grammar("we see") + brief + brief_others + self._ground(),
        ]

    def _noun(self, group: int, *, size: bool = True) -> _Words:
        """Return `a small red striped star` or `two small red striped stars`, with or without the size."""
        members = tuple(self.groups[group])
        shape, colour, how_large, material = self.things[members[0]].look
        words = [how_large] if size else []
        words.append(colour)
        if material != "plain":
            words.append(material)
        if len(members) == 1:
            return self._grammar(article(words[0])) + _about(" ".join([*words, shape]), members)
        return _about(" ".join([NUMBERS[len(members)], *words, PLURALS[shape]]), members)

    def _be(self, group: int) -> _Words:
        return self._grammar("is" if len(self.groups[group]) == 1 else "are")

    def _ground(self) -> _Words:
        preposition, _ = GROUNDS[self.ground]
        return self._grammar(f"{preposition} the") + _about(self.ground, (GROUND,))

    @staticmethod
    def _grammar(words: str) -> _Words:
        return _about(words, ())


def _about(words: str, things: tuple[int, ...]) -> _Words:
    return [(word, things) for word in words.split()]


def _third(position: float, low: str, high: str) -> str:
    """Return the name of an outer part of a side, `low` or `high`, by the position in it.

    A position in the middle has no name.
    """
    if position < 0.4:
        return low
    if position > 0.6:
        return high
    return ""


def _position_phrase(thing: Thing) -> str:
    """Return where in the picture a thing is."""
    across, down = _third(thing.x, "left", "right"), _third(thing.y, "top", "bottom")
    if across and down:
        return f"in the {down} {across} corner"
    if across or down:
        return f"at the {down or across}"
    return "in the middle"
