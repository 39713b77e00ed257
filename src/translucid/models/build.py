"""From options to a model."""

from __future__ import annotations

from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from translucid.ground.errors import UserError
from translucid.kernels.machine import physical_memory
from translucid.models.attention_only import AttentionOnly
from translucid.models.model_options import AttentionOnlyOptions, ModelOptions, RecurrentOptions
from translucid.models.protocol import SequenceModel
from translucid.models.recurrent import RecurrentModel
from translucid.models.transformer import Transformer


def build_model(options: ModelOptions, source_vocabulary: int, target_vocabulary: int) -> SequenceModel:
    """Return a model of this kind and shape, with fresh weights from PyTorch's random state.

    Raises:
        ValueError: embeddings are to be shared between two different vocabularies.
        UserError: this machine has not the memory for its weights.
    """
    parameters = sum(shape.numel() for shape in weight_shapes(options, source_vocabulary, target_vocabulary).values())
    memory = physical_memory()
    if memory and 4 * parameters > memory:
        needed, there = (f"{size / 2**30:,.0f} GiB" for size in (4 * parameters, memory))
        raise UserError(
            f"the model has {parameters / 1e6:,.0f} million weights, which take {needed}; this machine has {there}",
            fix="Set smaller model.width, layers or data.tokenizer.vocabulary.",
        )
    return _built(options, source_vocabulary, target_vocabulary)


def weight_shapes(options: ModelOptions, source_vocabulary: int, target_vocabulary: int) -> dict[str, torch.Size]:
    """Return the shape of each of a model's weights by name, a shared one under its first, in no memory at all.

    Raises:
        ValueError: embeddings are to be shared between two different vocabularies.
    """
    with _ShapesOnly():
        model = _built(options, source_vocabulary, target_vocabulary)
    return {name: weight.shape for name, weight in model.named_parameters()}


def _built(options: ModelOptions, source_vocabulary: int, target_vocabulary: int) -> SequenceModel:
    if isinstance(options, RecurrentOptions):
        return RecurrentModel(source_vocabulary, target_vocabulary, options)
    if isinstance(options, AttentionOnlyOptions):
        return AttentionOnly(source_vocabulary, target_vocabulary, options)
    return Transformer(source_vocabulary, target_vocabulary, options)


class _ShapesOnly(TorchFunctionMode):
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
