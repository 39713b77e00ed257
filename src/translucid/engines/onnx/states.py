"""The states of decoders as named tensors, the only inputs and outputs of an ONNX graph.

The first axis of every tensor is that of the rows, so that a beam search can reorder all of them in the same way.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from itertools import chain
from typing import Any, Generic, NamedTuple, TypeVar

import torch
from torch import Tensor

from translucid.ground.errors import UserError
from translucid.models.attention_only import AttentionOnly, AttentionOnlyState
from translucid.models.model_options import ContextualOptions, RecurrentOptions
from translucid.models.protocol import SequenceModel
from translucid.models.recurrent import RecurrentModel, RecurrentState
from translucid.models.transformer import Transformer, TransformerState

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
