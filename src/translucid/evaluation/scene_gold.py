"""What is where in the built-in scenes, and what each word of a caption is about: `gold.jsonl`, read again."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Self, TypeAlias

from pydantic import BaseModel, ConfigDict, PositiveInt, ValidationError, model_validator

from translucid.corpora.scenes import GROUND
from translucid.corpora.scenes.words import COLOURS, MATERIALS, NUMBERS, PLURALS, SAID, SIZES
from translucid.data.readers.corpus import read_lines
from translucid.ground.errors import UserError

Box: TypeAlias = tuple[float, float, float, float]
"""Left, top, right, bottom; the last two excluded."""
About: TypeAlias = tuple[int, ...] | None
"""The things that a word is about, counted from 0, or `GROUND`; nothing for a word of grammar; None if not known."""

_SINGULARS = {plural: shape for shape, plural in PLURALS.items()} | {shape: shape for shape in PLURALS}
_RELATIONS = {word for ways in SAID.values() for way in ways for word in way.split()} - {"to", "the", "of", "than"}
_PLACES = {"top", "bottom", "middle", "corner"}
KINDS: dict[str, str] = {
    **dict.fromkeys(_SINGULARS, "object"),
    **dict.fromkeys(COLOURS, "colour"),
    **dict.fromkeys(SIZES, "size"),
    **dict.fromkeys(MATERIALS, "material"),
    **dict.fromkeys(NUMBERS, "count"),
    **dict.fromkeys(_RELATIONS | _PLACES | {"between"}, "relation"),
}
"""Of each word that is about things, what it says of them; where they stand, to each other or in the picture, is a
relation. Words of the ground and of grammar have none."""


class _Line(BaseModel):
    model_config = ConfigDict(frozen=True)


class Look(_Line):
    """What can be said of a thing, wherever it is."""

    shape: str
    colour: str
    size: str
    material: str


class GoldCaption(_Line):
    """A true sentence."""

    words: tuple[str, ...]
    about: tuple[tuple[int, ...], ...]
    """Of each word."""


class GoldImage(_Line):
    """A line of `gold.jsonl`."""

    image: str
    """Its name in the corpus."""
    side: PositiveInt
    """Of the picture, in pixels."""
    ground: str
    things: tuple[Look, ...]
    boxes: tuple[Box, ...]
    """Of each thing, in pixels."""
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
            if any(not GROUND <= thing < len(self.things) for about in caption.about for thing in about):
                raise ValueError("a word about a thing that is not there")
        return self

    def box_of(self, thing: int) -> Box:
        """Return the box of a thing in shares of the picture's side."""
        left, top, right, bottom = self.boxes[thing]
        return left / self.side, top / self.side, right / self.side, bottom / self.side


def read_gold(path: str | Path) -> dict[str, GoldImage]:
    """Read `gold.jsonl`, by the names of images.

    Raises:
        UserError: it can't be read, or a line is something else, or there are two of an image.
    """
    fix = "Write the scenes anew: translucid data scenes."
    found: dict[str, GoldImage] = {}
    for number, line in enumerate(read_lines(path), 1):
        try:
            gold = GoldImage.model_validate_json(line)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            where = ".".join(map(str, first["loc"]))
            what = f"is not a line of gold boxes ({f'{where}: ' if where else ''}{first['msg']})"
            raise UserError(what, file=path, line=number, fix=fix) from error
        if found.setdefault(gold.image, gold) is not gold:
            raise UserError(f"is the second line of {gold.image}", file=path, line=number, fix=fix)
    return found


def gold_of_words(words: Sequence[str], gold: GoldImage) -> list[About]:
    """Return what each word of a caption is about.

    A caption that is word for word one of the image's own has the gold of that. Of another, noun phrases are looked up:
    `two small red striped stars` is about all stars that are small, red and striped; if there are none, no word of the
    phrase is about anything known, nor is the number if there are more or fewer. Words of relation are about the things
    of all noun phrases; whether the relation holds is not asked.
    """
    for caption in gold.captions:
        if caption.words == tuple(words):
            return list(caption.about)
    found: list[About] = [None if word in KINDS else () for word in words]
    phrases = _noun_phrases(words)
    things = [_like(words[start:end], gold) for start, end in phrases]
    for (start, end), about in zip(phrases, things, strict=True):
        for i in range(start, end):
            miscounted = words[i] in NUMBERS and NUMBERS.index(words[i]) != len(about)
            found[i] = None if miscounted else about or None
    everything = tuple(sorted({thing for about in things for thing in about})) if all(things) else ()
    of_ground = gold.ground.split()
    for i, word in enumerate(words):
        if KINDS.get(word) == "relation":
            found[i] = everything or None
        elif word in of_ground:
            found[i] = (GROUND,)
    return found


def _noun_phrases(words: Sequence[str]) -> list[tuple[int, int]]:
    """Return where phrases such as `two small red striped stars` begin and end, articles not included."""
    found = []
    start = 0
    for i, word in enumerate(words):
        kind = KINDS.get(word)
        if kind == "object":
            found.append((start, i + 1))
        if kind not in ("count", "size", "colour", "material"):
            start = i + 1
    return found


def _like(phrase: Sequence[str], gold: GoldImage) -> tuple[int, ...]:
    """Return the things that look as a noun phrase says."""
    said = {_SINGULARS.get(word, word) for word in phrase if word not in NUMBERS}
    return tuple(number for number, look in enumerate(gold.things) if said <= set(look.model_dump().values()))
