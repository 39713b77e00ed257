"""The options that all models have, and the facts about a model that are known before it is built."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from pydantic import BaseModel, Field, GetCoreSchemaHandler, model_validator
from pydantic_core import CoreSchema, PydanticCustomError, PydanticKnownError, core_schema

from translucid.ground.errors import UserError
from translucid.ground.option_group import OptionGroup
from translucid.layers.variants import Nonlinearity, Norm
from translucid.models.kinds import options_of_kind, resolved, tasks

if TYPE_CHECKING:
    from torch import nn

    from translucid.layers.embedding import Embedding


class ModelShape(OptionGroup):
    """The base of the options of all kinds of models."""

    reads: ClassVar[str] = "text"
    """The kind of source; `models/kinds.py` has a task for each."""
    compiles: ClassVar[bool] = False
    """Whether PyTorch can compile the model in training (`training.compile`)."""
    builds: ClassVar[str] = ""
    """The class of the models, as a reference `module:name` (`models/kinds.py`): options only hold values."""
    own_fixed_settings: ClassVar[tuple[str, ...]] = ()
    """Settings that can't change in a resumed run of such a model, beside those of all models."""

    if TYPE_CHECKING:  # each class has these, as a field or as a constant of the class

        @property
        def kind(self) -> str:
            """The family of model."""

        @property
        def share_embeddings(self) -> bool:
            """Whether source and target share embeddings."""

        @property
        def dropout(self) -> float:
            """The dropout of the model."""

    def build(self, source_vocabulary: int, target_vocabulary: int, pieces: Sequence[str] = ()) -> Any:
        """Return a model, a `protocol.Model`, with these options and fresh weights; see `models.build.build_model`."""
        return resolved(self.builds)(source_vocabulary, target_vocabulary, self)

    def load_pretrained(self, model: Any) -> None:
        """Load the weights of parts of a new model that are pre-trained networks, if it has any."""

    def contextual(self, embedding: Embedding, *, tuned: bool) -> nn.Module:
        """Return a source embedding to which such a model, frozen unless `tuned`, adds the states that it computes."""
        raise NotImplementedError

    @classmethod
    def begun_from(cls, base: ModelShape, run: Path) -> dict[str, Any]:
        """Return the settings of such a model that begins with the weights of a model of another kind, that of a run.

        Raises:
            UserError: it can't begin with them.
        """
        what = f"holds a model of the kind {base.kind}, not {cls.model_fields['kind'].default}"
        raise UserError(what, file=run, fix="Leave `model` out, or give the run of another model.")

    def translator_of_same_shape(self, run: Path) -> dict[str, Any]:
        """Return the settings of a translator whose encoder or decoder can begin with the weights of such a model.

        Raises:
            UserError: there is none; the message names the model's run.
        """
        what = f"holds a model of the kind {self.kind}, which can't initialize half of a translator"
        raise UserError(what, file=run, fix="Give the run of an lm-transformer or an lm-lstm.")

    def as_elmo(self, run: Path) -> dict[str, Any]:
        """Return the settings of `model.elmo` of a translator that reads its sources with such a model too.

        Raises:
            UserError: the model can't; the message names its run.
        """
        what = f"holds a model of the kind {self.kind}, which does not read from both ends"
        raise UserError(what, file=run, fix="Give the run of an lm-bilstm.")

    def completed(self, former: Self) -> Self:
        """Return the options with what the training of the `former` ones has learned from its data, such as labels."""
        return self

    @property
    def summary(self) -> str:
        """The shape of the model in a few words."""
        return self.kind

    @property
    def maps(self) -> dict[str, int]:
        """The number of heads of each attention map by its name, such as `encoder.0.self`; none by default."""
        return {}

    @property
    def longest(self) -> int | None:
        """The maximum number of tokens per side, start or end token included; None if there is no limit."""
        return None

    @property
    def code(self) -> str | None:
        """The user's Python file and class that the model needs, if any; `user_code.py` loads it."""
        return None

    @property
    def has_cross_attention(self) -> bool:
        """Whether there is attention between source and target, without which there is no alignment."""
        return self.cross_attentions > 0

    @property
    def cross_attentions(self) -> int:
        """The number of layers with attention between source and target."""
        return sum(name.endswith(".cross") for name in self.maps)


class BlocksShape(ModelShape):
    """The shape of a stack of Transformer blocks, for every kind of source."""

    kind: str
    """The family of model."""
    width: int = Field(256, ge=1, le=16384)
    """D, the width of embeddings and layers."""
    heads: int = Field(4, ge=1, le=16384)
    """H, attention heads; they divide the width among them."""
    head_width: int | None = Field(None, ge=1, le=16384)
    """d, the width of a head; by default D / H. The Keras tutorials have d = D."""
    feed_forward: int = Field(1024, ge=1, le=65536)
    """F, the inner width of the feed-forward sublayers."""
    encoder_layers: int = Field(3, ge=1, le=256)
    """Encoder blocks."""
    decoder_layers: int = Field(3, ge=1, le=256)
    """Decoder blocks."""
    decoder: Literal["self-attention", "ssru"] = "self-attention"
    """How positions of the target depend on earlier ones: causal self-attention; or an SSRU (Kim et al. 2019,
    D19-5632), a recurrent unit with a state of constant size, for fast students."""
    dropout: float = Field(0.1, ge=0, lt=1)
    """Dropout on each sublayer's output and on the sum of embedding and position."""
    norm: Norm = "pre"
    """Layer normalization before each sublayer; after it as in the paper (`post`); or after it and after the last block
    too, as in PyTorch's `nn.Transformer` (`post-final`)."""
    norm_epsilon: float = Field(1e-5, gt=0, le=1e-2)
    """What layer normalization adds to the variance; 0.001 in Keras."""
    nonlinearity: Nonlinearity = "relu"
    """Between the two halves of the feed-forward sublayers; the paper has `relu`."""
    tie_output: bool = True
    """Share the target embeddings with the output projection."""

    @model_validator(mode="after")
    def _heads_divide_width(self) -> Self:
        if self.head_width is None and self.width % self.heads:
            raise ValueError(f"heads={self.heads} do not divide width={self.width}")
        return self

    @property
    def has_final_norm(self) -> bool:
        """Whether the last block of each side is followed by a norm."""
        return self.norm != "post"

    @property
    def summary(self) -> str:
        """The shape of the model in a few words."""
        return f"{self.encoder_layers}+{self.decoder_layers} layers, width {self.width}, {self.heads} heads"

    @property
    def maps(self) -> dict[str, int]:
        """The maps of all encoder and decoder blocks."""
        maps = stacked(self.encoder_layers, self.decoder_layers, self.heads)
        if self.decoder == "ssru":
            for layer in range(self.decoder_layers):
                del maps[f"decoder.{layer}.self"]
        return maps


def stacked(encoder: int, decoder: int, heads: int) -> dict[str, int]:
    """Return the maps of a stack of encoder and decoder layers with this number of heads."""
    names = [f"encoder.{layer}.self" for layer in range(encoder)]
    for layer in range(decoder):
        names += [f"decoder.{layer}.self", f"decoder.{layer}.cross"]
    return dict.fromkeys(names, heads)


@dataclass(frozen=True)
class OfKind:
    """Marks a field that has the options of a kind of model: its value's `kind` decides on the class."""

    default: str
    """The kind of settings that do not name one."""
    among: tuple[str, ...] = ()
    """The kinds that the field may have; all by default."""

    def kinds(self) -> list[str]:
        """Return the kinds that the core and our extensions have for the field."""
        return [*self.among] or list(chain.from_iterable(task.kinds for task in tasks()))

    def options_of(self, settings: object) -> type[BaseModel] | None:
        """Return the class of the options for some settings; None if there is no such kind."""
        kind = settings.get("kind", self.default) if isinstance(settings, dict) else self.default
        return None if self.among and kind not in self.among else options_of_kind(kind)

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_before_validator_function(self._options, handler(source))

    def _options(self, value: Any) -> Any:
        if value is None or isinstance(value, BaseModel):
            return value
        if not isinstance(value, dict):
            raise PydanticKnownError("model_attributes_type")
        options = self.options_of(value)
        if options is None:
            raise PydanticCustomError(
                "unknown_kind", "no such kind", {"kind": str(value["kind"]), "kinds": self.kinds()}
            )
        return options.model_validate(value)
