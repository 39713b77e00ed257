"""Export to ONNX: two graphs, the tokenizer, and `model.json`, which describes how to use them."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.engines.ctranslate2.conventions import Quantization
from translucid.ground.atomic import atomic_folder, refuse_overwrite, replace, write_atomically
from translucid.ground.errors import UserError, missing_package
from translucid.interop.onnx.graphs import AFTER, DECODER, ENCODER, IDS, LOGITS, TOKENS, quiet, write_graphs
from translucid.interop.onnx.states import StateLayout, state_layout
from translucid.interop.onnx.tracing import positions_of
from translucid.models.protocol import SequenceModel

FACTS = "model.json"
MARKER = FACTS, "a model exported to ONNX"
"""A file by which an exported folder is recognised, and the name of its kind."""
PACKAGES = "onnx", "onnxscript", "onnxruntime"
QUANTISED = "MatMul", "Gemm", "Gather"
"""The operators whose weights become int8; those of recurrent layers stay float32."""
LARGEST = 2_000_000_000
"""The largest size of a graph with its weights, in bytes: an ONNX file has at most 2 GiB."""


def refuse_without_packages() -> None:
    """Check, before any work, that the packages for an export are installed.

    Raises:
        UserError: a package is missing.
    """
    for name in PACKAGES:
        if find_spec(name) is None:
            raise missing_package("an export to ONNX", name, "onnx")


def export_onnx(
    model: SequenceModel,
    tokenizer: Tokenizer,
    out: Path,
    quantization: Quantization,
    *,
    longest: int,
    languages: tuple[str | None, str | None] = (None, None),
    overwrite: bool = False,
    check: Callable[[Path], None] = lambda folder: None,
) -> None:
    """Write a folder for onnxruntime atomically.

    Args:
        model: a translator.
        tokenizer: the model's tokenizer.
        out: the folder.
        quantization: the type of the weights; activations are quantised when the model runs.
        longest: the number of source tokens, end token included, that the model has learned to read at once.
        languages: the codes of source and target, where known.
        overwrite: whether to replace an existing export.
        check: called with the folder before it gets its name; if it raises an error, no folder is left.

    Raises:
        UserError: the model is of a kind that can't be exported or too large, a package is missing, or the folder
            exists already or can't be written.
    """
    refuse_without_packages()
    refuse_overwrite(out, overwrite, *MARKER)
    layout = state_layout(model)
    size = 4 * sum(weights.numel() for weights in model.parameters())
    if size > LARGEST:
        fix = "Use --to ctranslate2."
        raise UserError(f"the model's weights take {size / 1e9:.1f} GB, a file of ONNX holds 2 GB", file=out, fix=fix)
    with atomic_folder(out) as folder:
        write_graphs(model, layout, folder)
        if quantization == "int8":
            for name in (ENCODER, DECODER):
                _quantise(folder / name)
        tokenizer.save(folder)
        facts = _facts(model, tokenizer, layout, quantization, longest, languages)
        write_atomically(folder / FACTS, (json.dumps(facts, indent=1) + "\n").encode())
        check(folder)


def _quantise(file: Path) -> None:
    """Replace the weights of a graph by int8 with a scale for each column.

    Half of their range is used: processors without VNNI add up products of 8 bits in 16 bits, which the whole range
    would overflow.
    """
    from onnxruntime.quantization import QuantType, quantize_dynamic

    small = file.with_suffix(".int8")
    with quiet():
        quantize_dynamic(file, small, list(QUANTISED), per_channel=True, reduce_range=True, weight_type=QuantType.QInt8)
    replace(small, file)


def _facts(
    model: SequenceModel,
    tokenizer: Tokenizer,
    layout: StateLayout[Any],
    quantization: Quantization,
    longest: int,
    languages: tuple[str | None, str | None],
) -> dict[str, Any]:
    """Return the content of `model.json`."""
    source, target = ("tokenizer.model",) * 2 if tokenizer.joint else ("source.model", "target.model")
    positions = positions_of(model)
    carried = {spec.name: AFTER + spec.name for spec in layout.carried}
    return {
        "format": "translucid-onnx",
        "version": 1,
        "weights": quantization,
        "model": model.options.model_dump(mode="json", exclude={"dropout", "elmo", "elmo_tuned"}),
        "source": {
            "language": languages[0],
            "tokenizer": source,
            "vocabulary": tokenizer.source_size,
            "opening": list(tokenizer.source_opening),
            "longest": min(longest, positions or longest),
        },
        "target": {
            "language": languages[1],
            "tokenizer": target,
            "vocabulary": tokenizer.target_size,
            "opening": list(tokenizer.target_opening),
            "longest": positions,
        },
        "special": model.special._asdict(),
        "never": [model.special.pad, model.special.unknown, model.special.start],
        "encoder": {"file": ENCODER, "inputs": [IDS], "outputs": layout.names},
        "decoder": {"file": DECODER, "inputs": [TOKENS, *layout.names], "outputs": [LOGITS, *carried.values()]},
        "carried": carried,
    }
