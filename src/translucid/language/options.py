"""The options of language models and of text classifiers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from translucid.ground.errors import UserError
from translucid.models.kinds import resolved
from translucid.models.model_shape import ModelShape, OfKind

if TYPE_CHECKING:
    from torch import nn

    from translucid.layers.embedding import Embedding
    from translucid.runs.configuration import Configuration


CONTEXTUAL = "translucid.language.lstm:ContextualEmbedding"
"""The embedding with ELMo's vectors."""


class LanguageShape(ModelShape):
    """The options of all language models."""

    width: int = Field(256, ge=1, le=16384)
    """D, the width of embeddings and features."""
    backwards: bool = False
    """Read each text from its last token to its first."""
    tie_output: bool = True
    """Share the embeddings with the output projection."""

    reads: ClassVar[str] = "running text"
    """The kind of source."""
    directions: ClassVar[int] = 1
    """The number of directions in which the model reads a text at the same time."""
    share_embeddings: ClassVar[bool] = False
    """There is one vocabulary only."""
    own_fixed_settings: ClassVar[tuple[str, ...]] = ("training.window",)

    def build(self, source_vocabulary: int, target_vocabulary: int, pieces: Sequence[str] = ()) -> Any:
        """Return a model with fresh weights."""
        return resolved(self.builds)(target_vocabulary, self)


class LSTMLanguageOptions(LanguageShape):
    """The shape of the AWD-LSTM of Merity et al. 2018 (arXiv 1708.02182)."""

    kind: Literal["language-lstm"] = "language-lstm"
    """The family of model."""
    hidden: int = Field(640, ge=1, le=16384)
    """H, the width of all layers but the last, which is as wide as the embeddings."""
    layers: int = Field(2, ge=1, le=64)
    """L, LSTM layers."""
    dropout: float = Field(0.1, ge=0, lt=1)
    """Dropout on the features, before the output projection; one mask for all positions of a window."""
    hidden_dropout: float = Field(0.1, ge=0, lt=1)
    """The same dropout between layers."""
    input_dropout: float = Field(0.1, ge=0, lt=1)
    """The same dropout on the embedded tokens."""
    embedding_dropout: float = Field(0.02, ge=0, lt=1)
    """The share of the vocabulary whose vectors are 0 in a window."""
    weight_dropout: float = Field(0.1, ge=0, lt=1)
    """The share of the weights from hidden state to hidden state that are 0 in a window (DropConnect)."""
    activation: float = Field(0.0, ge=0, le=1e9)
    """alpha, the weight of activation regularization: the mean square of the features."""
    smoothness: float = Field(0.0, ge=0, le=1e9)
    """beta, the weight of temporal activation regularization: the mean square of the difference between the last
    layer's states at neighboring positions."""

    builds: ClassVar[str] = "translucid.language.lstm:LSTMLanguageModel"

    def translator_of_same_shape(self, run: Path) -> dict[str, Any]:
        """Return the settings of a recurrent translator."""
        if self.backwards:
            raise UserError("reads backwards, and a translator does not", file=run, fix="Give another run.")
        if self.layers > 1 and self.hidden != self.width:
            what = f"has model.hidden={self.hidden} and model.width={self.width}, and a translator has one width"
            raise UserError(what, file=run, fix="Train the language model with both alike.")
        common = self.model_dump(include={"width", "layers", "tie_output"})
        return {"kind": "recurrent", "cell": "lstm", "bidirectional": False, **common}

    @property
    def summary(self) -> str:
        """The shape of the model in a few words."""
        return f"LSTM {self.layers} layers, width {self.width}, hidden {self.hidden}"


class TransformerLanguageOptions(LanguageShape):
    """The shape of a decoder-only Transformer."""

    kind: Literal["language-transformer"] = "language-transformer"
    """The family of model."""
    heads: int = Field(4, ge=1, le=16384)
    """H, attention heads; they divide the width among them."""
    feed_forward: int = Field(1024, ge=1, le=65536)
    """F, the inner width of the feed-forward sublayers."""
    layers: int = Field(4, ge=1, le=256)
    """L, blocks."""
    dropout: float = Field(0.1, ge=0, lt=1)
    """Dropout on each sublayer's output and on the sum of embedding and position."""
    norm: Literal["pre", "post"] = "pre"
    """Layer normalization before each sublayer, or after it."""
    context: int = Field(128, ge=2, le=1 << 16)
    """The maximum number of tokens that the model attends to in generation and evaluation; at most training.window."""

    @model_validator(mode="after")
    def _heads_divide_width(self) -> TransformerLanguageOptions:
        if self.width % self.heads:
            raise ValueError(f"heads={self.heads} do not divide width={self.width}")
        return self

    builds: ClassVar[str] = "translucid.language.transformer:TransformerLanguageModel"

    def translator_of_same_shape(self, run: Path) -> dict[str, Any]:
        """Return the settings of a Transformer."""
        common = self.model_dump(include={"width", "heads", "feed_forward", "norm", "tie_output"})
        return {"kind": "transformer", **common, "encoder_layers": self.layers, "decoder_layers": self.layers}

    @property
    def summary(self) -> str:
        """The shape of the model in a few words."""
        return f"{self.layers} layers, width {self.width}, {self.heads} heads, context {self.context}"

    @property
    def maps(self) -> dict[str, int]:
        """One map for each block."""
        return {f"decoder.{i}.self": self.heads for i in range(self.layers)}


class BiLSTMLanguageOptions(LanguageShape):
    """The shape of the bidirectional language model of Peters et al. 2018 (arXiv 1802.05365)."""

    kind: Literal["language-bilstm"] = "language-bilstm"
    """The family of model."""
    hidden: int = Field(512, ge=1, le=16384)
    """H, the width of each LSTM's states, which are then projected down to D."""
    layers: int = Field(2, ge=1, le=64)
    """L, LSTM layers in each direction."""
    dropout: float = Field(0.1, ge=0, lt=1)
    """Dropout on the input of each layer and on the features; one mask for all positions of a window."""
    characters: bool = False
    """Compute the vectors of pieces from their characters; the output projection then does not share them."""
    filters: list[Annotated[int, Field(ge=1, le=16384)]] = Field([32, 32, 64, 128, 128], min_length=1, max_length=50)
    """The number of convolutional filters over one character, over two characters, and so on."""
    backwards: Literal[False] = False
    """The model reads in both directions."""

    directions: ClassVar[int] = 2
    """The number of directions in which the model reads a text at the same time."""
    builds: ClassVar[str] = "translucid.language.lstm:BidirectionalLSTM"

    def build(self, source_vocabulary: int, target_vocabulary: int, pieces: Sequence[str] = ()) -> Any:
        """Return a model with fresh weights."""
        return resolved(self.builds)(target_vocabulary, self, pieces)

    def contextual(self, embedding: Embedding, *, tuned: bool) -> nn.Module:
        """Return a source embedding to which ELMo's vectors are added."""
        combined: nn.Module = resolved(CONTEXTUAL)(embedding, embedding.tokens.embedding_dim, self, tuned=tuned)
        return combined

    def as_elmo(self, run: Path) -> dict[str, Any]:
        """Return the settings, unless the model reads characters."""
        if self.characters:
            what = "reads its pieces by their characters, which a translator does not"
            raise UserError(what, file=run, fix="Train one with model.characters=false.")
        return self.model_dump()

    @property
    def summary(self) -> str:
        """The shape of the model in a few words."""
        return f"LSTM {self.layers} layers, width {self.width}, hidden {self.hidden}"


class ClassifierOptions(ModelShape):
    """The shape of the classifier of Howard and Ruder 2018 (ULMFiT, arXiv 1801.06146)."""

    kind: Literal["classifier"] = "classifier"
    """The family of model."""
    language: Annotated[
        LSTMLanguageOptions | BiLSTMLanguageOptions, OfKind("language-lstm", among=("language-lstm", "language-bilstm"))
    ] = Field(default_factory=LSTMLanguageOptions)
    """The language model that reads the text; `train --init-from` takes its shape and weights from a run. If it is
    bidirectional, the classifier reads ELMo's vectors."""
    labels: list[str] = Field(default_factory=list)
    """The labels in order; by default, those of the training data."""
    hidden: int = Field(50, ge=1, le=16384)
    """The width of the layer between the language model and the labels."""
    dropout: float = Field(0.2, ge=0, lt=1)
    """Dropout on the output of the language model."""
    hidden_dropout: float = Field(0.1, ge=0, lt=1)
    """Dropout on the hidden layer."""

    reads: ClassVar[str] = "texts with labels"
    """The kind of source."""
    share_embeddings: ClassVar[bool] = False
    """There is one vocabulary only."""
    builds: ClassVar[str] = "translucid.language.classifier:Classifier"

    def build(self, source_vocabulary: int, target_vocabulary: int, pieces: Sequence[str] = ()) -> Any:
        """Return a model with fresh weights."""
        return resolved(self.builds)(target_vocabulary, self, pieces)

    @classmethod
    def begun_from(cls, base: ModelShape, run: Path) -> dict[str, Any]:
        """Return the settings of a classifier over a language model."""
        if not isinstance(base, LSTMLanguageOptions | BiLSTMLanguageOptions):
            what = f"holds a model of the kind {base.kind}, which can't initialize a classifier"
            raise UserError(what, file=run, fix="Give the run of a language model, such as lm-lstm or lm-bilstm.")
        return {"kind": "classifier", "language": base.model_dump()}

    def completed(self, former: Self) -> Self:
        """Return the options with the labels of the former training, if they have none."""
        return self if self.labels else self.model_copy(update={"labels": former.labels})

    @property
    def summary(self) -> str:
        """The shape of the model in a few words."""
        return f"two blocks over: {self.language.summary}"


def problems(configuration: Configuration) -> Iterator[str]:
    """Yield what is wrong with the settings of a language model or a classifier."""
    model, window = configuration.model, configuration.training.window
    if configuration.training.sharded:
        yield "training.sharded is not for language models and classifiers"
    if configuration.pair_settings:
        yield f"{configuration.pair_settings[0]} is for sentence pairs, not for running text"
    if isinstance(model, TransformerLanguageOptions) and model.context > window:
        yield (
            f"model.context={model.context} is more than training.window={window}, over which it learns "
            "to look back: raise the one or lower the other"
        )
    if not configuration.data.tokenizer.joint:
        yield "data.tokenizer.joint=false is for two languages, and running text has one vocabulary"
