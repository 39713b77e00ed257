"""The options of text classifiers."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import Field, field_validator

from translucid.models.language_options import BiLSTMLanguageOptions, LSTMLanguageOptions
from translucid.models.model_shape import ModelShape


class ClassifierOptions(ModelShape):
    """The shape of the classifier of Howard and Ruder 2018 (ULMFiT, arXiv 1801.06146)."""

    kind: Literal["classifier"] = "classifier"
    """The family of model."""
    language: LSTMLanguageOptions | BiLSTMLanguageOptions = Field(
        default_factory=LSTMLanguageOptions, discriminator="kind"
    )
    """The language model that reads the text; `train --init-from` takes its shape and weights from a run. If it is
    bidirectional, the classifier reads ELMo's vectors."""
    labels: list[str] = Field(default_factory=list)
    """The labels in order; by default, those of the training data."""
    hidden: int = Field(50, ge=1, le=16384)
    """The width of the layer between the language model and the labels."""
    dropout: float = Field(0.2, ge=0, lt=1)
    """Dropout on the output of the language model."""
    hidden_dropout: float = Field(0.1, ge=0, lt=1)
    """Dropout on the layer between."""

    reads: ClassVar[Literal["texts with labels"]] = "texts with labels"
    """The kind of source."""
    share_embeddings: ClassVar[bool] = False
    """There is one vocabulary only."""

    @field_validator("language", mode="before")
    @classmethod
    def _one_direction_by_default(cls, language: Any) -> Any:
        # The discriminator needs `kind`, which users need not write.
        return {"kind": "language-lstm", **language} if isinstance(language, dict) else language
