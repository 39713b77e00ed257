"""The decoder without attention, whose only information about the source is its first state."""

from __future__ import annotations

from dataclasses import replace

from torch import Tensor, nn

from translucid.layers.recurrent import Recurrence
from translucid.models.model_options import RecurrentOptions
from translucid.models.protocol import Maps
from translucid.models.recurrent.state import RecurrentState


class PlainDecoder(nn.Module):
    """h_t = f(h_{t-1}, E w_{t-1}) (Sutskever et al. 2014, arXiv 1409.3215)."""

    def __init__(self, options: RecurrentOptions) -> None:
        super().__init__()
        o = options
        self.recurrence = Recurrence(o.cell, o.width, o.width, o.layers, dropout=o.dropout)

    def forward(self, x: Tensor, state: RecurrentState, maps: Maps | None = None) -> tuple[Tensor, RecurrentState]:
        """Continue from `state` over embedded words x [N, T, D]; return h [N, T, D] and the state after."""
        hidden, cells = self.recurrence(x, state.cells)
        return hidden, replace(state, cells=cells)
