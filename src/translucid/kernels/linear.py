"""Linear layers on a CPU: the faster library computes large products, in training from rounded factors.

    y = x W^T + b,    dx = dy W,    dW = dy^T x,    db = sum of dy over all rows

`nn.Linear` computes the same four. Here, the faster library (`kernels/onednn.py`) computes the three products and,
within `rounded_products`, their factors are rounded to bfloat16 (`kernels/rounding.py`). W and x are rounded once in
the forward pass and stored rounded for the backward pass, which halves the memory for x. If y is a factor of another
product (`feeds_product`), that product would round it anyway, so y stays in bfloat16. The operations between the two
products, such as ReLU or the split into heads, return the same numbers in either type.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from translucid.kernels.dispatch import uses_reference
from translucid.kernels.onednn import fast_products, onednn_is_better
from translucid.kernels.rounding import rounding

LARGE = 2_000_000
"""Multiplications from which oneDNN is faster and rounding pays off; for smaller products its set-up takes too long."""


class Linear(nn.Linear):
    """x W^T + b: `nn.Linear` with faster products on a CPU."""

    def __init__(
        self, inputs: int, outputs: int, bias: bool = True, device: str | None = None, *, feeds_product: bool = False
    ) -> None:
        """Build the layer as `nn.Linear` does; `nn.utils.skip_init` sets the device.

        `feeds_product`: whether the output is a factor of another product, so that it may stay in bfloat16.
        """
        super().__init__(inputs, outputs, bias, device)
        self.feeds_product = feeds_product

    def forward(self, x: Tensor) -> Tensor:
        """Map x [.., inputs] to [.., outputs], in the dtype of the weights except with `feeds_product`."""
        weight, bias = self.weight, self.bias
        if not _float32_on_cpu(weight):
            return F.linear(x, weight, bias)
        large = not uses_reference("linear") and x.numel() * self.out_features >= LARGE
        if large and torch.is_grad_enabled() and (rounding() or onednn_is_better()):
            return _Linear.apply(x, weight, bias, self.feeds_product)  # type: ignore[no-untyped-call]
        if x.dtype != weight.dtype:  # a large layer before this one may have returned bfloat16
            x = x.to(weight.dtype)
        with fast_products() if large else nullcontext():
            return F.linear(x, weight, bias)


class _Linear(torch.autograd.Function):
    """The four equations above."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, feeds_product: bool) -> Tensor:
        ctx.dtypes = x.dtype, weight.dtype
        dtype = torch.bfloat16 if rounding() else weight.dtype
        flat, w = x.reshape(-1, x.size(-1)).to(dtype), weight.to(dtype)
        ctx.save_for_backward(flat, w)
        with fast_products():
            y = torch.mm(flat, w.t()) if bias is None else torch.addmm(bias.to(dtype), flat, w.t())
        return (y if feeds_product else y.to(weight.dtype)).view(*x.shape[:-1], -1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        x_dtype, dtype = ctx.dtypes
        flat = dy.reshape(-1, dy.size(-1))
        dy_factor = flat.to(x.dtype)
        dx = dw = db = None
        # Frozen weights, and inputs that no weight has computed, need no gradient.
        with fast_products():
            if ctx.needs_input_grad[0]:
                dx = torch.mm(dy_factor, weight).to(x_dtype).view(*dy.shape[:-1], -1)
            if ctx.needs_input_grad[1]:
                dw = torch.mm(dy_factor.t(), x).to(dtype)
        if ctx.needs_input_grad[2]:
            db = flat.sum(0).to(dtype)  # of the unrounded dy
        return dx, dw, db, None


def _float32_on_cpu(weight: Tensor) -> bool:
    return weight.device.type == "cpu" and weight.dtype == torch.float32 and not torch.is_autocast_enabled("cpu")
