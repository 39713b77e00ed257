"""Deep LSTMs whose layers are wider inside than between them (Sak et al. 2014, arXiv 1402.1128)."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn

from translucid.kernels.linear import Linear
from translucid.layers.language_lstm import LSTMLayer, locked_dropout


class ProjectedLSTM(nn.Module):
    """L layers, each projected down to the width that it reads, with a skip around each but the first.

        h^1 = P_1 LSTM_1(m_1 * x),    h^l = h^{l-1} + P_l LSTM_l(m_l * h^{l-1})

    m are the masks of dropout, one for all positions. In the paper the recurrence reads the projected state; here it
    reads all of the state and the projection stands outside, so that the fused kernel runs the layer in one call: on
    a CPU PyTorch's has no projection.
    """

    def __init__(self, width: int, hidden: int, layers: int, dropout: float) -> None:
        """`width`: D, of x and of each h; `hidden`: H, of the states inside."""
        super().__init__()
        self.dropout = dropout
        self.layers = nn.ModuleList(LSTMLayer(width, hidden) for _ in range(layers))
        self.projections = nn.ModuleList(Linear(hidden, width, bias=False) for _ in range(layers))
        for parameter in self.projections.parameters():
            nn.init.xavier_uniform_(parameter)

    def forward(self, x: Tensor, cells: Sequence[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        """Go on over x [B, T, D] from the cells h, c, h, c, .. [B, H]: h^1 .. h^L [B, T, D], and the cells after."""
        seen: list[Tensor] = []
        after: list[Tensor] = []
        for number, (layer, projection) in enumerate(zip(self.layers, self.projections, strict=True)):
            read = locked_dropout(seen[-1] if seen else x, self.dropout, self.training)
            states, last = layer(read, (cells[2 * number], cells[2 * number + 1]))
            h = projection(states)
            seen.append(seen[-1] + h if seen else h)
            after += last
        return seen, after
