"""Build a model from its options, if it fits in memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch.overrides import TorchFunctionMode

from translucid.ground.errors import UserError
from translucid.kernels.machine import physical_memory
from translucid.models.model_shape import ModelShape
from translucid.models.protocol import Model


def build_model(
    options: ModelShape, source_vocabulary: int, target_vocabulary: int, pieces: Sequence[str] = ()
) -> Model:
    """Return a model of this kind and shape, with fresh weights from PyTorch's random state.

    Only parts that are pre-trained networks have other weights.

    Args:
        options: the kind and shape of the model.
        source_vocabulary: the size of the source vocabulary.
        target_vocabulary: the size of the target vocabulary.
        pieces: the target vocabulary as text, for models that read characters.

    Raises:
        ValueError: the options share embeddings between two different vocabularies.
        UserError: the weights do not fit into the memory of this machine.
    """
    # The check needs no memory, unlike the model.
    refuse_too_large(meta_model(options, source_vocabulary, target_vocabulary, pieces))
    model: Model = options.build(source_vocabulary, target_vocabulary, pieces)
    options.load_pretrained(model)
    return model


def meta_model(
    options: ModelShape, source_vocabulary: int, target_vocabulary: int, pieces: Sequence[str] = ()
) -> Model:
    """Return a model whose weights have shapes but neither memory nor values; no random number is drawn.

    Buffers, such as tables of positions, are complete.

    Raises:
        ValueError: the options share embeddings between two different vocabularies.
    """
    with _MetaDevice():
        model: Model = options.build(source_vocabulary, target_vocabulary, pieces)
    return model


def refuse_too_large(model: Model) -> None:
    """Compare the weights of a model, which may be on the meta device, with the memory of this machine.

    Raises:
        UserError: they don't fit.
    """
    weights = sum(weight.numel() for weight in model.parameters())
    needed, memory = 4 * weights, physical_memory()  # 4 bytes each; a memory of 0 is unknown
    if memory and needed > memory:
        raise UserError(
            f"the model has {weights / 1e6:,.0f} million weights, which take {needed / 2**30:,.0f} GiB; this machine "
            f"has {memory / 2**30:,.0f} GiB",
            fix="Set smaller model.width, layers or data.tokenizer.vocabulary.",
        )


class _MetaDevice(TorchFunctionMode):
    """Creates tensors without memory, and skips their initialization.

    `with torch.device("meta")` does so too, but imports PyTorch's compiler, which takes seconds.
    """

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = function.__name__
        if name == "empty":  # all modules create their weights with torch.empty
            return function(*args, **{**kwargs, "device": "meta"})
        if name.endswith("_") and not name.startswith("_"):  # in-place functions such as normal_ and zeros_
            if args:
                return args[0]
            return kwargs.get("tensor")
        return function(*args, **kwargs)
