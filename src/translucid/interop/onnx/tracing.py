"""Copies of models that PyTorch can export to ONNX: the same outputs, without branches that depend on a length."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from translucid.engines.ctranslate2.conventions import POSITIONS
from translucid.layers.embedding import Embedding
from translucid.layers.positions import LearnedPositions, SinusoidalPositions
from translucid.layers.recurrent import Cells, Recurrence
from translucid.models.protocol import SequenceModel
from translucid.models.recurrent import RecurrentModel


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
