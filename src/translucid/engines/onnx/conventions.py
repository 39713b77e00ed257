"""Which models ONNX Runtime can run for us, without loading it."""

from __future__ import annotations

from importlib.util import find_spec

from translucid.ground.errors import UserError, missing_package
from translucid.models.model_options import Choices, RecurrentOptions, TransformerOptions, unknown_option

_SWITCH = False, True
TRANSFORMERS: Choices = {
    "decoder": ("self-attention", "ssru"),
    "norm": ("pre", "post"),
    "nonlinearity": ("relu", "swish", "gelu"),
    "positions": ("sinusoidal", "sinusoidal-halves", "sinusoidal-tensor2tensor", "learned", "none"),
    "first_position": range(1 << 20),
    "scale_embeddings": _SWITCH,
    "zero_start": _SWITCH,
}
"""The Transformers whose equations `transformer.py` writes."""
RECURRENT: Choices = {
    "cell": ("lstm", "gru"),
    "bidirectional": _SWITCH,
    "attention": ("none", "bahdanau", "luong-dot", "luong-scaled-dot", "luong-general", "luong-concat"),
    "input_feeding": _SWITCH,
}
"""The recurrent models whose equations `recurrent.py` writes."""
PACKAGES = "onnx", "onnxruntime"
"""The packages that write and run graphs."""


def is_supported(options: object) -> bool:
    """Whether the graphs have all equations of such models."""
    if isinstance(options, TransformerOptions):
        return unknown_option(options, TRANSFORMERS) is None
    if isinstance(options, RecurrentOptions):
        return unknown_option(options, RECURRENT) is None
    return False


def is_installed() -> bool:
    """Whether the packages are installed that write and run graphs."""
    return all(find_spec(name) is not None for name in PACKAGES)


def refuse_unsupported(options: object) -> None:
    """Check that ONNX Runtime can run such models.

    Raises:
        UserError: there are no graphs for them, or a package is missing.
    """
    if not is_supported(options):
        raise UserError("there is no ONNX graph for such a model", fix='Use `engine="torch"`.')
    for name in PACKAGES:
        if find_spec(name) is None:
            raise missing_package('`engine="onnx"`', name, "onnx")
