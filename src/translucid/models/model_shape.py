"""What every kind of model tells of itself without being built."""

from __future__ import annotations

from typing import ClassVar, Literal

from translucid.ground.option_group import OptionGroup


class ModelShape(OptionGroup):
    """The base of the options of all kinds of models."""

    reads: ClassVar[Literal["text", "images"]] = "text"
    """What a source is."""

    @property
    def maps(self) -> dict[str, int]:
        """The attention maps by name (`encoder.0.self`, `decoder.1.cross`), and how many heads each has."""
        raise NotImplementedError

    @property
    def looks(self) -> bool:
        """Whether there is attention between source and target, without which there is no alignment."""
        return any(name.endswith(".cross") for name in self.maps)


def stacked(encoder: int, decoder: int, heads: int) -> dict[str, int]:
    """Return the maps of a stack of encoder and decoder layers, each with so many heads."""
    names = [f"encoder.{i}.self" for i in range(encoder)]
    names += [f"decoder.{i}.{kind}" for i in range(decoder) for kind in ("self", "cross")]
    return dict.fromkeys(names, heads)
