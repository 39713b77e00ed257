"""Products of factors rounded to bfloat16, in training: the rule, and where it pays.

Processors with instructions for bfloat16 (Intel's since Cooper Lake, AMD's since Zen 4) multiply such numbers more than
twice as fast as float32. A bfloat16 has the exponent of a float32 and 8 of its 24 binary digits, so rounding a factor
changes it by 1/256 of itself at most. Of a sum of n products with random errors the relative error is then about
1/256 / sqrt(n), far below the noise of a batch. The sums themselves are made in float32. All else stays in float32, the
weights and their updates first of all, whose small steps 8 digits would swallow, as in mixed precision on a GPU
(Micikevicius et al. 2018, arXiv 1710.03740; Kalamkar et al. 2019, arXiv 1905.12322).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar

import torch
from torch import Tensor

from translucid.kernels.dispatch import is_plain
from translucid.kernels.machine import bfloat16

_wanted: ContextVar[bool] = ContextVar("wanted", default=False)


def mixed_precision(device: torch.device, *, wanted: bool) -> AbstractContextManager[object]:
    """Within it, if wanted, products are of bfloat16: on a CPU the large ones, on a GPU those of PyTorch's autocast.

    On a CPU autocast takes longer than float32 does.
    """
    if device.type == "cpu":
        return rounded_products(wanted)
    return torch.autocast(device.type, torch.bfloat16, enabled=wanted)


@contextmanager
def rounded_products(wanted: bool = True) -> Iterator[None]:
    """Within it, if wanted, large products on a CPU that gradients are made for are of factors in bfloat16."""
    before = _wanted.set(wanted)
    try:
        yield
    finally:
        _wanted.reset(before)


def rounding() -> bool:
    """Whether factors of large products are rounded now."""
    return not is_plain("linear") and _wanted.get()


def factor(x: Tensor) -> Tensor:
    """Return x as it is to be a factor of a large product: rounded if factors are, else as it is."""
    return x.bfloat16() if rounding() else x


def bfloat16_is_quick(device: torch.device) -> bool:
    """Whether products of bfloat16 are faster than those of float32 there: on most GPUs, and on some processors."""
    if device.type == "cpu":
        return torch.backends.mkldnn.is_available() and bfloat16()
    return device.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)
