"""Captions of a scene, which are true and agree in number."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from random import Random

from .scene import (
    GROUND,
    GROUNDS,
    NUMBERS,
    PLURALS,
    RELATIONS,
    WORDINGS,
    Caption,
    Thing,
    article,
)

CAPTIONS = 5
"""The number of captions of a scene."""

_Words = list[tuple[str, tuple[int, ...]]]
"""Words, each with the numbers of the things that it is about."""


class Speaker:
    """Writes the captions of a scene."""

    def __init__(self, ground: str, things: Sequence[Thing], groups: Sequence[Sequence[int]], rng: Random) -> None:
        """Take the parts of the scene, and the random generator."""
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
    """Return `low` or `high` for a position in the outer parts of a picture's side, "" for one in the middle."""
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
