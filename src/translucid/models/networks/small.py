"""A network for pictures of simple things, small enough to be learned from scratch on a CPU."""

from __future__ import annotations

from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn

GROUPS = 4
"""Of the channels that are normalised together (Wu and He 2018, arXiv 1803.08494)."""


class SmallNetwork(nn.Module):
    """Convolutions that halve the picture until a cell is `stride` pixels wide, then one that widens and one more.

    Each is 3 x 3, normalised and rectified. There is no batch normalisation: what comes of an image does not depend on
    the others, and nothing has to be kept running.
    """

    def __init__(self, channels: int, stride: int) -> None:
        """`channels`: C of the first layer, a multiple of four; the grid has `width` = 8 C."""
        super().__init__()
        self.width = 8 * channels
        widths = [3, *(min(channels << i, 4 * channels) for i in range(stride.bit_length() - 1))]
        self.halving = nn.ModuleList(_Layer(before, after, stride=2) for before, after in pairwise(widths))
        self.widening, self.last = _Layer(widths[-1], self.width), _Layer(self.width, self.width)

    def forward(self, pixels: Tensor) -> Tensor:
        """Pixels [B, 3, height, width] uint8 in, [B, 8 C, height / stride, width / stride] out."""
        x = (pixels.float() / 64 - 2).contiguous(memory_format=torch.channels_last)
        for layer in self.halving:
            x = layer(x)
        x = self.widening(x)
        return x + self.last(x)


class _Layer(nn.Module):
    """relu(norm(convolution(x)))."""

    def __init__(self, before: int, after: int, stride: int = 1) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(before, after, 3, stride=stride, padding=1, bias=False)
        nn.init.kaiming_normal_(self.convolution.weight, nonlinearity="relu")
        self.norm = nn.GroupNorm(GROUPS, after)

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.norm(self.convolution(x)))
