"""Dropout that is cheap on a CPU.

    y_i = m_i x_i,    m_i = 0 with probability p, else 1 / (1 - p)

so that y is x on average; and dx_i = m_i dy_i. PyTorch draws a float from a Mersenne Twister for every element, which
is a large part of a small model's training step. Here, one or two bytes of a faster generator, which PyTorch's
generator seeds, decide about an element: k of their 256 (or 65,536) equally likely values drop it. So p is rounded to
k / 256 (or k / 65536), by 2 % of itself at most. The other elements are divided by 1 minus that, so the mean is exact.
PyTorch's dropout handles a p that is too small for this.
"""

from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from translucid.kernels.dispatch import uses_reference

MAX_ROUNDING_ERROR = 0.02
"""The largest relative rounding error of p."""


class Dropout(nn.Module):
    """Zero each element with probability p while training, and scale the others by 1 / (1 - p)."""

    def __init__(self, p: float) -> None:
        """Drop elements with probability `p`, from 0 to below 1.

        Raises:
            ValueError: p is outside that range.
        """
        super().__init__()
        if not 0 <= p < 1:
            raise ValueError(f"a dropout of {p} is not in [0, 1)")
        self.p = p

    def forward(self, x: Tensor) -> Tensor:
        """Return x, of any shape, with some elements dropped in training."""
        if not self.training or self.p == 0:
            return x
        if x.device.type == "cpu" and not uses_reference("dropout"):
            dtype = _integer_type(self.p)
            if dtype is not None:
                return x * _mask(x, self.p, dtype)
        return nn.functional.dropout(x, self.p)


@cache
def _integer_type(p: float) -> np.dtype[Any] | None:
    """Return the smallest type of integers that is fine enough for p; None if there is none."""
    for dtype in (np.dtype(np.uint8), np.dtype(np.uint16)):
        steps = 256**dtype.itemsize
        if abs(min(round(steps * p), steps - 1) / steps - p) <= MAX_ROUNDING_ERROR * p:
            return dtype
    return None


def _mask(x: Tensor, p: float, dtype: np.dtype[Any]) -> Tensor:
    """Return a mask of the shape of x: 0 with probability p, else 1 / (1 - p)."""
    steps = 256**dtype.itemsize
    dropped = min(round(steps * p), steps - 1)
    # The seed comes from PyTorch's generator, so torch.manual_seed makes the mask reproducible.
    seed = int(torch.randint(2**63 - 1, ()))
    words = np.random.SFC64(seed).random_raw((x.numel() * dtype.itemsize + 7) // 8)  # 8 bytes each, rounded up
    # Comparing, and converting booleans to numbers, takes PyTorch ten times as long as arithmetic. Subtracting and
    # clamping turns integers of at least `dropped` into 1 and smaller ones into 0.
    mask = torch.from_numpy(words.view(dtype))[: x.numel()].view(x.shape).to(torch.float32)
    return mask.sub_(dropped - 1).clamp_(0, 1).mul_(steps / (steps - dropped)).to(x.dtype)
