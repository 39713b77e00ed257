"""Deep LSTMs whose states are wider than their inputs, with a projection between (Sak et al. 2014, arXiv 1402.1128)."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn

from translucid.kernels.linear import Linear
from translucid.layers.language_lstm import LSTMLayer, locked_dropout


class ProjectedLSTM(nn.Module):
    """L layers, each with a projection back to the width of its input and, except the first, a residual connection.

        h^1 = P_1 LSTM_1(m_1 * x),    h^l = h^{l-1} + P_l LSTM_l(m_l * h^{l-1})

    m are dropout masks, each the same at all positions. In the paper, the recurrence reads the projected state. Here it
    reads the whole state and the projection follows outside, so that one call of the fused kernel runs the layer:
    PyTorch's kernel for CPUs has no projection.
    """

    def __init__(self, width: int, hidden: int, layers: int, dropout: float) -> None:
        """Build `layers` layers that read and return vectors of `width` D, with states of `hidden` H."""
        super().__init__()
        self.dropout = dropout
        self.layers = nn.ModuleList(LSTMLayer(width, hidden) for _ in range(layers))
        self.projections = nn.ModuleList(Linear(hidden, width, bias=False) for _ in range(layers))
        for parameter in self.projections.parameters():
            nn.init.xavier_uniform_(parameter)

    def forward(self, x: Tensor, cells: Sequence[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        """Continue from the cells h, c, h, c, .. [B, H] of all layers over x [B, T, D].

        Returns:
            h^1 .. h^L [B, T, D], and the cells after the last position.
        """
        outputs: list[Tensor] = []
        cells_after: list[Tensor] = []
        h = x
        for number, (layer, projection) in enumerate(zip(self.layers, self.projections, strict=True)):
            inputs = locked_dropout(h, self.dropout, self.training)
            states, last = layer(inputs, (cells[2 * number], cells[2 * number + 1]))
            projected = projection(states)
            h = h + projected if number else projected
            outputs.append(h)
            cells_after += last
        return outputs, cells_after
