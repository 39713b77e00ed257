"""From options to a model."""

from __future__ import annotations

from typing import TypeAlias

from translucid.models.attention_only import AttentionOnly, AttentionOnlyOptions
from translucid.models.protocol import SequenceModel
from translucid.models.recurrent import RecurrentModel, RecurrentOptions
from translucid.models.transformer import Transformer, TransformerOptions

ModelOptions: TypeAlias = TransformerOptions | RecurrentOptions | AttentionOnlyOptions


def build_model(options: ModelOptions, source_vocabulary: int, target_vocabulary: int) -> SequenceModel:
    """Return a model of this kind and shape, with fresh weights from PyTorch's random state.

    Raises:
        ValueError: embeddings are to be shared between two different vocabularies.
    """
    if isinstance(options, RecurrentOptions):
        return RecurrentModel(source_vocabulary, target_vocabulary, options)
    if isinstance(options, AttentionOnlyOptions):
        return AttentionOnly(source_vocabulary, target_vocabulary, options)
    return Transformer(source_vocabulary, target_vocabulary, options)
