"""Products of factors rounded to bfloat16, in training on a CPU.

Processors with instructions for bfloat16 (Intel's since Cooper Lake, AMD's since Zen 4) multiply such numbers more than
twice as fast as float32. Where a library does not use these instructions, it emulates them and takes three to ten
times as long as in float32, so `gain_of_rounding` measures.

A bfloat16 has the exponent of a float32 and 8 of its 24 binary digits, so rounding changes a factor by 1/256 of itself
at most. A sum of n products with random errors then has a relative error of about 1/256 / sqrt(n), far below the noise
of a batch. The sums are computed in float32. Everything else stays in float32, as in mixed precision on a GPU
(Micikevicius et al. 2018, arXiv 1710.03740; Kalamkar et al. 2019, arXiv 1905.12322), above all the weights: with 8
digits, most small updates would be lost.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar

import torch
from torch import Tensor

from translucid.kernels.dispatch import uses_reference
from translucid.kernels.onednn import bfloat16_gain

_enabled: ContextVar[bool] = ContextVar("enabled", default=False)


def mixed_precision(device: torch.device, *, enabled: bool) -> AbstractContextManager[object]:
    """Compute products in bfloat16, if enabled: large ones on a CPU, those of PyTorch's autocast on a GPU."""
    if device.type == "cpu":  # where autocast is slower than float32
        return rounded_products(enabled)
    return torch.autocast(device.type, torch.bfloat16, enabled=enabled)


@contextmanager
def rounded_products(enabled: bool = True) -> Iterator[None]:
    """Round the factors of large products on a CPU to bfloat16, if enabled, where gradients are computed."""
    token = _enabled.set(enabled)
    try:
        yield
    finally:
        _enabled.reset(token)


def rounding() -> bool:
    """Whether the factors of large products are rounded now."""
    return not uses_reference("linear") and _enabled.get()


def factor(x: Tensor) -> Tensor:
    """Return x as a factor of a large product: rounded to bfloat16 within `rounded_products`, else unchanged."""
    return x.bfloat16() if rounding() else x


def gain_of_rounding(device: torch.device) -> float:
    """Return how many times as fast as float32 a device multiplies bfloat16: measured on a CPU, else infinite or 0."""
    if device.type == "cpu":
        return bfloat16_gain()
    has_instructions = device.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)
    return math.inf if has_instructions else 0.0


def bfloat16_is_faster(device: torch.device) -> bool:
    """Whether products of bfloat16 are faster than those of float32 on this device."""
    return gain_of_rounding(device) > 1
