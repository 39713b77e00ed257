"""A network for pictures of simple things, small enough to be learned from scratch on a CPU."""

from __future__ import annotations

from itertools import pairwise

import torch.nn.functional as F
from torch import Tensor, nn


class SmallNetwork(nn.Module):
    """Convolutions that halve the picture until a cell is `stride` pixels wide, then two residual blocks.

    There is no batch normalisation: what comes of an image does not depend on the others, and nothing runs on.
    """

    def __init__(self, channels: int, stride: int) -> None:
        """`channels`: C of the first layer; the grid has `width` = 4 C."""
        super().__init__()
        self.width = 4 * channels
        steps = stride.bit_length() - 1
        widths = [3, *(min(channels << i, self.width) for i in range(steps))]
        self.halving = nn.ModuleList(_convolution(before, after, stride=2) for before, after in pairwise(widths))
        self.blocks = nn.ModuleList(_Block(self.width) for _ in range(2))

    def forward(self, pixels: Tensor) -> Tensor:
        """Pixels [B, 3, height, width] uint8 in, [B, 4 C, height / stride, width / stride] out."""
        x = pixels.float() / 127.5 - 1
        for convolution in self.halving:
            x = F.relu(convolution(x))
        for block in self.blocks:
            x = block(x)
        return x


class _Block(nn.Module):
    """x + conv(relu(conv(relu(x))))."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.first, self.second = _convolution(width, width), _convolution(width, width)
        nn.init.zeros_(self.second.weight)  # a block begins as nothing

    def forward(self, x: Tensor) -> Tensor:
        return x + self.second(F.relu(self.first(F.relu(x))))


def _convolution(before: int, after: int, stride: int = 1) -> nn.Conv2d:
    convolution = nn.Conv2d(before, after, 3, stride=stride, padding=1)
    nn.init.kaiming_normal_(convolution.weight, nonlinearity="relu")
    assert convolution.bias is not None
    nn.init.zeros_(convolution.bias)
    return convolution
