"""What a scene is: things on a ground, in groups of equal ones, and how the groups stand to each other."""

from __future__ import annotations

from typing import NamedTuple

GROUND = -1
"""What a word is about that is about the ground; things are counted from 0."""


class Thing(NamedTuple):
    """One thing. Places and sizes are shares of the picture's side."""

    shape: str
    colour: str
    size: str
    material: str
    x: float
    """Of its middle, from the left."""
    y: float
    """From the top."""
    reach: float
    """Half its height and width at most."""

    @property
    def look(self) -> tuple[str, str, str, str]:
        """What can be said of it, wherever it is."""
        return self.shape, self.colour, self.size, self.material


class Caption(NamedTuple):
    """A sentence about a scene."""

    words: tuple[str, ...]
    about: tuple[tuple[int, ...], ...]
    """Of each word the numbers of the things that it is about, or `GROUND`; nothing for words of grammar."""

    @property
    def text(self) -> str:
        """The sentence."""
        return " ".join(self.words)


class Scene(NamedTuple):
    """A picture before it is painted."""

    ground: str
    things: tuple[Thing, ...]
    groups: tuple[tuple[int, ...], ...]
    """The things of each group, which look alike."""
    relation: str | None
    """How the first group stands to the second, or `between` for one between two; None for one alone."""
    captions: tuple[Caption, ...]
    """Different ones."""

    @property
    def content(self) -> str:
        """What is there and how it stands, without where exactly: scenes of the same content are in the same split."""
        groups = [f"{len(group)} {' '.join(self.things[group[0]].look)}" for group in self.groups]
        return f"{self.ground}: {self.relation}: {', '.join(groups)}"
