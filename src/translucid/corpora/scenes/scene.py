"""Scenes: things on a ground, in groups that look alike, and the spatial relation of the groups."""

from __future__ import annotations

from typing import NamedTuple

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
