"""Matrix products on a CPU, by the faster of the two libraries that PyTorch has for them.

Intel's MKL, which PyTorch takes for float32, holds itself back on AMD's processors: on a Zen 5 with AVX-512 it comes to
90 GFLOP/s a core, oneDNN to 200. oneDNN takes part in a product only when it is allowed to round to bfloat16; where it
makes no use of that, and so gives float32 as exactly as MKL does, it is taken for large products. Small ones, such as
those within attention, it does not do well.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import cache
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from translucid.machine import amd

_MATMUL: Any = torch.backends.mkldnn.matmul  # type: ignore[attr-defined]
_USUAL = _MATMUL.fp32_precision

LARGE = 2_000_000
"""Multiplications in a product from which on oneDNN is the faster one; it takes longer to begin."""


KEPT = 32
"""Products of different shapes that oneDNN stays prepared for; by itself it keeps 1,024, some 200 KiB each, though
batches of text hardly ever have a shape twice."""


class Linear(nn.Linear):
    """x W^T + b, as `nn.Linear` has it, but faster where it can be."""

    def forward(self, x: Tensor) -> Tensor:
        """[.., inputs] -> [.., outputs]."""
        if not (_plain_cpu(x) and x.numel() * self.out_features >= LARGE and onednn_is_better()):
            return F.linear(x, self.weight, self.bias)
        if torch.is_grad_enabled():
            return _Linear.apply(x, self.weight, self.bias)  # type: ignore[no-untyped-call]
        with _onednn():
            return F.linear(x, self.weight, self.bias)


class _Linear(torch.autograd.Function):
    """By oneDNN: y = x W^T + b; dx = dy W, dW = dy^T x, db = sum dy."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(x, weight)
        with _onednn():
            y = torch.mm(x.reshape(-1, x.size(-1)), weight.t())
        if bias is not None:
            y += bias
        return y.view(*x.shape[:-1], -1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        flat = dy.reshape(-1, dy.size(-1))
        with _onednn():
            dx = torch.mm(flat, weight).view_as(x) if ctx.needs_input_grad[0] else None
            dw = torch.mm(flat.t(), x.reshape(-1, x.size(-1))) if ctx.needs_input_grad[1] else None
        db = flat.sum(0) if ctx.needs_input_grad[2] else None
        return dx, dw, db


@contextmanager
def fast_products() -> Iterator[None]:
    """Within it, large products of float32 matrices on a CPU are made by the faster library."""
    with _onednn() if onednn_is_better() else nullcontext():
        yield


@contextmanager
def _onednn() -> Iterator[None]:
    """Let oneDNN take part in float32 products: of the whole process, so other threads may lose or gain some speed."""
    _MATMUL.fp32_precision = "bf16"
    try:
        yield
    finally:
        _MATMUL.fp32_precision = _USUAL


@cache
def onednn_is_better() -> bool:
    """Whether this is an AMD processor with AVX-512 on which oneDNN, allowed to round, does not."""
    if not torch.backends.mkldnn.is_available() or torch.backends.cpu.get_cpu_capability() != "AVX512" or not amd():
        return False
    for name in ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY"):  # its own, and that of PyTorch's layer on it
        os.environ.setdefault(name, str(KEPT))
    drawn = torch.Generator().manual_seed(1)
    a, b = (torch.randn(512, 512, generator=drawn) for _ in range(2))
    return bool((_with_onednn(a, b) - a.double() @ b.double()).abs().max() < 1e-3)  # bfloat16 would be off by about 0.3


def _with_onednn(a: Tensor, b: Tensor) -> Tensor:
    with _onednn():
        return a @ b


def _plain_cpu(x: Tensor) -> bool:
    return x.device.type == "cpu" and x.dtype == torch.float32 and not torch.is_autocast_enabled("cpu")
