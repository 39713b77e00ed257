"""Linear layers on a CPU: large products by the faster library, in training of rounded factors.

    y = x W^T + b,    dx = dy W,    dW = dy^T x,    db = sum of dy over all rows

`nn.Linear` makes the same four. Here each of the three products is made by the library that is faster
(`kernels/onednn.py`) and, within `rounded_products`, of factors rounded to bfloat16 (`kernels/rounding.py`). W and x
are rounded once on the way forward and kept so for the way back, which halves what is kept of x. A y that is on its way
to be a factor again (`feeds_product`) would be rounded there, so it need not become a float32 in between: nothing that
stands between the two, such as ReLU or the reading of heads, gives other numbers for that.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from translucid.kernels.dispatch import is_plain
from translucid.kernels.onednn import fast_products, onednn_is_better
from translucid.kernels.rounding import rounding

LARGE = 2_000_000
"""Multiplications in a product from which on oneDNN is the faster one, and rounding pays; it takes longer to begin."""


class Linear(nn.Linear):
    """x W^T + b, as `nn.Linear` has it, but faster where it can be."""

    def __init__(
        self,
        inputs: int,
        outputs: int,
        bias: bool = True,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        *,
        feeds_product: bool = False,
    ) -> None:
        """What `nn.Linear` takes, and `feeds_product`: what comes out is to be a factor again.

        It may stay in bfloat16 then, where it was rounded.
        """
        super().__init__(inputs, outputs, bias, device, dtype)
        self.feeds_product = feeds_product

    def forward(self, x: Tensor) -> Tensor:
        """[.., inputs] -> [.., outputs], in the dtype of the weights but for `feeds_product`."""
        weight, bias = self.weight, self.bias
        if not _float32_on_cpu(weight):
            return F.linear(x, weight, bias)
        large = not is_plain("linear") and x.numel() * self.out_features >= LARGE
        if large and torch.is_grad_enabled() and (rounding() or onednn_is_better()):
            return _Linear.apply(x, weight, bias, self.feeds_product)  # type: ignore[no-untyped-call]
        if x.dtype != weight.dtype:  # the layer before may have been large
            x = x.to(weight.dtype)
        with fast_products() if large else nullcontext():
            return F.linear(x, weight, bias)


class _Linear(torch.autograd.Function):
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
        with fast_products():
            dx = torch.mm(dy_factor, weight).to(x_dtype) if ctx.needs_input_grad[0] else None
            dw = torch.mm(dy_factor.t(), x).to(dtype) if ctx.needs_input_grad[1] else None
        db = flat.sum(0).to(dtype) if ctx.needs_input_grad[2] else None
        return None if dx is None else dx.view(*dy.shape[:-1], -1), dw, db, None


def _float32_on_cpu(weight: Tensor) -> bool:
    return weight.device.type == "cpu" and weight.dtype == torch.float32 and not torch.is_autocast_enabled("cpu")
