"""Which models ONNX Runtime can run for us, without loading it."""

from __future__ import annotations

from importlib.util import find_spec

from translucid.ground.errors import UserError, missing_package
from translucid.models.model_options import RecurrentOptions, TransformerOptions

PACKAGES = "onnx", "onnxruntime"
"""The packages that write and run graphs."""


def is_supported(options: object) -> bool:
    """Whether the graphs have all equations of such models."""
    if isinstance(options, TransformerOptions):
        return options.elmo is None
    if isinstance(options, RecurrentOptions):
        return options.elmo is None and options.window is None and options.code is None
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
        raise UserError("there is no ONNX graph for such a model", fix="Use --engine torch.")
    for name in PACKAGES:
        if find_spec(name) is None:
            raise missing_package("--engine onnx", name, "onnx")
