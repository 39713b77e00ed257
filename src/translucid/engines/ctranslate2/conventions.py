"""Conventions shared by the conversion, the import and the use of a model."""

from collections.abc import Iterator, Mapping
from typing import Any, Literal, TypeAlias

from translucid.models.model_options import Choices, TransformerOptions, unknown_option

Quantization: TypeAlias = Literal["float32", "int8"]

POSITIONS = 1024
"""The largest number of rows of the required table of sinusoidal positions; CTranslate2 rejects longer sentences."""
ACTIVATIONS = {"relu": 0, "swish": 2, "gelu": 3}
"""CTranslate2's numbers of our nonlinearities."""
TRANSFORMERS: Choices = {
    "decoder": ("self-attention",),
    "norm": ("pre", "post", "post-final"),
    "nonlinearity": tuple(ACTIVATIONS),
    "positions": ("sinusoidal", "sinusoidal-halves", "sinusoidal-tensor2tensor", "learned", "none"),
    "first_position": range(1 << 20),
    "scale_embeddings": (False, True),
    "zero_start": (False, True),
    "source_end": (False, True),
}
"""The Transformers that CTranslate2, and `NumPyTransformer`, compute."""
SOURCE_END = "source_end"
"""A key of our own in config.json, which CTranslate2 ignores: false for models that read no end token."""
_LINEAR = {
    "self_attention": (("self_attention.query", "self_attention.key_value"), ("self_attention.output",)),
    "attention": (("cross_attention.query",), ("cross_attention.key_value",), ("cross_attention.output",)),
    "ffn": (("feed_forward.inner",), ("feed_forward.outer",)),
}
"""Our names of the linear layers of each sublayer, in its order; it has one matrix for queries, keys and values."""


def is_supported(options: object) -> bool:
    """Whether CTranslate2 runs such models: it has Transformers only, no bidirectional LSTM for ELMo, and no SSRU."""
    return isinstance(options, TransformerOptions) and unknown_option(options, TRANSFORMERS) is None


def position_rows(options: Any) -> int:
    """Return the rows of a Transformer's table of positions, the largest number of tokens of a sentence.

    Other models have no table; their conversion is refused later.
    """
    return int(options.longest or min(getattr(options, "max_length", POSITIONS), POSITIONS))


def reads_source_end(options: Any) -> bool:
    """Return whether a model reads the end token of the source; the conversion of other models is refused later."""
    return getattr(options, "source_end", True)


def layer_names(layers: Mapping[str, int], *, final_norm: bool) -> Iterator[tuple[str, list[str]]]:
    """Yield CTranslate2's name of each linear layer and norm of a Transformer, with ours, whose rows are joined in it.

    Args:
        layers: the number of blocks of the `encoder` and of the `decoder`.
        final_norm: whether the last block of each side is followed by a norm.
    """
    yield "decoder/projection", ["output"]
    for side, count in layers.items():
        if final_norm:
            yield f"{side}/layer_norm", [f"{side}_norm"]
        for layer in range(count):
            yield from block_names(side, layer)


def block_names(side: str, layer: int) -> Iterator[tuple[str, list[str]]]:
    """Yield the same names for one block of the encoder or decoder."""
    sublayers = [name for name in _LINEAR if side == "decoder" or name != "attention"]
    for index, sublayer in enumerate(sublayers):
        for number, names in enumerate(_LINEAR[sublayer]):
            yield f"{side}/layer_{layer}/{sublayer}/linear_{number}", [f"{side}.{layer}.{name}" for name in names]
        yield f"{side}/layer_{layer}/{sublayer}/layer_norm", [f"{side}.{layer}.residuals.{index}.norm"]
