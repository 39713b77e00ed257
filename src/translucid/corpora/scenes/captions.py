"""What is said of a scene: every sentence is true, and agrees in number."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from .scene import GROUND, Caption, Thing
from .words import GROUNDS, NUMBERS, PLURALS, RELATIONS, SAID, article

CAPTIONS = 5
"""Of a scene."""

_Said = list[tuple[str, tuple[int, ...]]]
"""Words, each with what it is about."""


class Speaker:
    """Speaks of one scene."""

    def __init__(self, ground: str, things: Sequence[Thing], groups: Sequence[Sequence[int]], rng: Random) -> None:
        """The scene, and what decides how it is said."""
        self.ground, self.things, self.groups, self.rng = ground, things, groups, rng

    def captions(self, relation: str | None) -> tuple[Caption, ...]:
        """Return different sentences, the plainest one first."""
        ways = {None: self._alone, "between": self._between}.get(relation, self._pair)(relation)
        said: dict[str, Caption] = {}
        for way in ways:
            caption = Caption(tuple(word for word, _ in way), tuple(about for _, about in way))
            said.setdefault(caption.text, caption)
        return tuple(list(said.values())[:CAPTIONS])

    def _alone(self, _: str | None) -> list[_Said]:
        whole, short, be = self._noun(0), self._noun(0, size=False), self._be(0)
        members = tuple(self.groups[0])
        if len(members) == 1:
            where = [(word, members) for word in _place(self.things[members[0]]).split()]
            fourth = short + be + where
        else:
            fourth = self._grammar("we see") + short + self._ground()
        return [
            whole + self._ground(),
            self._grammar("there") + be + whole + self._ground(),
            self._ground() + be + whole,
            fourth,
            self._grammar("the picture shows") + whole,
        ]

    def _pair(self, relation: str | None) -> list[_Said]:
        assert relation is not None
        back = RELATIONS[relation]
        both = (*self.groups[0], *self.groups[1])

        def stands(which: str, way: int = 0) -> _Said:
            return [(word, both) for word in SAID[which][way % len(SAID[which])].split()]

        first, second = self._noun(0), self._noun(1)
        brief, other = self._noun(0, size=False), self._noun(1, size=False)
        if relation in ("larger", "smaller"):  # the size is what is told
            first, second = brief, other
        return [
            first + self._be(0) + stands(relation) + second,
            second + self._be(1) + stands(back) + first,
            self._grammar("there") + self._be(0) + first + stands(relation, 1) + second + self._ground(),
            brief + stands(relation, 1) + other + self._ground(),
            self._grammar("we see") + brief + stands(relation) + other,
            self._grammar("the picture shows") + other + stands(back) + brief,
        ]

    def _between(self, _: str | None) -> list[_Said]:
        every = tuple(thing for group in self.groups for thing in group)
        between: _Said = [("between", every)]
        a, b, c = (self._noun(i) for i in range(3))
        d, e, f = (self._noun(i, size=False) for i in range(3))
        join = self._grammar("and")
        return [
            a + self._be(0) + between + b + join + c,
            self._grammar("there") + self._be(0) + a + between + b + join + c + self._ground(),
            d + between + e + join + f,
            between + e + join + f + self._be(0) + d,
            self._grammar("we see") + d + between + e + join + f + self._ground(),
        ]

    def _noun(self, group: int, *, size: bool = True) -> _Said:
        """Return `a small red striped star` or `two small red striped stars`, with or without the size."""
        members = tuple(self.groups[group])
        shape, colour, how_large, material = self.things[members[0]].look
        words = [how_large] if size else []
        words += [colour, *([material] if material != "plain" else [])]
        words.append(shape if len(members) == 1 else PLURALS[shape])
        if len(members) == 1:
            return [(article(words[0]), ()), *((word, members) for word in words)]
        return [(word, members) for word in (NUMBERS[len(members)], *words)]

    def _be(self, group: int) -> _Said:
        return self._grammar("is" if len(self.groups[group]) == 1 else "are")

    def _ground(self) -> _Said:
        preposition = GROUNDS[self.ground][0]
        return [*self._grammar(f"{preposition} the"), *((word, (GROUND,)) for word in self.ground.split())]

    @staticmethod
    def _grammar(words: str) -> _Said:
        return [(word, ()) for word in words.split()]


def _place(thing: Thing) -> str:
    """Say where in the picture a thing is."""
    across = "left" if thing.x < 0.4 else "right" if thing.x > 0.6 else ""
    down = "top" if thing.y < 0.4 else "bottom" if thing.y > 0.6 else ""
    if across and down:
        return f"in the {down} {across} corner"
    if across or down:
        return f"at the {down or across}"
    return "in the middle"
