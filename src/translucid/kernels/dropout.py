"""Dropout that is cheap on a CPU.

    y_i = m_i x_i,    m_i = 0 with probability p, else 1 / (1 - p)

so that y is x on average; and dx_i = m_i dy_i. PyTorch draws a float from a Mersenne Twister for every element, which
is a large part of a small model's training step. Here one or two bytes of a faster generator, itself seeded by
PyTorch's, decide an element: of the 256 (or 65,536) values that they can have, all equally likely, k drop it. So p is
rounded to k / 256 (or k / 65536), by 2 % of itself at most, and what is kept is divided by 1 minus that, so that the
mean is exact. A p that is too small for it goes PyTorch's way.
"""

from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from translucid.kernels.dispatch import is_plain

COARSE = 0.02
"""Share of itself by which a dropout may be rounded."""


class Dropout(nn.Module):
    """Zero each element with probability p while training, and scale the others by 1 / (1 - p)."""

    def __init__(self, p: float) -> None:
        """`p`: from 0 (nothing is dropped) to below 1.

        Raises:
            ValueError: p is outside that range.
        """
        super().__init__()
        if not 0 <= p < 1:
            raise ValueError(f"a dropout of {p} is not in [0, 1)")
        self.p = p

    def forward(self, x: Tensor) -> Tensor:
        """Any shape in, the same shape out."""
        if not self.training or self.p == 0:
            return x
        kind = _kind(self.p) if x.device.type == "cpu" and not is_plain("dropout") else None
        return nn.functional.dropout(x, self.p) if kind is None else x * _mask(x, self.p, kind)


@cache
def _kind(p: float) -> np.dtype[Any] | None:
    """Return the smallest kind of whole numbers that are fine enough for p."""
    for kind in (np.dtype(np.uint8), np.dtype(np.uint16)):
        steps = 256**kind.itemsize
        if abs(min(round(steps * p), steps - 1) / steps - p) <= COARSE * p:
            return kind
    return None


def _mask(x: Tensor, p: float, kind: np.dtype[Any]) -> Tensor:
    """Return a mask like x: 0 with probability p, else 1 / (1 - p)."""
    steps = 256**kind.itemsize
    dropped = min(round(steps * p), steps - 1)
    seed = int(torch.randint(2**63 - 1, ()))
    words = np.random.SFC64(seed).random_raw((x.numel() * kind.itemsize + 7) // 8)
    # Comparing, and turning booleans into numbers, takes PyTorch ten times as long as arithmetic does. Of whole numbers
    # those from `dropped` on become 1 so, and those below it 0.
    mask = torch.from_numpy(words.view(kind))[: x.numel()].view(x.shape).to(torch.float32)
    return mask.sub_(dropped - 1).clamp_(0, 1).mul_(steps / (steps - dropped)).to(x.dtype)
