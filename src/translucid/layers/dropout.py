"""Dropout that is cheap on a CPU."""

import numpy as np
import torch
from torch import Tensor, nn


class Dropout(nn.Module):
    """Zero each element with probability p while training, and scale the others by 1 / (1 - p).

    On a CPU, PyTorch draws a float from a Mersenne Twister for every element, which is a large part of a small
    model's training step. Here one byte of a faster generator, itself seeded by PyTorch's, decides each element, so
    p is rounded to a multiple of 1/256.
    """

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
        if x.device.type != "cpu":
            return nn.functional.dropout(x, self.p)
        return x * _byte_mask(x, self.p)


def _byte_mask(x: Tensor, p: float) -> Tensor:
    """Return a mask like x: 0 with probability p, else 1 / (1 - p)."""
    dropped = min(round(256 * p), 255)
    seed = int(torch.randint(2**63 - 1, ()))
    words = np.random.SFC64(seed).random_raw((x.numel() + 7) // 8)
    # Comparing, and turning booleans into numbers, takes PyTorch ten times as long as arithmetic does. Of whole numbers
    # those from `dropped` on become 1 so, and those below it 0.
    mask = torch.from_numpy(words.view(np.uint8))[: x.numel()].view(x.shape).to(torch.float32)
    return mask.sub_(dropped - 1).clamp_(0, 1).mul_(256 / (256 - dropped)).to(x.dtype)
