"""LSTM and GRU layers over right-padded batches, by PyTorch's fused kernels.

On a GPU they compute in float32 within autocast as well, which would take float16 for them.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any, Literal, TypeAlias

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from translucid.kernels.transfer import upload

Cells: TypeAlias = tuple[Tensor, ...]
"""The state of a stack of L layers: (h,) of GRUs, (h, c) of LSTMs, each [L, B, D]."""


class Recurrence(nn.Module):
    """A stack of layers; the outputs of the two directions, D/2 wide each, are concatenated."""

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
        """`inputs`: the width of what is read; `width`: D of the outputs; `dropout`: between layers."""
        super().__init__()
        self.dropout = dropout if layers > 1 else 0.0
        self.rnn = (nn.LSTM if cell == "lstm" else nn.GRU)(
            inputs,
            width // 2 if bidirectional else width,
            layers,
            batch_first=True,
            bidirectional=bidirectional,
            dropout=self.dropout,
        )
        if cell == "lstm":  # an LSTM that remembers from the start learns faster (Jozefowicz et al. 2015, section 2.2)
            for name, bias in self.rnn.named_parameters():
                if name.startswith("bias_ih"):
                    nn.init.ones_(bias.data.chunk(4)[1])

    @property
    def weight(self) -> Tensor:
        """One of the weights, which all have its device and dtype."""
        weight = self.rnn.weight_hh_l0
        assert isinstance(weight, Tensor)
        return weight

    def read(self, x: Tensor, lengths: Tensor) -> tuple[Tensor, Cells]:
        """Read whole sentences x [B, S, inputs] of these lengths [B], which are on the CPU, from zero states.

        What stands behind the end of a sentence costs nothing and changes nothing.

        Returns:
            The outputs of the last layer [B, S, D], zero behind the end, and the last states of all layers, each
            [L, B, D]: that at the end of the sentence, and of a backward direction that at its beginning.
        """
        if bool((lengths == x.size(1)).all()):
            outputs, last = self._run(x)
        elif x.device.type == "cpu":
            packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
            outputs, last = self._read_packed(packed, x.size(1))
        else:
            outputs, last = self._read_sorted(x, lengths)
        return outputs, tuple(self._side_by_side(part) for part in last)

    def _read_sorted(self, x: Tensor, lengths: Tensor) -> tuple[Tensor, Cells]:
        """Do what packing does with `enforce_sorted=False`, where PyTorch waits for the GPU three times."""
        order = lengths.argsort(descending=True, stable=True)
        rows, places = upload(order, x.device), upload(order.argsort(), x.device)
        packed = pack_padded_sequence(x.index_select(0, rows), lengths[order], batch_first=True)
        outputs, last = self._read_packed(packed, x.size(1))
        return outputs.index_select(0, places), tuple(part.index_select(1, places) for part in last)

    def _read_packed(self, packed: PackedSequence, length: int) -> tuple[Tensor, Cells]:
        packed_outputs, last = self._run(packed)
        outputs, _ = pad_packed_sequence(packed_outputs, batch_first=True, total_length=length)
        return outputs, last

    def _run(self, x: Any, cells: Cells | None = None) -> tuple[Any, Cells]:
        """Run all layers over x, [B, T, inputs] or packed, from `cells`, or from zero: outputs like x, states after."""
        weight = self.weight
        with _without_autocast(weight.device):
            if weight.device.type != "cpu":
                x = x.to(weight.dtype)
            before = None if cells is None else self._states(cells)
            if weight.device.type == "cuda" and torch.is_grad_enabled() and not self.training:
                outputs, after = self._run_for_gradients(x, before)
            else:
                outputs, after = self.rnn(x, before)
        return outputs, after if isinstance(after, tuple) else (after,)

    def _states(self, cells: Cells) -> Any:
        """Return the states as PyTorch's layers take them: two of an LSTM, one of a GRU."""
        parts = tuple(part.to(self.weight.dtype).contiguous() for part in cells)
        return parts if len(parts) > 1 else parts[0]

    def _run_for_gradients(self, x: Any, before: Any) -> tuple[Any, Any]:
        """Run without dropout what has a backward pass, which cuDNN refuses in evaluation mode."""
        rnn = self.rnn
        data = x.data if isinstance(x, PackedSequence) else x
        if before is None:
            rows = int(x.batch_sizes[0]) if isinstance(x, PackedSequence) else len(x)
            layers = rnn.num_layers * (2 if rnn.bidirectional else 1)
            zeros = data.new_zeros(layers, rows, rnn.hidden_size)
            before = (zeros, zeros) if isinstance(rnn, nn.LSTM) else zeros
        function: Any = torch.lstm if isinstance(rnn, nn.LSTM) else torch.gru
        settings = rnn._flat_weights, True, rnn.num_layers, 0.0, True, rnn.bidirectional
        if not isinstance(x, PackedSequence):
            outputs, *after = function(x, before, *settings, True)
            return outputs, tuple(after)
        outputs, *after = function(data, x.batch_sizes, before, *settings)
        return x._replace(data=outputs), tuple(after)

    def _side_by_side(self, part: Tensor) -> Tensor:
        """[L * directions, B, d] -> [L, B, D]."""
        return part.unflatten(0, (self.rnn.num_layers, -1)).transpose(1, 2).flatten(2)

    def forward(self, x: Tensor, cells: Cells) -> tuple[Tensor, Cells]:
        """Go on from the states `cells` over all of x [B, T, inputs]: outputs [B, T, D] and the states after."""
        return self._run(x, cells)

    def step(self, x: Tensor, cells: Cells) -> tuple[Tensor, Cells]:
        """The same over one position x [B, inputs], for loops in which the next input depends on this output."""
        weight = self.weight
        with _without_autocast(weight.device):
            if weight.device.type != "cpu":
                x = x.to(weight.dtype)
            return self._step(x, cells)

    def _step(self, x: Tensor, cells: Cells) -> tuple[Tensor, Cells]:
        states = []
        for layer, weights in enumerate(self.rnn.all_weights):
            if layer and self.dropout:
                x = F.dropout(x, self.dropout, self.training)
            before = tuple(part[layer].to(x.dtype) for part in cells)
            after = (
                (torch.gru_cell(x, before[0], *weights),) if len(cells) == 1 else torch.lstm_cell(x, before, *weights)
            )
            x = after[0]
            states.append(after)
        return x, tuple(torch.stack(part) for part in zip(*states, strict=True))


def _without_autocast(device: torch.device) -> AbstractContextManager[object]:
    """Within it, nothing on a GPU is cast; a CPU never is."""
    return nullcontext() if device.type == "cpu" else torch.autocast(device.type, enabled=False)
