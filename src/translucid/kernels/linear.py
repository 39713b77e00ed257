"""Matrix products on a CPU: by the faster of the two libraries that PyTorch has for them, or of rounded factors.

Intel's MKL, which PyTorch takes for float32, holds itself back on AMD's processors: on a Zen 5 with AVX-512 it comes to
90 GFLOP/s a core, oneDNN to 200. oneDNN takes part in a product only when it is allowed to round to bfloat16; where it
makes no use of that, and so gives float32 as exactly as MKL does, it is taken for large products. Small ones, such as
those within attention, it does not do well in float32.

Processors with instructions for bfloat16 (Intel's since Cooper Lake, AMD's since Zen 4) multiply such numbers more than
twice as fast as float32. In training, large products may be made of factors rounded to it. Their sums are made in
float32 and then rounded, too; all else stays in float32, the weights and their updates first of all, as in mixed
precision on a GPU (Micikevicius et al. 2018, arXiv 1710.03740; Kalamkar et al. 2019, arXiv 1905.12322).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from functools import cache
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from translucid.kernels.machine import amd, bfloat16

_MATMUL: Any = torch.backends.mkldnn.matmul  # type: ignore[attr-defined]
_USUAL = _MATMUL.fp32_precision
_rounding: ContextVar[bool] = ContextVar("rounding", default=False)

LARGE = 2_000_000
"""Multiplications in a product from which on oneDNN is the faster one, and rounding pays; it takes longer to begin."""

KEPT = 32
"""Products of different shapes that oneDNN stays prepared for; by itself it keeps 1,024, some 200 KiB each, though
batches of text hardly ever have a shape twice."""


class Linear(nn.Linear):
    """x W^T + b, as `nn.Linear` has it, but faster where it can be."""

    def forward(self, x: Tensor, *, rounded: bool = False) -> Tensor:
        """[.., inputs] -> [.., outputs].

        `rounded`: what comes out is on its way to be a factor again, so it may stay in bfloat16 if it was rounded.
        """
        large = self._large(x)
        if large and torch.is_grad_enabled() and (_rounding.get() or onednn_is_better()):
            return _Linear.apply(x, self.weight, self.bias, rounded)  # type: ignore[no-untyped-call]
        with fast_products() if large else nullcontext():
            return F.linear(x, self.weight, self.bias)

    def rounds(self, x: Tensor) -> bool:
        """Whether x would be rounded: within `rounded_products`, if this is a large product and for gradients."""
        return _rounding.get() and torch.is_grad_enabled() and self._large(x)

    def _large(self, x: Tensor) -> bool:
        return _plain_cpu(self.weight) and x.numel() * self.out_features >= LARGE


class _Linear(torch.autograd.Function):
    """y = x W^T + b; dx = dy W, dW = dy^T x, db = sum dy; the three products are of factors."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, rounded: bool) -> Tensor:
        ctx.dtypes = x.dtype, weight.dtype
        flat, w = factor(x.reshape(-1, x.size(-1))), factor(weight)
        ctx.save_for_backward(flat, w)
        with fast_products():
            y = torch.mm(flat, w.t()) if bias is None else torch.addmm(factor(bias), flat, w.t())
        return (y if rounded else y.to(weight.dtype)).view(*x.shape[:-1], -1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        x_dtype, dtype = ctx.dtypes
        flat = dy.reshape(-1, dy.size(-1))
        dy_factor = flat.to(x.dtype)
        with fast_products():
            dx = torch.mm(dy_factor, weight).to(x_dtype) if ctx.needs_input_grad[0] else None
            dw = torch.mm(dy_factor.t(), x).to(dtype) if ctx.needs_input_grad[1] else None
        db = flat.sum(0).to(dtype) if ctx.needs_input_grad[2] else None
        return None if dx is None else dx.view(*dy.shape[:-1], -1), dw, db, None


@contextmanager
def rounded_products(wanted: bool = True) -> Iterator[None]:
    """Within it, if wanted, large products on a CPU that gradients are made for are of factors in bfloat16."""
    if wanted:
        _keep_few_prepared()
    before = _rounding.set(wanted)
    try:
        yield
    finally:
        _rounding.reset(before)


def factor(x: Tensor) -> Tensor:
    """Return x as it is to be a factor of a large product: within `rounded_products` in bfloat16, else as it is."""
    return x.bfloat16() if _rounding.get() else x


def bfloat16_is_quick(device: torch.device) -> bool:
    """Whether products of bfloat16 are faster than those of float32 there: on most GPUs, and on some processors."""
    if device.type == "cpu":
        return torch.backends.mkldnn.is_available() and bfloat16()
    return device.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)


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
    _keep_few_prepared()
    drawn = torch.Generator().manual_seed(1)
    a, b = (torch.randn(512, 512, generator=drawn) for _ in range(2))
    return bool((_with_onednn(a, b) - a.double() @ b.double()).abs().max() < 1e-3)  # bfloat16 would be off by about 0.3


def _keep_few_prepared() -> None:
    for name in ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY"):  # its own, and that of PyTorch's layer on it
        os.environ.setdefault(name, str(KEPT))


def _with_onednn(a: Tensor, b: Tensor) -> Tensor:
    with _onednn():
        return a @ b


def _plain_cpu(weight: Tensor) -> bool:
    return weight.device.type == "cpu" and weight.dtype == torch.float32 and not torch.is_autocast_enabled("cpu")
