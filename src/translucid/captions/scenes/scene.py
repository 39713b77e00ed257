"""Scenes: things on a ground, in groups that look alike, and the spatial relation of the groups; and their words.

Words name the shapes, colours and other properties of things.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from translucid.corpora import english_plural, table

Colour: TypeAlias = tuple[int, int, int]
"""Red, green and blue, 0 .. 255."""


def plurals(names: str) -> dict[str, str]:
    """Return the plural of each of these names; an irregular one follows a slash."""
    result: dict[str, str] = {}
    for name in names.split():
        singular, _, irregular = name.partition("/")
        result[singular] = irregular or english_plural(singular)
    return result


COMMON = plurals(
    "anchor apple arrow bell boat bolt bottle bow butterfly cactus/cacti cherry circle cloud cross crown cup "
    "diamond drop fish/fish flag flower hammer hat heart hourglass house key knife/knives ladder lamp leaf/leaves "
    "moon mouse/mice mushroom note oval pear snowman/snowmen spoon square star sun tower tree triangle umbrella "
    "wheel"
)
"""The plurals of the shapes that are used first if only some are needed."""
OTHER_SHAPES = plurals(
    "axe balloon bone bucket bus camera candle car cat chair dress duck envelope eye fence foot/feet fork ghost "
    "loaf/loaves lock magnet plane rabbit robot rocket shirt snail spider spiral sword teapot tent tooth/teeth "
    "watch windmill wrench"
)
"""The plurals of the other shapes."""
SHAPES = COMMON | OTHER_SHAPES
HOLLOW = {"ring": "rings", "frame": "frames"}
"""Shapes inside which other things can be."""
PLURALS = SHAPES | HOLLOW

COLOURS: dict[str, Colour] = {}
"""The colours of things."""
GROUNDS: dict[str, tuple[str, Colour]] = {}
"""The preposition and the colour of each ground."""
for _row in table("colours.tsv", __package__):
    _colour = int(_row["red"]), int(_row["green"]), int(_row["blue"])
    if _row["use"] == "ground":
        GROUNDS[_row["name"]] = _row["preposition"], _colour
    else:
        COLOURS[_row["name"]] = _colour

SIZES = {"small": 0.11, "large": 0.165, "huge": 0.23}
"""Half the height of a thing, as a share of the picture's side."""

MATERIALS = ("plain", "striped", "dotted", "checked", "shiny")
"""The materials; captions do not mention `plain`."""

NUMBERS = ("no", "one", "two", "three", "four", "five")

RELATIONS = {
    "left": "right",
    "right": "left",
    "above": "below",
    "below": "above",
    "inside": "around",
    "larger": "smaller",
    "smaller": "larger",
}
"""The inverse of each relation."""
WORDINGS = {
    "left": ("left of", "to the left of"),
    "right": ("right of", "to the right of"),
    "above": ("above", "over"),
    "below": ("below", "under"),
    "inside": ("inside", "within"),
    "around": ("around",),
    "larger": ("larger than", "bigger than"),
    "smaller": ("smaller than",),
}
"""The wordings of each relation."""


def article(word: str) -> str:
    """Return the indefinite article before a size or a colour."""
    return "an" if word[0] in "aeiou" else "a"


def far_apart(colour: Colour, other: Colour) -> bool:
    """Whether two colours are easy to distinguish."""
    return sum((a - b) ** 2 for a, b in zip(colour, other, strict=True)) > 90**2


GROUND = -1
"""The number that stands for the ground among the numbers of things."""


class Look(NamedTuple):
    """The properties of a thing except its place."""

    shape: str
    colour: str
    size: str
    material: str


class Thing(NamedTuple):
    """A thing. Places and sizes are shares of the picture's side."""

    shape: str
    colour: str
    size: str
    material: str
    x: float
    """The distance of its centre from the left."""
    y: float
    """The distance of its centre from the top."""
    reach: float
    """Half of its largest height and width."""

    @property
    def look(self) -> Look:
        """The properties of the thing except its place."""
        return Look(*self[:4])


class Caption(NamedTuple):
    """A sentence about a scene."""

    words: tuple[str, ...]
    about: tuple[tuple[int, ...], ...]
    """For each word, the numbers of the things that it is about, or `GROUND`; empty for function words."""

    @property
    def text(self) -> str:
        """The sentence."""
        return " ".join(self.words)


class Scene(NamedTuple):
    """The content of a picture."""

    ground: str
    things: tuple[Thing, ...]
    groups: tuple[tuple[int, ...], ...]
    """The numbers of the things of each group, which look alike."""
    relation: str | None
    """The relation of the first group to the second, or `between` for one between two; None for a single group."""
    captions: tuple[Caption, ...]
    """Captions, all different."""

    @property
    def content(self) -> str:
        """The things and their relation, without exact places: scenes with the same content are in the same split."""
        groups = [f"{len(group)} {' '.join(self.things[group[0]].look)}" for group in self.groups]
        return f"{self.ground}: {self.relation}: {', '.join(groups)}"
