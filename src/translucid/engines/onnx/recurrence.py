"""Layers of LSTMs and GRUs as ONNX's operators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from translucid.engines.onnx.recording import Recorder, Value, as_one_operation
from translucid.layers.recurrent import Cells, Recurrence

_WEIGHTS = "weight_ih", "weight_hh", "bias_ih", "bias_hh"


class RecordableRecurrence(nn.Module):
    """A `Recurrence`, of which whole layers are recorded; PyTorch computes one position after another."""

    def __init__(self, recurrence: Recurrence) -> None:
        """Take the layers."""
        super().__init__()
        self.recurrence, self.step = recurrence, recurrence.step

    def read(self, x: Tensor, lengths: Tensor) -> tuple[Tensor, Cells]:
        """Do the same as `Recurrence.read`."""

        def read(x: Tensor, lengths: Tensor) -> list[Tensor]:
            outputs, last = self.recurrence.read(x, lengths)
            return [outputs, *last]

        outputs, *last = as_one_operation(read, self._add, x, lengths)
        return outputs, tuple(last)

    def forward(self, x: Tensor, cells: Cells) -> tuple[Tensor, Cells]:
        """Do the same as `Recurrence.forward`."""

        def run(x: Tensor, lengths: None, *cells: Tensor) -> list[Tensor]:
            outputs, after = self.recurrence(x, cells)
            return [outputs, *after]

        outputs, *after = as_one_operation(run, self._add, x, None, *cells)
        return outputs, tuple(after)

    def _add(
        self, recorder: Recorder, results: Sequence[Value], x: Value, lengths: Value | None, *cells: Value
    ) -> list[str]:
        """Add the operators of all layers; see `Handler`."""
        rnn, graph = self.recurrence.rnn, recorder.graph
        is_lstm = isinstance(rnn, nn.LSTM)
        options: dict[str, Any] = {"hidden_size": rnn.hidden_size}
        if rnn.bidirectional:
            options["direction"] = "bidirectional"
        if not is_lstm:
            options["linear_before_reset"] = 1  # as in PyTorch: n = tanh(W x + r * (U h + b))
        count = "" if lengths is None else recorder.cast(lengths, torch.int32)
        size = rnn.num_layers
        # [L, B, D] -> [1, B, D] for each layer
        before = [graph.add_several("Split", size, cell.name, num_outputs=size) for cell in cells]
        outputs, after = recorder.node("Transpose", x, perm=[1, 0, 2]), []  # [T, B, inputs]
        for layer in range(size):
            inputs, hidden, *biases = [_gates(rnn, layer, kind) for kind in _WEIGHTS]
            operands = [graph.constant(weights) for weights in (inputs, hidden, torch.cat(biases, 1))]
            operands += [count, *(states[layer] for states in before)]
            outputs, *last = graph.add_several(
                "LSTM" if is_lstm else "GRU", len(results), outputs, *operands, **options
            )
            # [T, directions, B, H] -> [T, B, D], [directions, B, H] -> [1, B, D]
            outputs = recorder.node("Transpose", outputs, perm=[0, 2, 1, 3])
            outputs = recorder.node("Reshape", outputs, graph.numbers(0, 0, -1))
            last = [recorder.node("Transpose", state, perm=[1, 0, 2]) for state in last]
            width = rnn.hidden_size * (1 + rnn.bidirectional)
            after.append([recorder.node("Reshape", state, graph.numbers(1, -1, width)) for state in last])
        stacked = [recorder.node("Concat", *states, axis=0) for states in zip(*after, strict=True)]
        return [recorder.node("Transpose", outputs, perm=[1, 0, 2]), *stacked]


def _gates(rnn: nn.RNNBase, layer: int, kind: str) -> Tensor:
    """Return weights of a layer [directions, gates * H, ..] in ONNX's order of the gates."""
    # From PyTorch's i, f, g, o to i, o, f, c for an LSTM, and from r, z, n to z, r, h for a GRU.
    order = (0, 3, 1, 2) if isinstance(rnn, nn.LSTM) else (1, 0, 2)
    sides = []
    for direction in ("", "_reverse")[: 1 + rnn.bidirectional]:
        gates = getattr(rnn, f"{kind}_l{layer}{direction}").detach().chunk(len(order))
        sides.append(torch.cat([gates[gate] for gate in order]))
    return torch.stack(sides)
