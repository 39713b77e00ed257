"""The encoder, and the bridge from its last states to the decoder's first states."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from translucid.kernels.linear import Linear
from translucid.layers.recurrent import Cells, Recurrence
from translucid.models.model_options import RecurrentOptions
from translucid.models.protocol import Memory


@dataclass(frozen=True)
class RecurrentMemory(Memory):
    """Encoder outputs y [B, S, D], the mask [B, S], and the first states of the decoder."""

    first: Cells
    """The decoder's first states, each [L, B, D]."""

    def select(self, rows: Tensor) -> RecurrentMemory:
        """Return the memory of the sentences `rows` [N]."""
        first = tuple(part.index_select(1, rows) for part in self.first)
        return RecurrentMemory(self.states.index_select(0, rows), self.mask.index_select(0, rows), first)


class RecurrentEncoder(nn.Module):
    """y_s = [forward h_s; backward h_s] (Bahdanau et al. 2015, arXiv 1409.0473, section 3.2), or one direction only."""

    def __init__(self, options: RecurrentOptions) -> None:
        super().__init__()
        o = options
        self.recurrence = Recurrence(
            o.cell, o.width, o.width, o.layers, bidirectional=o.bidirectional, dropout=o.dropout
        )
        parts = 2 if o.cell == "lstm" else 1  # an LSTM has a hidden state and a cell
        self.bridges = nn.ModuleList(Linear(o.width, o.width) for _ in range(parts))

    def forward(self, x: Tensor, mask: Tensor, lengths: Sequence[int] = ()) -> RecurrentMemory:
        """Read embedded sources x [B, S, D] with their mask [B, S]; `lengths` are those of `SequenceModel.encode`.

        The decoder's first hidden state is tanh(W h) of the encoder's last one (section A.2.2 of the paper), for each
        layer and from both directions. The cell of an LSTM, which is unbounded, is mapped without tanh.
        """
        lengths_on_host = torch.tensor(lengths) if lengths else mask.sum(1).cpu()
        outputs, last = self.recurrence.read(x, lengths_on_host)
        hidden, *cell = (bridge(part) for bridge, part in zip(self.bridges, last, strict=True))
        return RecurrentMemory(outputs, mask, (torch.tanh(hidden), *cell))
