"""The options of each kind of model."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeAlias

from pydantic import BaseModel, Field, SerializeAsAny, model_validator

from translucid.ground.errors import UserError
from translucid.layers.variants import Sinusoids
from translucid.models.model_shape import BlocksShape, ModelShape, OfKind, stacked

if TYPE_CHECKING:
    from torch import nn

    from translucid.layers.embedding import Embedding

USER_CLASS = r"[^/\\:]+\.py:[A-Za-z_]\w*"
"""A pattern for a Python file and a class in it, such as `my_model.py:MyModel`, which `user_code.py` loads."""


ELMO = "language-bilstm"
"""The kind of the models that ELMo's vectors come from."""
SIZES = frozenset(
    {
        *("kind", "width", "heads", "feed_forward", "layers", "encoder_layers", "decoder_layers", "dropout"),
        *("max_length", "share_embeddings", "tie_output", "elmo_tuned"),
    }
)
"""Options that select no equation: every engine takes any value of them."""
Choices: TypeAlias = Mapping[str, Collection[object]]
"""The values of options, by name, whose equations an engine computes."""


def unknown_option(options: BaseModel, known: Choices) -> str | None:
    """Return the first option with a value that an engine does not know; None if it knows all.

    An option that is neither in `known` nor in `SIZES` is newer than the engine, and must have its default value.
    """
    for name, field in type(options).model_fields.items():
        value = getattr(options, name)
        values = known.get(name, [field.default])
        if name not in SIZES and value not in values:
            return name
    return None


class ContextualOptions(ModelShape):
    """The options of translators whose source embeddings may include ELMo."""

    elmo: Annotated[SerializeAsAny[ModelShape] | None, OfKind(ELMO, among=(ELMO,))] = None
    """The bidirectional language model that reads the source; `train --elmo` takes its shape from a run."""
    elmo_tuned: bool = False
    """Train the language model too; by default it is frozen."""

    def with_elmo(self, embedding: Embedding) -> nn.Module:
        """Return a source embedding, combined with ELMo if the options ask for it."""
        return embedding if self.elmo is None else self.elmo.contextual(embedding, tuned=self.elmo_tuned)


class TransformerOptions(BlocksShape, ContextualOptions):
    """The shape of a Transformer."""

    kind: Literal["transformer"] = "transformer"
    """The family of model."""
    positions: Literal[Sinusoids, "learned", "none"] = "sinusoidal"
    """The positional encoding: alternating sines and cosines; sines first, then cosines (`-halves`: Hugging Face's
    Marian models); the latter with other wavelengths (`-tensor2tensor`: Marian, M2M100, NLLB); learned; or none."""
    first_position: int = Field(0, ge=0, le=1 << 10)
    """The sinusoidal position of the first token; M2M100 and NLLB begin at 2."""
    scale_embeddings: bool = True
    """Multiply embeddings by the square root of the width."""
    zero_start: bool = False
    """The start token of the decoder has no embedding, as in Marian."""
    source_end: bool = True
    """The model reads the end token of the source; OpenNMT's models do not, and a mask hides it."""
    max_length: int = Field(1024, ge=2, le=1 << 20)
    """The number of learned positions. Sinusoidal positions have no limit, except in exports to CTranslate2."""
    share_embeddings: bool = True
    """Share source and target embeddings; for one joint vocabulary only."""

    compiles: ClassVar[bool] = True
    builds: ClassVar[str] = "translucid.models.transformer:Transformer"

    @property
    def longest(self) -> int | None:
        """The maximum number of tokens per side, start or end token included; None if there is no limit."""
        return self.max_length if self.positions == "learned" else None


class RecurrentOptions(ContextualOptions):
    """The shape of a recurrent encoder-decoder."""

    kind: Literal["recurrent"] = "recurrent"
    """The family of model."""
    cell: Literal["lstm", "gru"] = "lstm"
    """Long short-term memory (Hochreiter and Schmidhuber 1997) or gated recurrent units (Cho et al. 2014)."""
    width: int = Field(256, ge=2, le=16384)
    """D, the width of embeddings, of the decoder's states, and of the encoder's with both directions together."""
    layers: int = Field(1, ge=1, le=64)
    """L, layers of the encoder and of the decoder each."""
    bidirectional: bool = True
    """Read the source in both directions, each with half the width."""
    first_state: Literal["bridge", "last", "mean"] = "bridge"
    """The decoder's first state: tanh(W h) of the encoder's last state h (Bahdanau et al. 2015); h itself (Sutskever et
    al. 2014); or, for all layers, tanh(W y) of the mean y of the encoder's outputs (Sennrich et al. 2017)."""
    attention: (
        Literal["none", "bahdanau", "luong-dot", "luong-scaled-dot", "luong-general", "luong-concat"]
        | Annotated[str, Field(pattern="^" + USER_CLASS + "$", max_length=200)]
    ) = "luong-general"
    """No attention, the attention of Bahdanau et al. 2015, or that of Luong et al. 2015 with one of its scores or with
    your own score (`my_scores.py:Cosine`)."""
    window: int | None = Field(None, ge=1, le=1 << 16)
    """Luong's local attention (local-p): the number of positions to attend to on either side of a predicted one."""
    input_feeding: bool = False
    """Luong's input feeding: the decoder reads the previous attentional state; slower, as it must go word by word."""
    combine_bias: bool = False
    """Luong's attentional state has a bias: tanh(W [c; h] + b), as in many implementations."""
    dropout: float = Field(0.2, ge=0, lt=1)
    """Dropout on the embeddings, between layers, and before the output projection."""
    share_embeddings: bool = True
    """Share source and target embeddings; for one joint vocabulary only."""
    tie_output: bool = True
    """Share the target embeddings with the output projection."""

    builds: ClassVar[str] = "translucid.models.recurrent:RecurrentModel"

    @model_validator(mode="after")
    def _fits_together(self) -> RecurrentOptions:
        if self.bidirectional and self.width % 2:
            raise ValueError(f"width={self.width} can't be halved between the two directions of the encoder")
        if self.attention in ("none", "bahdanau"):
            if self.window:
                raise ValueError(f"window is for Luong's attention, not for attention={self.attention}")
            for name in ("input_feeding", "combine_bias"):
                if getattr(self, name):
                    raise ValueError(f"{name} is for Luong's attention, not for attention={self.attention}")
        return self

    @property
    def summary(self) -> str:
        """The shape of the model in a few words."""
        return f"{self.cell.upper()} {self.layers}+{self.layers}, width {self.width}"

    @property
    def code(self) -> str | None:
        """The user's file and class, if the score is a user's."""
        return self.attention if ":" in self.attention else None

    @property
    def maps(self) -> dict[str, int]:
        """One map with one head, if there is attention."""
        return {} if self.attention == "none" else {"decoder.0.cross": 1}


class AttentionOnlyOptions(ModelShape):
    """The shape of an attention-only Transformer."""

    kind: Literal["attention-only"] = "attention-only"
    """The family of model."""
    width: int = Field(256, ge=1, le=16384)
    """D, the width of everything."""
    encoder_layers: int = Field(6, ge=1, le=256)
    """Layers of self-attention."""
    decoder_layers: int = Field(6, ge=1, le=256)
    """Layers of causal self-attention followed by cross-attention."""
    dropout: float = Field(0.1, ge=0, lt=1)
    """Dropout on the sum of embedding and position."""
    share_embeddings: bool = True
    """Share source and target embeddings; for one joint vocabulary only."""
    tie_output: bool = True
    """Share the target embeddings with the output projection."""

    builds: ClassVar[str] = "translucid.models.attention_only:AttentionOnly"

    @property
    def summary(self) -> str:
        """The shape of the model in a few words."""
        return f"{self.encoder_layers}+{self.decoder_layers} layers, width {self.width}"

    @property
    def maps(self) -> dict[str, int]:
        """The maps of all layers; each has one head."""
        return stacked(self.encoder_layers, self.decoder_layers, 1)


class CustomOptions(ModelShape):
    """A translator's model in a Python file of a user."""

    kind: Literal["custom"] = "custom"
    """The family of model."""
    implementation: str = Field(pattern=f"^{USER_CLASS}$", max_length=200)
    """The file and the class, such as `my_model.py:MyModel`; `train --model` sets it."""
    options: dict[str, bool | int | float | str | None] = Field(default_factory=dict)
    """The options of the model; its class says which there are."""

    share_embeddings: ClassVar[bool] = False
    """The class decides what it shares; any vocabularies are accepted."""
    dropout: ClassVar[float] = 0.0
    """Whatever the class drops, quality estimation by dropout passes is for built-in models."""

    def build(self, source_vocabulary: int, target_vocabulary: int, pieces: Sequence[str] = ()) -> Any:
        """Return the user's model with fresh weights.

        Raises:
            UserError: its class can't be loaded, its options are wrong, or it can't be built.
        """
        from translucid.models.user_code import file_of, load_model_class, options_of, place_in_user_code

        model_class: Any = load_model_class(self.implementation)
        own_options = options_of(model_class, self.implementation, self.options)
        try:
            model = model_class(source_vocabulary, target_vocabulary, own_options)
        except (TypeError, NameError, AttributeError) as error:
            location = place_in_user_code(error)
            what = f"{model_class.__name__} can't be built ({location}{type(error).__name__}: {error})"
            fix = "It takes the sizes of both vocabularies and its options, and has the methods of CustomModel."
            raise UserError(what, file=file_of(self.implementation), fix=fix) from error
        model.options = self
        return model

    @property
    def summary(self) -> str:
        """The file and the class."""
        return self.implementation

    @property
    def code(self) -> str:
        """The file and the class."""
        return self.implementation

    @property
    def maps(self) -> dict[str, int]:
        """The attention maps that the class declares for these options, and how many heads each has."""
        from translucid.models.user_code import load_model_class, options_of

        model_class = load_model_class(self.implementation)
        return model_class.attention_maps(options_of(model_class, self.implementation, self.options))
