"""LSTM and GRU layers over right-padded batches, by PyTorch's fused kernels."""

from __future__ import annotations

from typing import Literal, TypeAlias

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

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

    def read(self, x: Tensor, lengths: Tensor) -> tuple[Tensor, Cells]:
        """Read whole sentences x [B, S, inputs] of these lengths [B], from zero states.

        What stands behind the end of a sentence costs nothing and changes nothing.

        Returns:
            The outputs of the last layer [B, S, D], zero behind the end, and the last states of all layers, each
            [L, B, D]: that at the end of the sentence, and of a backward direction that at its beginning.
        """
        if bool((lengths == x.size(1)).all()):
            outputs, last = self.rnn(x)
        else:
            packed = pack_padded_sequence(x, lengths.cpu(), batch_first=True, enforce_sorted=False)
            packed_outputs, last = self.rnn(packed)
            outputs, _ = pad_packed_sequence(packed_outputs, batch_first=True, total_length=x.size(1))
        cells = last if isinstance(last, tuple) else (last,)
        return outputs, tuple(self._side_by_side(part) for part in cells)

    def _side_by_side(self, part: Tensor) -> Tensor:
        """[L * directions, B, d] -> [L, B, D]."""
        return part.unflatten(0, (self.rnn.num_layers, -1)).transpose(1, 2).flatten(2)

    def forward(self, x: Tensor, cells: Cells) -> tuple[Tensor, Cells]:
        """Go on from the states `cells` over all of x [B, T, inputs]: outputs [B, T, D] and the states after."""
        if len(cells) == 1:
            outputs, after = self.rnn(x, cells[0].contiguous())
            return outputs, (after,)
        outputs, after = self.rnn(x, tuple(part.contiguous() for part in cells))
        return outputs, after

    def step(self, x: Tensor, cells: Cells) -> tuple[Tensor, Cells]:
        """The same over one position x [B, inputs], for loops in which the next input depends on this output."""
        states = []
        for layer, weights in enumerate(self.rnn.all_weights):
            if layer and self.dropout:
                x = F.dropout(x, self.dropout, self.training)
            before = tuple(part[layer] for part in cells)
            after = (
                (torch.gru_cell(x, before[0], *weights),) if len(cells) == 1 else torch.lstm_cell(x, before, *weights)
            )
            x = after[0]
            states.append(after)
        return x, tuple(torch.stack(part) for part in zip(*states, strict=True))
