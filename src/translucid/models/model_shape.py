"""What every kind of model tells of itself without being built."""

from __future__ import annotations

from typing import ClassVar, Literal, Self

from pydantic import Field, model_validator

from translucid.ground.option_group import OptionGroup
from translucid.layers.variants import Nonlinearity


class ModelShape(OptionGroup):
    """The base of the options of all kinds of models."""

    reads: ClassVar[Literal["text", "images", "running text", "texts with labels"]] = "text"
    """What a source is."""

    @property
    def maps(self) -> dict[str, int]:
        """The attention maps by name (`encoder.0.self`, `decoder.1.cross`), and how many heads each has."""
        raise NotImplementedError

    @property
    def code(self) -> str | None:
        """The Python file and the class of a user that the model needs, if any; see `user_code.py`."""
        return None

    @property
    def looks(self) -> bool:
        """Whether there is attention between source and target, without which there is no alignment."""
        return any(name.endswith(".cross") for name in self.maps)


class BlocksShape(ModelShape):
    """What the blocks of a Transformer need to know, whatever they read."""

    kind: str
    """The family of model."""
    width: int = Field(256, ge=1, le=16384)
    """D, the width of embeddings and layers."""
    heads: int = Field(4, ge=1, le=16384)
    """H, attention heads; they divide the width among them."""
    feed_forward: int = Field(1024, ge=1, le=65536)
    """F, the inner width of the feed-forward sublayers."""
    encoder_layers: int = Field(3, ge=1, le=256)
    """Encoder blocks."""
    decoder_layers: int = Field(3, ge=1, le=256)
    """Decoder blocks."""
    dropout: float = Field(0.1, ge=0, lt=1)
    """Dropout on each sublayer's output and on the sum of embedding and position."""
    norm: Literal["pre", "post"] = "pre"
    """Layer normalisation before each sublayer, or after it as in the paper."""
    nonlinearity: Nonlinearity = "relu"
    """Between the two halves of the feed-forward sublayers; the paper has `relu`."""
    tie_output: bool = True
    """Share the target embeddings with the output projection."""

    @model_validator(mode="after")
    def _heads_divide_width(self) -> Self:
        if self.width % self.heads:
            raise ValueError(f"heads={self.heads} do not divide width={self.width}")
        return self

    @property
    def maps(self) -> dict[str, int]:
        """See `ModelShape`."""
        return stacked(self.encoder_layers, self.decoder_layers, self.heads)


def stacked(encoder: int, decoder: int, heads: int) -> dict[str, int]:
    """Return the maps of a stack of encoder and decoder layers, each with so many heads."""
    names = [f"encoder.{i}.self" for i in range(encoder)]
    names += [f"decoder.{i}.{kind}" for i in range(decoder) for kind in ("self", "cross")]
    return dict.fromkeys(names, heads)
