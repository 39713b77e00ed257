"""The gold boxes of the built-in scenes, and the things that each word of a caption refers to (`gold.jsonl`)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Self, TypeAlias

from pydantic import BaseModel, ConfigDict, PositiveInt, ValidationError, model_validator

from translucid.corpora.scenes import GROUND
from translucid.corpora.scenes.words import COLOURS, MATERIALS, NUMBERS, PLURALS, SAID, SIZES
from translucid.data.readers.corpus import read_lines
from translucid.ground.errors import UserError

Box: TypeAlias = tuple[float, float, float, float]
"""Left, top, right and bottom; the last two are excluded."""
About: TypeAlias = tuple[int, ...] | None
"""The things that a word refers to, counted from 0, or `GROUND`; empty for a function word; None if unknown."""

_SINGULARS = dict(zip(PLURALS.values(), PLURALS, strict=True)) | dict(zip(PLURALS, PLURALS, strict=True))
_RELATIONS = set(" ".join(chain.from_iterable(SAID.values())).split()) - {"to", "the", "of", "than"}
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


class _Line(BaseModel):
    model_config = ConfigDict(frozen=True)


class Look(_Line):
    """The properties of a thing, without its position."""

    shape: str
    colour: str
    size: str
    material: str


class GoldCaption(_Line):
    """A true sentence about a scene."""

    words: tuple[str, ...]
    about: tuple[tuple[int, ...], ...]
    """The things that each word refers to."""


class GoldImage(_Line):
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
    found: dict[str, GoldImage] = {}
    for number, line in enumerate(read_lines(path), 1):
        try:
            gold = GoldImage.model_validate_json(line)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            where, problem = ".".join(map(str, first["loc"])), first["msg"]
            if where:  # an error in the whole line has no place within it
                problem = f"{where}: {problem}"
            what = f"is not a line of gold boxes ({problem})"
            raise UserError(what, file=path, line=number, fix=fix) from error
        if found.setdefault(gold.image, gold) is not gold:
            raise UserError(f"is the second line of {gold.image}", file=path, line=number, fix=fix)
    return found


def gold_of_words(words: Sequence[str], gold: GoldImage) -> list[About]:
    """Return what each word of a caption refers to.

    A caption that equals one of the image's captions has its gold. For others, noun phrases are looked up: `two small
    red striped stars` refers to all stars that are small, red and striped. If there are none, it is unknown what the
    words of the phrase refer to; so is the number if there are more or fewer. Words of relation refer to the things of
    all noun phrases, whether or not the relation holds.
    """
    for caption in gold.captions:
        if caption.words == tuple(words):
            return list(caption.about)
    references: list[About] = [()] * len(words)
    for i, word in enumerate(words):
        if word in KINDS:
            references[i] = None
    everything: set[int] = set()
    all_known = True
    for start, end in _noun_phrases(words):
        things = _like(words[start:end], gold)
        everything.update(things)
        all_known = all_known and bool(things)
        for i in range(start, end):
            references[i] = things or None
            # A number refers to the things only if it is their number.
            if words[i] in NUMBERS and NUMBERS.index(words[i]) != len(things):
                references[i] = None
    of_relation = tuple(sorted(everything)) if all_known else ()
    of_ground = gold.ground.split()
    for i, word in enumerate(words):
        if KINDS.get(word) == "relation":
            references[i] = of_relation or None
        elif word in of_ground:
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


def _like(phrase: Sequence[str], gold: GoldImage) -> tuple[int, ...]:
    """Return the things with the properties of a noun phrase."""
    properties = {_SINGULARS.get(word, word) for word in phrase if word not in NUMBERS}
    things = []
    for number, look in enumerate(gold.things):
        if properties <= set(look.model_dump().values()):
            things.append(number)
    return tuple(things)
