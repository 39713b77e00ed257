"""Build a model from its options, if it fits in memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch.overrides import TorchFunctionMode

from translucid.captions.options import CaptionerOptions, CaptioningShape, CaptioningTransformerOptions
from translucid.ground.errors import UserError
from translucid.kernels.machine import physical_memory
from translucid.language.bilstm import BidirectionalLSTM
from translucid.language.classifier import Classifier
from translucid.language.lstm import LSTMLanguageModel
from translucid.language.options import (
    BiLSTMLanguageOptions,
    ClassifierOptions,
    LSTMLanguageOptions,
    TransformerLanguageOptions,
)
from translucid.models.attention_only import AttentionOnly
from translucid.models.model_options import AttentionOnlyOptions, CustomOptions, ModelOptions, RecurrentOptions
from translucid.models.protocol import Model
from translucid.models.recurrent import RecurrentModel
from translucid.models.transformer import Transformer, TransformerLanguageModel


def build_model(
    options: ModelOptions, source_vocabulary: int, target_vocabulary: int, pieces: Sequence[str] = ()
) -> Model:
    """Return a model of this kind and shape, with fresh weights from PyTorch's random state.

    Only a pre-trained network for images has other weights.

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
    model = _built(options, source_vocabulary, target_vocabulary, pieces)
    if isinstance(options, CaptioningShape):
        from translucid.captions.image_encoder import ImageEncoder

        assert isinstance(model.source_embedding, ImageEncoder)
        model.source_embedding.network.load_pretrained()
    return model


def meta_model(
    options: ModelOptions, source_vocabulary: int, target_vocabulary: int, pieces: Sequence[str] = ()
) -> Model:
    """Return a model whose weights have shapes but neither memory nor values; no random number is drawn.

    Buffers, such as tables of positions, are complete.

    Raises:
        ValueError: the options share embeddings between two different vocabularies.
    """
    with _MetaDevice():
        return _built(options, source_vocabulary, target_vocabulary, pieces)


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


def _built(options: ModelOptions, source_vocabulary: int, target_vocabulary: int, pieces: Sequence[str]) -> Model:
    """Call the class that the options belong to."""
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
        return _built_custom(options, source_vocabulary, target_vocabulary)
    if isinstance(options, CaptionerOptions | CaptioningTransformerOptions):
        # Imported here because only captioners need the modules for images.
        from translucid.captions.model import CaptioningLSTM, CaptioningTransformer

        if isinstance(options, CaptionerOptions):
            return CaptioningLSTM(target_vocabulary, options)
        return CaptioningTransformer(target_vocabulary, options)
    return Transformer(source_vocabulary, target_vocabulary, options)


def _built_custom(options: CustomOptions, source_vocabulary: int, target_vocabulary: int) -> Model:
    """Return a user's model with fresh weights.

    Raises:
        UserError: its class can't be loaded, its options are wrong, or it can't be built.
    """
    from translucid.models.user_code import file_of, load_model_class, options_of, place_in_user_code

    model_class: Any = load_model_class(options.implementation)
    own_options = options_of(model_class, options.implementation, options.options)
    try:
        model: Model = model_class(source_vocabulary, target_vocabulary, own_options)
    except (TypeError, NameError, AttributeError) as error:
        location = place_in_user_code(error)
        what = f"{model_class.__name__} can't be built ({location}{type(error).__name__}: {error})"
        fix = "It takes the sizes of both vocabularies and its options, and has the methods of CustomModel."
        raise UserError(what, file=file_of(options.implementation), fix=fix) from error
    model.options = options
    return model


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
