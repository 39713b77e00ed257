"""Positional encoding: sinusoidal, learned or none (arXiv 1706.03762, section 3.5)."""

import math

import torch
from torch import Tensor, nn

from translucid.layers.variants import Sinusoids


def sinusoidal_positions(length: int, width: int, *, first: int = 0, kind: Sinusoids = "sinusoidal") -> Tensor:
    """Return P [length, D] for the positions first, first + 1, ..; D may be odd.

    P[p, 2i] = sin(p / 10000^(2i/D)), P[p, 2i+1] = cos(p / 10000^(2i/D)), computed in float64 and returned in float32.
    P[p + k] is a linear map of P[p], the same for every p: it rotates each (sin, cos) pair by k / 10000^(2i/D).

    Two variants of other toolkits: all sines come first, then all cosines (`sinusoidal-halves`); the same with
    10000^(i/(D/2 - 1)), so that the last angle is p / 10000 (`sinusoidal-tensor2tensor`).
    """
    exponent = 2 / max(width - 2, 2) if kind == "sinusoidal-tensor2tensor" else 2 / width
    pairs = (width + 1) // 2  # an odd D has a last sine without its cosine
    position = torch.arange(first, first + length, dtype=torch.float64)[:, None]
    frequency = torch.exp(torch.arange(pairs, dtype=torch.float64) * (-math.log(10000.0) * exponent))
    angle = position * frequency
    waves = torch.stack([angle.sin(), angle.cos()], dim=-1)  # [length, pairs, 2]
    if kind != "sinusoidal":
        waves = waves.transpose(1, 2)
    return waves.flatten(1)[:, :width].float()


def grid_positions(rows: int, columns: int, width: int) -> Tensor:
    """Return P [rows * columns, D] for the cells of a grid, row by row.

    The first half of the channels encodes the row of a cell, the second half its column, each with sinusoids.
    """
    vertical = sinusoidal_positions(rows, width // 2)[:, None].expand(-1, columns, -1)
    horizontal = sinusoidal_positions(columns, width - width // 2)[None].expand(rows, -1, -1)
    return torch.cat([vertical, horizontal], -1).flatten(0, 1)


class SinusoidalPositions(nn.Module):
    """Sinusoids for sentences of any length; the table grows when it meets a longer one."""

    table: Tensor

    def __init__(self, width: int, kind: Sinusoids = "sinusoidal", offset: int = 0) -> None:
        """Compute the first 256 positions of `width` D; `offset` is the position of the first token."""
        super().__init__()
        self.kind, self.offset = kind, offset
        self.register_buffer("table", self._compute(256, width), persistent=False)

    def _compute(self, length: int, width: int) -> Tensor:
        return sinusoidal_positions(length, width, first=self.offset, kind=self.kind)

    def forward(self, length: int, first: int = 0) -> Tensor:
        """Return [length, D] for the positions from `first` on."""
        if first + length > len(self.table):
            longer = self._compute(2 * (first + length), self.table.size(1))
            self.table = longer.to(self.table)
        return self.table[first : first + length]


class LearnedPositions(nn.Module):
    """One learned vector for each position up to a maximum."""

    def __init__(self, max_length: int, width: int) -> None:
        """Build fresh vectors of `width` D for `max_length` positions."""
        super().__init__()
        self.table = nn.Parameter(torch.empty(max_length, width))
        # The mean square of a sinusoid is 1/2, so learned positions start with the same length as sinusoidal ones.
        nn.init.normal_(self.table, std=math.sqrt(0.5))

    def forward(self, length: int, first: int = 0) -> Tensor:
        """Return [length, D] for the positions from `first` on.

        Raises:
            ValueError: the last position is beyond the maximum.
        """
        if first + length > len(self.table):
            raise ValueError(f"position {first + length} asked of a model that has learned {len(self.table)} positions")
        return self.table[first : first + length]


class NoPositions(nn.Module):
    """No positional encoding: the model reads a bag of words."""

    def forward(self, length: int, first: int = 0) -> float:
        """Return 0, which leaves the embeddings unchanged."""
        return 0.0
