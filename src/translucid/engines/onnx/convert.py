"""Write a translator as two graphs for ONNX Runtime: the encoder, and one step of the decoder.

Named tensors, the only inputs and outputs of a graph, hold the states of a decoder. The first axis of every tensor is
that of the rows, so that a beam search can reorder all of them in the same way.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from copy import deepcopy
from itertools import chain
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from translucid.decoding.search import RestrictedVocabulary
from translucid.engines.ctranslate2.conventions import POSITIONS, Quantization
from translucid.engines.onnx.conventions import AFTER, ENCODER, IDS, LOGITS, SENTENCES, STEP, TOKENS
from translucid.engines.onnx.operations import OPERATIONS, RecordableRecurrence
from translucid.engines.onnx.quantization import quantize_products
from translucid.engines.onnx.recording import Example, Graph, Value, record
from translucid.ground.errors import UserError
from translucid.kernels.dispatch import reference_mode
from translucid.layers.embedding import Embedding
from translucid.layers.positions import LearnedPositions, SinusoidalPositions
from translucid.layers.recurrent import Recurrence
from translucid.models.attention_only import AttentionOnly, AttentionOnlyState
from translucid.models.model_options import ContextualOptions, RecurrentOptions
from translucid.models.protocol import SequenceModel
from translucid.models.recurrent import RecurrentModel, RecurrentState
from translucid.models.transformer import Transformer, TransformerState

_SOURCES, _BEAMS, _STEPS, _BEFORE = (5, 7), (2, 5), (3, 10), (4, 15)
"""Of two examples: the sentences, the hypotheses of each, the tokens so far, and the rows of the step before."""
_LENGTHS = (7, 12)
"""The tokens of the longest source of each example."""


class TranslatorGraphs:
    """The graphs of a translator."""

    def __init__(self, model: SequenceModel, finish: Callable[[Graph], None] = lambda graph: None) -> None:
        """Take a model; `finish` may change a graph before it is written.

        Raises:
            UserError: the model is of a kind that can't be exported.
        """
        self.finish = finish
        self.layout: StateLayout[Any] = state_layout(model)
        self.model = recordable(model)

    def save_encoder(self, file: Path) -> None:
        """Write the encoder: ids [B, S] int64, padded on the right -> the state before the first token."""
        graph = Graph()
        graph.input(IDS, torch.long, {0: "rows", 1: "source"})

        def encode(ids: Tensor) -> list[Tensor]:
            return self.layout.tensors(self.model.start(self.model.encode(ids)))

        examples = [{IDS: self._ids(example)} for example in (0, 1)]
        for name, value in zip(self.layout.names, _recorded(graph, encode, examples), strict=True):
            graph.output(name, value.name, value.first.dtype)
        self.finish(graph)
        graph.save(file)

    def save_decoder(self, file: Path) -> None:
        """Write a step: tokens [N] int64, the state -> logits [N, V], the tensors of the state that a step replaces."""
        graph = Graph()
        graph.input(TOKENS, torch.long, {0: "rows"})
        examples: list[Example] = []
        for example in (0, 1):
            tokens = torch.full((_SOURCES[example],), self.model.bos)
            examples.append({TOKENS: tokens, **self._state(example)})
        self._state_inputs(graph, examples[0])

        def step(tokens: Tensor, **state: Tensor) -> list[Tensor]:
            logits, state_after = self.model.step(
                tokens, self.layout.state([state[name] for name in self.layout.names])
            )
            return [logits, *self._carried(state_after)]

        logits, *after = _recorded(graph, step, examples)
        graph.output(LOGITS, logits.name)
        self._carried_outputs(graph, after)
        self.finish(graph)
        graph.save(file)

    def save_step(self, file: Path, pieces: Sequence[int] | None = None) -> None:
        """Write a step of a beam search, in which sentences have several rows.

        tokens [N], their parent rows [N], count [1], the state -> the highest log-probabilities `values` [N, count],
        sorted, and their `pieces` [N, count], the log-probability `end` [N, 1] of the end token, and the tensors of the
        state that a step replaces. The other tensors have one row for each sentence if their axis is called so.

        `pieces`: the target pieces that are candidates, special tokens first; all by default. Target ids of the graph
        are indices into them.
        """
        graph = Graph()
        examples: list[Example] = []
        for name in (TOKENS, "parent"):
            graph.input(name, torch.long, {0: "rows"})
        for example in (0, 1):
            rows = _SOURCES[example] * _BEAMS[example]
            tokens, parent = torch.full((rows,), self.model.bos), torch.arange(rows) % _BEFORE[example]
            state = self._state(example)
            for spec in self.layout.carried:
                state[spec.name] = state[spec.name][torch.arange(_BEFORE[example]) % _SOURCES[example]]
            if not self.layout.shares_memory:
                for spec in self.layout.fixed:
                    state[spec.name] = state[spec.name].repeat_interleave(_BEAMS[example], 0)
            examples.append({TOKENS: tokens, "parent": parent, **state})
        self._state_inputs(graph, examples[0], SENTENCES if self.layout.shares_memory else "rows")
        model: SequenceModel = self.model
        if pieces is not None:
            model = RestrictedVocabulary(model, torch.tensor(pieces))

        def step(tokens: Tensor, parent: Tensor, **state: Tensor) -> list[Tensor]:
            tensors = [state[spec.name].index_select(0, parent) for spec in self.layout.carried]
            fixed = [state[spec.name] for spec in self.layout.fixed]
            logits, state_after = model.step(tokens, self.layout.state([*fixed, *tensors]))
            return [logits.log_softmax(1), *self._carried(state_after)]

        log_probs, *after = _recorded(graph, step, examples)
        count = graph.input("count", torch.long, {0: "one"})
        values, piece_ids = graph.add_several("TopK", 2, log_probs.name, count, axis=1)
        graph.output("values", values)
        graph.output("end", graph.add("Gather", log_probs.name, graph.numbers(model.eos), axis=1))
        graph.output("pieces", piece_ids, torch.long)
        self._carried_outputs(graph, after)
        self.finish(graph)
        graph.save(file)

    def _ids(self, example: int) -> Tensor:
        """Return sources [B, S] of an example, the last of which is padded."""
        ids = torch.full((_SOURCES[example], _LENGTHS[example]), self.model.eos)
        ids[-1, 1:] = self.model.pad
        return ids

    def _state(self, example: int) -> dict[str, Tensor]:
        """Return a state of an example by the names of its tensors."""
        with torch.no_grad(), reference_mode():
            state = self.model.start(self.model.encode(self._ids(example)))
            for _ in range(_STEPS[example]):
                _, state = self.model.step(torch.full((_SOURCES[example],), self.model.bos), state)
            tensors = [tensor.clone() for tensor in self.layout.tensors(state)]
        return dict(zip(self.layout.names, tensors, strict=True))

    def _state_inputs(self, graph: Graph, example: Example, memories: str = "rows") -> None:
        """Declare the tensors of a state; `memories`: what those count that stay the same for a sentence."""
        for spec in self.layout.specs:
            counted = memories if spec in self.layout.fixed else "rows"
            axes = spec.dynamic_axes | {0: counted}
            graph.input(spec.name, example[spec.name].dtype, axes, example[spec.name].shape)

    def _carried(self, state: Any) -> list[Tensor]:
        return self.layout.tensors(state)[len(self.layout.fixed) :]

    def _carried_outputs(self, graph: Graph, values: Sequence[Value]) -> None:
        for spec, value in zip(self.layout.carried, values, strict=True):
            graph.output(AFTER + spec.name, value.name, value.first.dtype)


def _recorded(graph: Graph, function: Callable[..., Sequence[Tensor]], examples: Sequence[Example]) -> list[Value]:
    """Record the equations, not the kernels that compute them faster."""
    with reference_mode():
        return record(graph, function, examples[0], examples[1], OPERATIONS)


def save_onnx(
    model: SequenceModel, folder: Path, pieces: Sequence[int] | None = None, quantization: Quantization = "float32"
) -> None:
    """Write a model into a folder that `OnnxModel` opens; `pieces` are those of `TranslatorGraphs.save_step`.

    Raises:
        UserError: the model can't be exported.
    """
    graphs = TranslatorGraphs(model, quantize_products) if quantization == "int8" else TranslatorGraphs(model)
    folder.mkdir(parents=True, exist_ok=True)
    graphs.save_encoder(folder / ENCODER)
    graphs.save_step(folder / STEP, pieces)


def recordable(model: SequenceModel) -> SequenceModel:
    """Return a copy of a model whose operations do not depend on lengths: in evaluation mode, float32, on the CPU."""
    copied = deepcopy(model).cpu().float().eval()
    for module in [*copied.modules()]:
        if isinstance(module, Embedding) and isinstance(module.positions, LearnedPositions | SinusoidalPositions):
            module.positions = _FixedPositions(module.positions, positions_of(model) or POSITIONS)
        recurrence = getattr(module, "recurrence", None)
        if isinstance(recurrence, Recurrence):
            module.recurrence = RecordableRecurrence(recurrence)
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


StateT = TypeVar("StateT")


class TensorSpec(NamedTuple):
    """One tensor of a state."""

    name: str
    dynamic_axes: dict[int, str]
    """The axes whose lengths vary, with what they count: `rows`, `source` or `target` tokens."""


class StateLayout(ABC, Generic[StateT]):
    """Converts the state of a kind of model to a list of tensors: first `fixed` ones, then `carried` ones."""

    fixed: list[TensorSpec]
    """The tensors that stay the same for a sentence."""
    carried: list[TensorSpec]
    """The tensors that each step replaces."""
    shares_memory = False
    """Whether the rows of a sentence can share its `fixed` tensors."""

    @property
    def specs(self) -> list[TensorSpec]:
        """All tensors of a state, in order."""
        return [*self.fixed, *self.carried]

    @property
    def names(self) -> list[str]:
        """The names of all tensors."""
        return [spec.name for spec in self.specs]

    @abstractmethod
    def tensors(self, state: StateT) -> list[Tensor]:
        """Return the tensors of a state."""

    @abstractmethod
    def state(self, tensors: Sequence[Tensor]) -> StateT:
        """Return the state of these tensors."""


class _TransformerTensors(StateLayout[TransformerState]):
    shares_memory = True

    def __init__(self, model: Transformer) -> None:
        self.fixed = [TensorSpec("mask", {0: "rows", 3: "source"})]
        self.carried = []
        for i in range(len(model.decoder)):
            for name in ("key", "value"):
                self.fixed.append(TensorSpec(f"memory.{i}.{name}", {0: "rows", 2: "source"}))
                self.carried.append(TensorSpec(f"past.{i}.{name}", {0: "rows", 2: "target"}))

    def tensors(self, state: TransformerState) -> list[Tensor]:
        return [state.mask, *chain.from_iterable([*state.memory, *state.past])]

    def state(self, tensors: Sequence[Tensor]) -> TransformerState:
        mask, *layer_tensors = tensors
        pairs = list(zip(layer_tensors[::2], layer_tensors[1::2], strict=True))
        memory, past = pairs[: len(pairs) // 2], pairs[len(pairs) // 2 :]
        return TransformerState(past[0][0].size(2), past, memory, mask, torch.arange(mask.size(0)))


class _SSRUTensors(StateLayout[TransformerState]):
    """The states of Transformers with an SSRU: no tensor grows by one position in each step, so they count the steps.

    The number of steps is a tensor [N], so that the first axis of this tensor counts hypotheses too.
    """

    shares_memory = True

    def __init__(self, model: Transformer) -> None:
        self.fixed = [TensorSpec("mask", {0: "rows", 3: "source"})]
        self.carried = [TensorSpec("length", {0: "rows"})]
        for i in range(len(model.decoder)):
            self.fixed += [TensorSpec(f"memory.{i}.{name}", {0: "rows", 2: "source"}) for name in ("key", "value")]
            self.carried.append(TensorSpec(f"cell.{i}", {0: "rows"}))

    def tensors(self, state: TransformerState) -> list[Tensor]:
        length = torch.zeros_like(state.past[0][0][:, 0], dtype=torch.long) + state.length
        return [state.mask, *chain.from_iterable(state.memory), length, *chain.from_iterable(state.past)]

    def state(self, tensors: Sequence[Tensor]) -> TransformerState:
        mask, *layer_tensors = tensors
        layers = len(self.carried) - 1
        keys_and_values, length, cells = (
            layer_tensors[: 2 * layers],
            layer_tensors[2 * layers],
            layer_tensors[2 * layers + 1 :],
        )
        memory = list(zip(keys_and_values[::2], keys_and_values[1::2], strict=True))
        # The copy of the model that is exported takes the number of steps of each row as its position.
        steps: Any = length
        return TransformerState(steps, [(cell,) for cell in cells], memory, mask, torch.arange(mask.size(0)))


class _AttentionOnlyTensors(StateLayout[AttentionOnlyState]):
    def __init__(self, model: AttentionOnly) -> None:
        self.fixed = [TensorSpec("mask", {0: "rows", 2: "source"}), TensorSpec("memory", {0: "rows", 1: "source"})]
        self.carried = [TensorSpec(f"past.{i}", {0: "rows", 1: "target"}) for i in range(len(model.decoder_self))]

    def tensors(self, state: AttentionOnlyState) -> list[Tensor]:
        return [state.mask, state.memory, *state.past]

    def state(self, tensors: Sequence[Tensor]) -> AttentionOnlyState:
        mask, memory, *past = tensors
        return AttentionOnlyState(past[0].size(1), past, memory, mask)


class _RecurrentTensors(StateLayout[RecurrentState]):
    def __init__(self, model: RecurrentModel) -> None:
        options = model.options
        assert isinstance(options, RecurrentOptions)
        self.has_attention, self.has_feeding = options.attention != "none", options.input_feeding
        sources = {0: "rows", 1: "source"}
        self.fixed = []
        if self.has_attention:
            self.fixed = [
                TensorSpec("mask", {0: "rows", 2: "source"}),
                TensorSpec("memory", sources),
                TensorSpec("keys", sources),
            ]
        names = ["hidden"]
        if options.cell == "lstm":
            names.append("cell")
        if self.has_feeding:
            names.append("feed")
        self.carried = [TensorSpec(name, {0: "rows"}) for name in names]

    def tensors(self, state: RecurrentState) -> list[Tensor]:
        fixed = [state.mask, state.memory, state.keys] if self.has_attention else []
        carried = [cell.transpose(0, 1) for cell in state.cells]  # [L, N, D] -> [N, L, D]
        if self.has_feeding:
            # The first step has no attention vector yet, but a graph takes a tensor: zeros.
            carried.append(torch.zeros_like(carried[0][:, 0]) if state.feed is None else state.feed)
        return [*fixed, *carried]

    def state(self, tensors: Sequence[Tensor]) -> RecurrentState:
        fixed, carried = tensors[: len(self.fixed)], list(tensors[len(self.fixed) :])
        feed = carried.pop() if self.has_feeding else None
        cells = tuple(cell.transpose(0, 1) for cell in carried)
        # Without attention, mask, memory and keys are never read.
        mask, memory, keys = fixed if self.has_attention else (carried[0],) * 3
        return RecurrentState(cells, memory, keys, mask, torch.arange(carried[0].size(0)), feed)


def state_layout(model: SequenceModel) -> StateLayout[Any]:
    """Return the conversion of a model's states to tensors.

    Raises:
        UserError: the model is of a kind that can't be exported.
    """
    options = model.options
    if isinstance(options, ContextualOptions) and options.elmo:
        fix = "Its bidirectional LSTM has no such form; use the model as it is."
        raise UserError("a model that reads its source with ELMo can't become an ONNX model", fix=fix)
    if isinstance(model, Transformer):
        if model.options.decoder == "ssru":
            return _SSRUTensors(model)
        return _TransformerTensors(model)
    if isinstance(model, AttentionOnly):
        return _AttentionOnlyTensors(model)
    if isinstance(model, RecurrentModel):
        return _RecurrentTensors(model)
    what = f"a model of the kind {type(model).__name__} can't become an ONNX model"
    raise UserError(what, fix="Only built-in translators of text can.")
