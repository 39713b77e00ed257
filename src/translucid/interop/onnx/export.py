"""Export to ONNX: two graphs, the tokenizer, and `model.json`, which describes how to use them.

PyTorch exports copies of models with the same outputs, but without branches that depend on a length. Greedy search with
onnxruntime compares an exported model with the run that it was made from.
"""

from __future__ import annotations

import json
import logging
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from bitext.pair import Pair
from translucid.data.readers.corpus import sources_of
from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.decoding.decoding_options import DecodingOptions, length_limit
from translucid.engines.ctranslate2.conventions import POSITIONS, Quantization
from translucid.ground.atomic import atomic_folder, refuse_overwrite, replace, write_atomically
from translucid.ground.errors import UserError, missing_package
from translucid.interop.onnx.states import StateLayout, state_layout
from translucid.kernels.dispatch import reference_mode
from translucid.layers.embedding import Embedding
from translucid.layers.positions import LearnedPositions, SinusoidalPositions
from translucid.layers.recurrent import Cells, Recurrence
from translucid.models.protocol import SequenceModel
from translucid.models.recurrent import RecurrentModel

FACTS = "model.json"
MARKER = FACTS, "a model exported to ONNX"
"""A file by which an exported folder is recognized, and the name of its kind."""
PACKAGES = "onnx", "onnxscript", "onnxruntime"
QUANTIZED = "MatMul", "Gemm", "Gather"
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
        quantization: the type of the weights; activations are quantized when the model runs.
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
        fix = "Use `export_ctranslate2`."
        raise UserError(f"the model's weights take {size / 1e9:.1f} GB, a file of ONNX holds 2 GB", file=out, fix=fix)
    with atomic_folder(out) as folder:
        write_graphs(model, layout, folder)
        if quantization == "int8":
            for name in (ENCODER, DECODER):
                _quantize(folder / name)
        tokenizer.save(folder)
        facts = _facts(model, tokenizer, layout, quantization, longest, languages)
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


OPSET = 18
"""The version of the operators, which onnxruntime supports since 1.14."""
ENCODER, DECODER = "encoder.onnx", "decoder.onnx"
IDS, TOKENS, LOGITS, AFTER = "ids", "tokens", "logits", "after."
"""Names of inputs and outputs; the decoder's next value of `past` is `after.past`."""


class _Encoder(nn.Module):
    """A graph from sources to the state before the first token."""

    def __init__(self, model: SequenceModel, layout: StateLayout[Any]) -> None:
        super().__init__()
        self.model, self.layout = model, layout

    def forward(self, ids: Tensor) -> tuple[Tensor, ...]:
        return tuple(self.layout.tensors(self.model.start(self.model.encode(ids))))


class _Decoder(nn.Module):
    """A graph from one token for each row, and a state, to the logits of the next token and the changed tensors."""

    def __init__(self, model: SequenceModel, layout: StateLayout[Any]) -> None:
        super().__init__()
        self.model, self.layout = model, layout

    def forward(self, tokens: Tensor, state: Sequence[Tensor]) -> tuple[Tensor, ...]:
        logits, next_state = self.model.step(tokens, self.layout.state(state))
        return logits, *self.layout.tensors(next_state)[len(self.layout.fixed) :]


def write_graphs(model: SequenceModel, layout: StateLayout[Any], folder: Path) -> None:
    """Write `encoder.onnx` and `decoder.onnx`: rows and lengths vary, weights are float32.

    encoder: ids [B, S] int64, padded on the right -> the state
    decoder: tokens [N] int64, the state -> logits [N, V], the tensors of the state that each step replaces
    """
    traced = traceable(model)
    encoder, decoder = _Encoder(traced, layout).eval(), _Decoder(traced, layout).eval()
    # The lengths of the examples are different, and not 1: the exporter would merge equal ones, and fix 1.
    ids = torch.full((3, 7), model.eos)
    tokens = torch.full((3,), model.bos)
    with reference_mode(), torch.inference_mode(False), quiet():
        with torch.no_grad():
            state = traced.start(traced.encode(ids))
            for _ in range(5):
                _, state = traced.step(tokens, state)
        # With gradients: without them, PyTorch decomposes its recurrent layers step by step.
        _write(encoder, (ids,), ({0: "rows", 1: "source"},), [IDS], layout.names, folder / ENCODER)
        shapes = {0: "rows"}, [spec.dynamic_axes for spec in layout.specs]
        carried = [AFTER + spec.name for spec in layout.carried]
        inputs = tokens, [tensor.contiguous() for tensor in layout.tensors(state)]
        _write(decoder, inputs, shapes, [TOKENS, *layout.names], [LOGITS, *carried], folder / DECODER)


def _write(
    graph: nn.Module,
    examples: tuple[Any, ...],
    dynamic_shapes: tuple[Any, ...],
    inputs: list[str],
    outputs: list[str],
    file: Path,
) -> None:
    """Export one graph; `dynamic_shapes`: the axes of each input whose lengths vary."""
    program = torch.onnx.export(
        graph,
        examples,
        input_names=inputs,
        output_names=outputs,
        dynamic_shapes=dynamic_shapes,
        opset_version=OPSET,
        dynamo=True,
        verbose=False,
    )
    assert program is not None
    program.save(file, include_initializers=True, keep_initializers_as_inputs=False)


@contextmanager
def quiet() -> Iterator[None]:
    """Suppress the exporter's messages about optional packages and about its own deprecations."""
    level = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(level)


def traceable(model: SequenceModel) -> SequenceModel:
    """Return a copy of a model for `torch.onnx.export`, in evaluation mode, float32, on the CPU.

    A recurrent model returns zeros until it is exported.
    """
    copied = deepcopy(model).cpu().float().eval()
    for module in copied.modules():
        if isinstance(module, Embedding) and isinstance(module.positions, LearnedPositions | SinusoidalPositions):
            module.positions = _FixedPositions(module.positions, positions_of(model) or POSITIONS)
    if isinstance(copied, RecurrentModel):
        encoder: nn.Module = copied.encoder
        encoder.recurrence = _PaddedRecurrence(copied.encoder.recurrence)
    return copied


def positions_of(model: SequenceModel) -> int | None:
    """Return the number of positions of the exported model on either side; None if there is no limit."""
    has_table = any(isinstance(module, LearnedPositions | SinusoidalPositions) for module in model.modules())
    return (model.max_length or POSITIONS) if has_table else None


class _FixedPositions(nn.Module):
    """A table of positions of a fixed length; the tables in the model grow when necessary."""

    table: Tensor

    def __init__(self, positions: LearnedPositions | SinusoidalPositions, length: int) -> None:
        super().__init__()
        self.register_buffer("table", positions(length).detach().clone())

    def forward(self, length: int, first: int | Tensor = 0) -> Tensor:
        if isinstance(first, Tensor):  # of one token in each row: [N] -> [N, 1, D]
            return F.embedding(first[:, None], self.table)
        return F.embedding(torch.arange(first, first + length), self.table)


class _PaddedRecurrence(nn.Module):
    """`Recurrence.read` by ONNX's operators, which take the lengths of a padded batch."""

    def __init__(self, recurrence: Recurrence) -> None:
        super().__init__()
        rnn = recurrence.rnn
        self.layers = nn.ModuleList([_RecurrentLayer(rnn, layer) for layer in range(rnn.num_layers)])

    def read(self, x: Tensor, lengths: Tensor) -> tuple[Tensor, Cells]:
        """Return the states of all positions, and the last ones of each layer, as `Recurrence.read` does."""
        x, last_states = x.transpose(0, 1), []
        for layer in self.layers:
            x, layer_states = layer(x, lengths)
            last_states.append(layer_states)
        return x.transpose(0, 1), tuple(map(torch.stack, zip(*last_states, strict=True)))


class _RecurrentLayer(nn.Module):
    """One layer of a recurrence, with both of its directions, as an operator of ONNX."""

    inputs: Tensor
    hidden: Tensor
    biases: Tensor

    def __init__(self, rnn: nn.RNNBase, layer: int) -> None:
        super().__init__()
        self.lstm, self.width = isinstance(rnn, nn.LSTM), rnn.hidden_size
        directions = [f"_l{layer}"]
        if rnn.bidirectional:
            directions.append(f"_l{layer}_reverse")
        order = (0, 3, 1, 2) if self.lstm else (1, 0, 2)  # from i, f, g, o to i, o, f, c; from r, z, n to z, r, h

        def ordered(name: str) -> Tensor:
            sides = []
            for direction in directions:
                gates = getattr(rnn, name + direction).detach().chunk(len(order))
                sides.append(torch.cat([gates[gate] for gate in order]))
            return torch.stack(sides)

        self.register_buffer("inputs", ordered("weight_ih"))  # [directions, gates * H, inputs]
        self.register_buffer("hidden", ordered("weight_hh"))
        self.register_buffer("biases", torch.cat([ordered("bias_ih"), ordered("bias_hh")], 1))

    def forward(self, x: Tensor, lengths: Tensor) -> tuple[Tensor, list[Tensor]]:
        """x [S, B, inputs], lengths [B] -> outputs [S, B, D], zero after the end, and last states, [B, D] each."""
        directions = self.inputs.size(0)
        options: dict[str, Any] = {
            "hidden_size": self.width,
            "direction": "bidirectional" if directions == 2 else "forward",
        }
        if not self.lstm:
            options["linear_before_reset"] = 1  # as in PyTorch: n = tanh(W x + r * (U h + b))
        state_shape = directions, x.size(1), self.width
        shapes = [(x.size(0), *state_shape), state_shape, state_shape][: 3 if self.lstm else 2]
        outputs, *states = torch.onnx.ops.symbolic_multi_out(
            "LSTM" if self.lstm else "GRU",
            (x, self.inputs, self.hidden, self.biases, lengths.int()),
            options,
            dtypes=[x.dtype] * len(shapes),
            shapes=shapes,
        )
        # [S, directions, B, H] -> [S, B, D]
        return outputs.transpose(1, 2).flatten(2), [state.transpose(0, 1).flatten(1) for state in states]


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
