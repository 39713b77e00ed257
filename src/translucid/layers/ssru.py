"""The simpler simple recurrent unit (Kim et al. 2019, D19-5632), in place of a decoder's self-attention."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from translucid.attention.points import Point
from translucid.kernels.linear import Linear
from translucid.kernels.packing import Sentences
from translucid.kernels.recurrence import linear_recurrence


class SSRU(nn.Module):
    """f_t = sigmoid(W_f x_t + b_f),  c_t = f_t * c_{t-1} + (1 - f_t) * W x_t,  output relu(c_t);  c before x_0 is 0.

    A step of a search takes constant time and memory, whatever the length of the target. The cell is that of the SRU
    (Lei et al. 2018, arXiv 1709.02755) without its output gate. W_f and W read the same input, so they are one matrix.
    """

    def __init__(self, width: int, name: str = "ssru") -> None:
        """Build W_f and W of `width` D; `name` is that of the unit's points, such as `decoder.0.ssru`."""
        super().__init__()
        self.projection = Linear(width, 2 * width, bias=False)
        self.forget_bias = nn.Parameter(torch.zeros(width))
        for matrix in self.projection.weight.chunk(2):
            nn.init.xavier_uniform_(matrix.data)
        self.at_forget, self.at_values = Point(f"{name}.forget"), Point(f"{name}.values")
        self.at_cells, self.at_output = Point(f"{name}.cells"), Point(f"{name}.output")

    def start(self, x: Tensor) -> Tensor:
        """Return the cell before the first position, zeros [N, D] on the device of x [N, D], in the dtype of cells."""
        return torch.zeros_like(x, dtype=_cell_dtype(x))

    def forward(
        self, x: Tensor, before: Tensor | None = None, first: int = 0, sentences: Sentences | None = None
    ) -> tuple[Tensor, Tensor]:
        """Compute all positions x [N, T, D] of targets, or one position x [N, 1, D] after the cell `before` [N, D].

        `first` is the position of the first row, for the points; `sentences` are those of a packed row x [1, T, D].

        Returns:
            The output [N, T, D], and the cell c after the last position [N, D].
        """
        forget, value = self.projection(x).to(_cell_dtype(x)).chunk(2, -1)
        forget = self.at_forget(torch.sigmoid(forget + self.forget_bias), first)
        value = self.at_values(value, first)
        if before is None:
            cells = linear_recurrence(forget, (1 - forget) * value, sentences)
        else:
            cells = torch.lerp(value, before[:, None], forget)  # one operation instead of four
        output = torch.relu(self.at_cells(cells, first)).to(x.dtype)
        return self.at_output(output, first), cells[:, -1]


def _cell_dtype(x: Tensor) -> torch.dtype:
    """Return float32 at least: in bfloat16, a gate next to 1 would be 1, and the cell would never forget."""
    return torch.promote_types(x.dtype, torch.float32)
