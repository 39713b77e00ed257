"""A network for images of simple objects, small enough to train from scratch on a CPU."""

from __future__ import annotations

from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from translucid.models.networks import ImageNetwork

GROUPS = 4
"""The number of groups of group normalisation (Wu and He 2018, arXiv 1803.08494)."""


class SmallNetwork(ImageNetwork):
    """Convolutions that halve the image until a cell is `stride` pixels wide, then one that widens and a residual one.

    Each is 3 x 3, followed by group normalisation and ReLU. With batch normalisation, the grid of an image would depend
    on the other images, and running statistics would be necessary.
    """

    def __init__(self, channels: int, stride: int) -> None:
        """Build fresh weights with C `channels` in the first layer, a multiple of four; the grid has `width` 8 C."""
        super().__init__()
        self.width = 8 * channels
        # Channels double with every halving, up to 4 C: with a stride of 8 they are 3, C, 2 C, 4 C.
        widths = [3]
        for halving in range(stride.bit_length() - 1):
            widths.append(min(channels << halving, 4 * channels))
        self.halving = nn.ModuleList(_Layer(before, after, stride=2) for before, after in pairwise(widths))
        self.widening, self.last = _Layer(widths[-1], self.width), _Layer(self.width, self.width)

    def forward(self, pixels: Tensor) -> Tensor:
        """Map pixels [B, 3, height, width] uint8 to the grid [B, 8 C, height / stride, width / stride]."""
        x = (pixels.float() / 64 - 2).contiguous(memory_format=torch.channels_last)  # 0 .. 255 -> -2 .. 2
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
