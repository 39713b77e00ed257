"""Which models ONNX Runtime can run for us, without loading it."""

from __future__ import annotations

from importlib.util import find_spec

from translucid.ground.errors import UserError, missing_package
from translucid.models.model_options import AttentionOnlyOptions, RecurrentOptions, TransformerOptions

ENCODER, DECODER, STEP = "encoder.onnx", "decoder.onnx", "step.onnx"
"""The files of the graphs: the encoder, and a step of the decoder for other programs or for our search."""
IDS, TOKENS, LOGITS, AFTER = "ids", "tokens", "logits", "after."
"""Names of inputs and outputs; the next value of `past` is `after.past`."""
SENTENCES = "sentences"
"""The name of the first axis of those inputs of a step that the rows of a sentence share."""
PACKAGES = "onnx", "onnxruntime"
"""The packages that write and run graphs."""


def is_supported(options: object) -> bool:
    """Whether graphs can have the equations of such models: those of built-in translators, without ELMo."""
    if isinstance(options, TransformerOptions | RecurrentOptions):
        return not options.elmo and not options.code
    return isinstance(options, AttentionOnlyOptions)


def is_installed() -> bool:
    """Whether the packages are installed that write and run graphs."""
    return all(find_spec(name) is not None for name in PACKAGES)


def refuse_without_packages(what: str) -> None:
    """Check, before any work, that the packages are installed; `what` needs them.

    Raises:
        UserError: a package is missing.
    """
    for name in PACKAGES:
        if find_spec(name) is None:
            raise missing_package(what, name, "onnx")


def refuse_unsupported(options: object) -> None:
    """Check that ONNX Runtime can run such models.

    Raises:
        UserError: there are no graphs for them, or a package is missing.
    """
    if not is_supported(options):
        raise UserError("there is no ONNX graph for such a model", fix='Use `engine="torch"`.')
    refuse_without_packages('`engine="onnx"`')
