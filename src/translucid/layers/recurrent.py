"""LSTM and GRU layers over right-padded batches, with PyTorch's fused kernels.

On a GPU they always compute in float32, because autocast would choose float16 for them.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any, Literal, TypeAlias

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from translucid.kernels.upload import upload

Cells: TypeAlias = tuple[Tensor, ...]
"""The state of a stack of L layers: (h,) of GRUs, (h, c) of LSTMs, each [L, B, D]."""


class Recurrence(nn.Module):
    """A stack of layers; if it is bidirectional, the outputs of both directions, D/2 wide each, are concatenated."""

    def __init__(
        self,
        cell: Literal["lstm", "gru"],
        inputs: int,
        width: int,
        layers: int,
        *,
        bidirectional: bool = False,
        dropout: float = 0.0,
    ) -> None:
        """Build fresh weights.

        Args:
            cell: the kind of recurrent unit.
            inputs: the width of the inputs.
            width: D, the width of the outputs.
            layers: L, the number of layers.
            bidirectional: whether to read in both directions.
            dropout: the dropout between layers.
        """
        super().__init__()
        # PyTorch warns of dropout with one layer, which has nothing between layers.
        self.dropout = dropout if layers > 1 else 0.0
        network = nn.LSTM if cell == "lstm" else nn.GRU
        hidden = width // 2 if bidirectional else width
        self.rnn = network(inputs, hidden, layers, batch_first=True, bidirectional=bidirectional, dropout=self.dropout)
        if cell == "lstm":
            # A forget gate that is open at first helps an LSTM to learn (Jozefowicz et al. 2015, section 2.2).
            for name, bias in self.rnn.named_parameters():
                if name.startswith("bias_ih"):
                    nn.init.ones_(bias.data.chunk(4)[1])

    def read(self, x: Tensor, lengths: Tensor) -> tuple[Tensor, Cells]:
        """Read whole sentences x [B, S, inputs] from zero states; their lengths [B] are on the CPU.

        Padding after the end of a sentence costs no time and changes no number.

        Returns:
            The outputs of the last layer [B, S, D], zero at padding, and the last states of all layers, each
            [L, B, D]: the state at the end of the sentence, or at its beginning for the backward direction.
        """
        if bool((lengths == x.size(1)).all()):
            outputs, last = self._run(x)
        elif x.device.type == "cpu":
            packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
            outputs, last = self._read_packed(packed, x.size(1))
        else:
            outputs, last = self._read_sorted(x, lengths)
        return outputs, tuple(self._join_directions(state) for state in last)

    def _read_sorted(self, x: Tensor, lengths: Tensor) -> tuple[Tensor, Cells]:
        """Sort the sentences as packing with `enforce_sorted=False` does, which would wait for the GPU three times."""
        order = lengths.argsort(descending=True, stable=True)
        rows, original_rows = upload(order, x.device), upload(order.argsort(), x.device)
        packed = pack_padded_sequence(x.index_select(0, rows), lengths[order], batch_first=True)
        outputs, last = self._read_packed(packed, x.size(1))
        return outputs.index_select(0, original_rows), tuple(state.index_select(1, original_rows) for state in last)

    def _read_packed(self, packed: PackedSequence, length: int) -> tuple[Tensor, Cells]:
        packed_outputs, last = self._run(packed)
        outputs, _ = pad_packed_sequence(packed_outputs, batch_first=True, total_length=length)
        return outputs, last

    def _run(self, x: Any, cells: Cells | None = None) -> tuple[Any, Cells]:
        """Run all layers over x, [B, T, inputs] or packed, from `cells` or from zero states.

        Returns:
            The outputs, of the same type as x, and the states after the last position.
        """
        weight: Any = self.rnn.weight_hh_l0  # all weights have the same device and dtype
        before: Any = None
        if cells is not None:
            states = tuple(state.to(weight.dtype).contiguous() for state in cells)
            before = states if len(states) > 1 else states[0]  # PyTorch's GRU takes a tensor, its LSTM takes a pair
        with _without_autocast(weight.device):
            if weight.device.type != "cpu":
                x = x.to(weight.dtype)
            if weight.device.type == "cuda" and torch.is_grad_enabled() and not self.training:
                outputs, after = self._run_for_gradients(x, before)
            else:
                outputs, after = self.rnn(x, before)
        if isinstance(after, Tensor):
            after = (after,)
        return outputs, after

    def _run_for_gradients(self, x: Any, before: Any) -> tuple[Any, Any]:
        """Run without dropout, but with cuDNN in training mode: in evaluation mode it has no backward pass."""
        rnn = self.rnn
        is_lstm = isinstance(rnn, nn.LSTM)
        if isinstance(x, PackedSequence):
            data, rows = x.data, int(x.batch_sizes[0])
        else:
            data, rows = x, len(x)
        if before is None:
            layers = rnn.num_layers * (1 + rnn.bidirectional)
            zeros = data.new_zeros(layers, rows, rnn.hidden_size)
            before = (zeros, zeros) if is_lstm else zeros
        function: Any = torch.lstm if is_lstm else torch.gru
        settings = rnn._flat_weights, True, rnn.num_layers, 0.0, True, rnn.bidirectional
        if isinstance(x, PackedSequence):
            outputs, *after = function(data, x.batch_sizes, before, *settings)
            return x._replace(data=outputs), tuple(after)
        outputs, *after = function(data, before, *settings, True)
        return outputs, tuple(after)

    def _join_directions(self, state: Tensor) -> Tensor:
        """Concatenate the states of both directions: [L * directions, B, d] -> [L, B, D]."""
        return state.unflatten(0, (self.rnn.num_layers, -1)).transpose(1, 2).flatten(2)

    def forward(self, x: Tensor, cells: Cells) -> tuple[Tensor, Cells]:
        """Continue from the states `cells` over x [B, T, inputs]; return outputs [B, T, D] and the states after."""
        return self._run(x, cells)

    def step(self, x: Tensor, cells: Cells) -> tuple[Tensor, Cells]:
        """Do the same for one position x [B, inputs], where the next input depends on this output."""
        weight: Any = self.rnn.weight_hh_l0  # all weights have the same device and dtype
        with _without_autocast(weight.device):
            if weight.device.type != "cpu":
                x = x.to(weight.dtype)
            return self._step(x, cells)

    def _step(self, x: Tensor, cells: Cells) -> tuple[Tensor, Cells]:
        states: list[Cells] = []
        for layer, weights in enumerate(self.rnn.all_weights):
            if layer and self.dropout:
                x = F.dropout(x, self.dropout, self.training)
            before = tuple(state[layer].to(x.dtype) for state in cells)
            if len(before) == 1:
                after: Cells = (torch.gru_cell(x, before[0], *weights),)
            else:
                after = torch.lstm_cell(x, before, *weights)
            x = after[0]
            states.append(after)
        return x, tuple(torch.stack(state) for state in zip(*states, strict=True))


def _without_autocast(device: torch.device) -> AbstractContextManager[object]:
    """Turn autocast off on a GPU; recurrent layers are never cast on a CPU."""
    if device.type == "cpu":
        return nullcontext()
    return torch.autocast(device.type, enabled=False)
