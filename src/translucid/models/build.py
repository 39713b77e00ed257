"""From options to a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from translucid.ground.errors import UserError
from translucid.kernels.machine import physical_memory
from translucid.models.attention_only import AttentionOnly
from translucid.models.captioner_options import CaptionerOptions, CaptioningShape, CaptioningTransformerOptions
from translucid.models.classifier import Classifier
from translucid.models.classifier_options import ClassifierOptions
from translucid.models.language import BidirectionalLSTM, LSTMLanguageModel, TransformerLanguageModel
from translucid.models.language_options import BiLSTMLanguageOptions, LSTMLanguageOptions, TransformerLanguageOptions
from translucid.models.model_options import AttentionOnlyOptions, CustomOptions, ModelOptions, RecurrentOptions
from translucid.models.networks import load_learned
from translucid.models.protocol import Model
from translucid.models.recurrent import RecurrentModel
from translucid.models.transformer import Transformer


def build_model(
    options: ModelOptions, source_vocabulary: int, target_vocabulary: int, pieces: Sequence[str] = ()
) -> Model:
    """Return a model of this kind and shape, with fresh weights from PyTorch's random state.

    Only a network for images that has learned before has its own weights. `pieces`: how the target vocabulary is
    written, for models that read characters.

    Raises:
        ValueError: embeddings are to be shared between two different vocabularies.
        UserError: this machine has not the memory for its weights.
    """
    refuse_too_large(hollow_model(options, source_vocabulary, target_vocabulary, pieces))
    model = _built(options, source_vocabulary, target_vocabulary, pieces)
    if isinstance(options, CaptioningShape):
        from translucid.models.captioner.image_encoder import ImageEncoder

        assert isinstance(model.source_embedding, ImageEncoder)
        load_learned(model.source_embedding.network)
    return model


def hollow_model(
    options: ModelOptions, source_vocabulary: int, target_vocabulary: int, pieces: Sequence[str] = ()
) -> Model:
    """Return a model whose weights have shapes but neither memory nor values; nothing is drawn at random.

    All else of it is there, such as tables of positions.

    Raises:
        ValueError: embeddings are to be shared between two different vocabularies.
    """
    with _Hollow():
        return _built(options, source_vocabulary, target_vocabulary, pieces)


def weight_shapes(model: Model) -> dict[str, torch.Size]:
    """Return the shape of each of a model's weights by name, a shared one under its first."""
    return {name: weight.shape for name, weight in model.named_parameters()}


def refuse_too_large(model: Model) -> None:
    """Compare the weights of a model, which may be hollow, to the memory of this machine.

    Raises:
        UserError: they don't fit.
    """
    weights = sum(shape.numel() for shape in weight_shapes(model).values())
    memory = physical_memory()
    if memory and 4 * weights > memory:
        needed, there = (f"{size / 2**30:,.0f} GiB" for size in (4 * weights, memory))
        raise UserError(
            f"the model has {weights / 1e6:,.0f} million weights, which take {needed}; this machine has {there}",
            fix="Set smaller model.width, layers or data.tokenizer.vocabulary.",
        )


def _built(options: ModelOptions, source_vocabulary: int, target_vocabulary: int, pieces: Sequence[str]) -> Model:
    if isinstance(options, RecurrentOptions):
        return RecurrentModel(source_vocabulary, target_vocabulary, options)
    if isinstance(options, LSTMLanguageOptions):
        return LSTMLanguageModel(target_vocabulary, options)
    if isinstance(options, ClassifierOptions):
        return Classifier(target_vocabulary, options, pieces)
    if isinstance(options, TransformerLanguageOptions):
        return TransformerLanguageModel(target_vocabulary, options)
    if isinstance(options, BiLSTMLanguageOptions):
        return BidirectionalLSTM(target_vocabulary, options, pieces)
    if isinstance(options, AttentionOnlyOptions):
        return AttentionOnly(source_vocabulary, target_vocabulary, options)
    if isinstance(options, CustomOptions):
        from translucid.models.user_code import build_custom

        return build_custom(options, source_vocabulary, target_vocabulary)
    if isinstance(options, CaptionerOptions | CaptioningTransformerOptions):
        from translucid.models.captioner import (
            CaptioningLSTM,
            CaptioningTransformer,
        )  # only those who want images load it

        if isinstance(options, CaptionerOptions):
            return CaptioningLSTM(target_vocabulary, options)
        return CaptioningTransformer(target_vocabulary, options)
    return Transformer(source_vocabulary, target_vocabulary, options)


class _Hollow(TorchFunctionMode):
    """Gives new weights shapes but no memory, and does not fill them.

    `with torch.device("meta")` does so too, but loads PyTorch's compiler for it, which takes seconds.
    """

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = function.__name__
        if name == "empty":
            return function(*args, **{**kwargs, "device": "meta"})
        if name.endswith("_") and not name.startswith("_"):  # normal_, zeros_, kaiming_uniform_ and their like
            return kwargs.get("tensor", args[0] if args else None)
        return function(*args, **kwargs)
