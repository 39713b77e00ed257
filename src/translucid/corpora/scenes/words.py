"""The shapes, colours and other properties of things, and the words for them."""

from __future__ import annotations

from translucid.corpora import english_plural


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
MORE = plurals(
    "axe balloon bone bucket bus camera candle car cat chair dress duck envelope eye fence foot/feet fork ghost "
    "loaf/loaves lock magnet plane rabbit robot rocket shirt snail spider spiral sword teapot tent tooth/teeth "
    "watch windmill wrench"
)
"""The plurals of the other shapes."""
SHAPES = COMMON | MORE
HOLLOW = {"ring": "rings", "frame": "frames"}
"""Shapes inside which other things can be."""
PLURALS = SHAPES | HOLLOW

COLOURS = {
    "red": (208, 36, 38),
    "orange": (240, 138, 30),
    "yellow": (248, 220, 40),
    "green": (36, 150, 62),
    "turquoise": (52, 200, 196),
    "blue": (38, 78, 200),
    "purple": (128, 52, 168),
    "pink": (244, 136, 188),
    "brown": (120, 74, 36),
    "black": (24, 24, 26),
    "grey": (138, 138, 142),
    "white": (246, 246, 244),
}
"""Red, green and blue, 0 .. 255."""

SIZES = {"small": 0.11, "large": 0.165, "huge": 0.23}
"""Half the height of a thing, as a share of the picture's side."""

MATERIALS = ("plain", "striped", "dotted", "checked", "shiny")
"""The materials; captions do not mention `plain`."""

GROUNDS = {
    "grass": ("on", (126, 190, 96)),
    "sand": ("on", (226, 202, 146)),
    "snow": ("in", (228, 234, 242)),
    "water": ("in", (112, 170, 222)),
    "carpet": ("on", (170, 84, 92)),
    "floor": ("on", (186, 140, 92)),
    "wall": ("on", (196, 184, 176)),
    "paper": ("on", (250, 246, 232)),
    "road": ("on", (98, 100, 106)),
    "gravel": ("on", (160, 152, 142)),
    "beach": ("on", (214, 200, 160)),
    "night sky": ("in", (34, 36, 74)),
}
"""The preposition and the colour of each ground."""

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
SAID = {
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


def far_apart(one: tuple[int, int, int], other: tuple[int, int, int]) -> bool:
    """Whether two colours are easy to distinguish."""
    return sum((a - b) ** 2 for a, b in zip(one, other, strict=True)) > 90**2
