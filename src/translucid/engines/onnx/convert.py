"""Write a translator as two graphs for ONNX Runtime: the encoder, and one step of the decoder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from translucid.decoding.search import RestrictedVocabulary
from translucid.engines.ctranslate2.conventions import POSITIONS
from translucid.engines.onnx.conventions import AFTER, ENCODER, IDS, LOGITS, SENTENCES, STEP, TOKENS
from translucid.engines.onnx.operations import OPERATIONS, RecordableRecurrence
from translucid.engines.onnx.recording import Example, Graph, Value, record
from translucid.engines.onnx.states import StateLayout, state_layout
from translucid.kernels.dispatch import reference_mode
from translucid.layers.embedding import Embedding
from translucid.layers.positions import LearnedPositions, SinusoidalPositions
from translucid.layers.recurrent import Recurrence
from translucid.models.protocol import SequenceModel

_SOURCES, _BEAMS, _STEPS, _BEFORE = (5, 7), (2, 5), (3, 10), (4, 15)
"""Of two examples: the sentences, the hypotheses of each, the tokens so far, and the rows of the step before."""
_LENGTHS = (7, 12)
"""The tokens of the longest source of each example."""


class TranslatorGraphs:
    """The graphs of a translator."""

    def __init__(self, model: SequenceModel) -> None:
        """Take a model.

        Raises:
            UserError: the model is of a kind that can't be exported.
        """
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


def save_onnx(model: SequenceModel, folder: Path, pieces: Sequence[int] | None = None) -> None:
    """Write a model into a folder that `OnnxModel` opens; `pieces` are those of `TranslatorGraphs.save_step`.

    Raises:
        UserError: the model can't be exported.
    """
    graphs = TranslatorGraphs(model)
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
