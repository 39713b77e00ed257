"""Export to ONNX: two graphs, the tokenizer, and `model.json`, which describes how to use them.

Greedy search with onnxruntime compares an exported model with the run that it was made from.
"""

from __future__ import annotations

import json
import logging
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bitext.pair import Pair
from translucid.data.readers.corpus import sources_of
from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.decoding.decoding_options import DecodingOptions, length_limit
from translucid.engines.ctranslate2.conventions import Quantization
from translucid.engines.onnx.conventions import AFTER, DECODER, ENCODER, IDS, LOGITS, TOKENS, refuse_without_packages
from translucid.ground.atomic import export_folder, replace, write_atomically
from translucid.ground.errors import UserError

if TYPE_CHECKING:
    from translucid.engines.onnx.convert import StateLayout
    from translucid.models.protocol import SequenceModel

FACTS = "model.json"
MARKER = FACTS, "a model exported to ONNX"
"""A file by which an exported folder is recognized, and the name of its kind."""
PURPOSE = "an export to ONNX"
"""What needs the packages, for error messages."""
QUANTIZED = "MatMul", "Gemm", "Gather"
"""The operators whose weights become int8; those of recurrent layers stay float32."""
LARGEST = 2_000_000_000
"""The largest size of a graph with its weights, in bytes: an ONNX file has at most 2 GiB."""


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
        quantization: the type of the weights; activations are quantized when the model runs.
        longest: the number of source tokens, end token included, that the model has learned to read at once.
        languages: the codes of source and target, where known.
        overwrite: whether to replace an existing export.
        check: called with the folder before it gets its name; if it raises an error, no folder is left.

    Raises:
        UserError: the model is of a kind that can't be exported or too large, a package is missing, or the folder
            exists already or can't be written.
    """
    refuse_without_packages(PURPOSE)
    with export_folder(out, overwrite, *MARKER) as folder:
        from translucid.engines.onnx.convert import TranslatorGraphs, positions_of

        graphs = TranslatorGraphs(model)
        size = 4 * sum(weights.numel() for weights in model.parameters())
        if size > LARGEST:
            fix = "Use `export_ctranslate2`."
            raise UserError(
                f"the model's weights take {size / 1e9:.1f} GB, a file of ONNX holds 2 GB", file=out, fix=fix
            )
        graphs.save_encoder(folder / ENCODER)
        graphs.save_decoder(folder / DECODER)
        if quantization == "int8":
            for name in (ENCODER, DECODER):
                _quantize(folder / name)
        tokenizer.save(folder)
        facts = _facts(model, tokenizer, graphs.layout, quantization, longest, positions_of(model), languages)
        write_atomically(folder / FACTS, (json.dumps(facts, indent=1) + "\n").encode())
        check(folder)


def _quantize(file: Path) -> None:
    """Replace the weights of a graph by int8 with a scale for each column.

    Half of their range is used: processors without VNNI add up products of 8 bits in 16 bits, which the whole range
    would overflow.
    """
    from onnxruntime.quantization import QuantType, quantize_dynamic

    small = file.with_suffix(".int8")
    with quiet():
        quantize_dynamic(file, small, list(QUANTIZED), per_channel=True, reduce_range=True, weight_type=QuantType.QInt8)
    replace(small, file)


def _facts(
    model: SequenceModel,
    tokenizer: Tokenizer,
    layout: StateLayout[Any],
    quantization: Quantization,
    longest: int,
    positions: int | None,
    languages: tuple[str | None, str | None],
) -> dict[str, Any]:
    """Return the content of `model.json`."""
    source, target = ("tokenizer.model",) * 2 if tokenizer.joint else ("source.model", "target.model")
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


@contextmanager
def quiet() -> Iterator[None]:
    """Suppress the advice and the deprecations that onnxruntime prints when it quantizes."""
    level = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(level)


SENTENCES = 32
"""The number of sentences that are translated together."""


class Exported:
    """A model that `export_onnx` has written."""

    def __init__(self, folder: Path, threads: int = 0) -> None:
        """Open a folder; `threads`: the number of threads of an operator, 0 for one on each core."""
        import onnxruntime

        self.facts: dict[str, Any] = json.loads((folder / FACTS).read_text())
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads

        def session(side: str) -> Any:
            return onnxruntime.InferenceSession(folder / self.facts[side]["file"], options, ["CPUExecutionProvider"])

        self.encoder, self.decoder = session("encoder"), session("decoder")

    def start(self, ids: NDArray[np.int64]) -> dict[str, NDArray[Any]]:
        """Encode source ids [B, S], padded on the right, and return the state before the first token."""
        return dict(zip(self.facts["encoder"]["outputs"], self.encoder.run(None, {"ids": ids}), strict=True))

    def step(
        self, tokens: NDArray[np.int64], state: dict[str, NDArray[Any]]
    ) -> tuple[NDArray[np.float32], dict[str, NDArray[Any]]]:
        """Return the logits [N, V] after one more token for each row [N], and the next state."""
        logits, *next_tensors = self.decoder.run(None, {"tokens": tokens, **state})
        return logits, {**state, **dict(zip(self.facts["carried"], next_tensors, strict=True))}

    def greedy(self, sentences: Sequence[list[int]], options: DecodingOptions) -> list[list[int]]:
        """Return the outputs of greedy search, without end tokens.

        Args:
            sentences: source ids, each with the end token at its end.
            options: the limits of length; other options have no effect, and no rule prevents loops.
        """
        special, target = self.facts["special"], self.facts["target"]
        opening, longest = target["opening"], target["longest"]
        limits = np.array([length_limit(len(ids) - 1, options, longest) for ids in sentences])
        limits = limits.clip(len(opening) + 1)
        source = np.full((len(sentences), max(map(len, sentences))), special["pad"])
        for row, ids in zip(source, sentences, strict=True):
            row[: len(ids)] = ids
        state, last_tokens = self.start(source), np.full(len(source), special["start"])
        outputs: list[list[int]] = [[] for _ in sentences]
        for length in range(limits.max()):
            logits, state = self.step(last_tokens, state)
            logits[:, self.facts["never"]] = -np.inf
            if length < len(opening) + options.min_length:
                logits[:, special["end"]] = -np.inf
            if length < len(opening):  # every output begins with these tokens
                last_tokens = np.full(len(source), opening[length])
            else:
                last_tokens = logits.argmax(-1)
            for output, token, limit in zip(outputs, last_tokens.tolist(), limits, strict=True):
                if len(output) == length < limit and token != special["end"]:
                    output.append(token)
            if all(len(output) <= length for output in outputs):
                break
        return outputs


def exported_texts(folder: Path, tokenizer: Tokenizer, pairs: Sequence[Pair], end: int) -> list[str]:
    """Return greedy translations of the sources of pairs by an exported model; `end`: the id of the end token."""
    exported, texts = Exported(folder), list[str]()
    encoded = tokenizer.encode_source(sources_of(pairs))
    sources = [[*ids, end] for ids in encoded]
    for start in range(0, len(sources), SENTENCES):
        hypotheses = exported.greedy(sources[start : start + SENTENCES], DecodingOptions(beam=1, max_loops=0))
        texts += map(tokenizer.decode, hypotheses)
    return texts
