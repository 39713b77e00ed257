"""Additive scores without a tanh per pair, and without storing the hidden values.

    e_qk = v^T tanh(q + k)

has D hidden values for each pair of a query and a key. The tanh of them and the memory for them take most of the time
of such a model. With a = exp(-2 k) and b = exp(-2 q), which depend on keys or queries alone,

    tanh(q + k) = 2 / (1 + a b) - 1,    so    e_qk = 2 v^T r - sum_d v_d,    r = 1 / (1 + a b)

takes a product and a division per hidden value. With the gradient de of e,

    dk = 4 v sum_q de (r - r^2),    dq = 4 v sum_k de (r - r^2),    dv = sum_qk de (2 r - 1)

The backward pass computes r again, a few rows at a time, in a block of memory that fits in the processor's cache.
"""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from translucid.kernels.dispatch import uses_reference

BLOCK = 1 << 18
"""The number of hidden values in memory at a time: 1 MiB of float32."""
BOUND = 20.0
"""Keys and queries are clamped to this range: exp(4 * 20) is finite in float32, and tanh is 1 there from 9 on."""


def additive_over(key: Tensor, v: Tensor) -> Callable[[Tensor], Tensor] | None:
    """Return a function from queries [N, n_q, D] to scores e [N, n_q, n_k] for keys [N, n_k, D] and v [D].

    It computes a = exp(-2 k) once for all queries. None if the tensors are not float32 on a CPU with these shapes.
    """
    is_supported = key.dim() == 3 and key.device.type == "cpu" and key.dtype == v.dtype == torch.float32
    if not is_supported or uses_reference("additive"):
        return None
    a = _exponential(key.detach())

    def scores(query: Tensor) -> Tensor:
        return _Additive.apply(query.to(torch.float32), key, a, v)  # type: ignore[no-untyped-call]

    return scores


def _exponential(x: Tensor) -> Tensor:
    """Return exp(-2 x)."""
    return x.clamp(-BOUND, BOUND).mul_(-2).exp_()


class _Additive(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, query: Tensor, key: Tensor, a: Tensor, v: Tensor) -> Tensor:
        b = _exponential(query)
        ctx.save_for_backward(a, b, v)
        scores = query.new_empty(len(query), query.size(1), key.size(1))
        for rows, r in _reciprocals(a, b):
            torch.matmul(r, 2 * v, out=scores[rows])
        return scores.sub_(v.sum())

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, None, Tensor]:
        a, b, v = ctx.saved_tensors
        dq, dk, dv = torch.empty_like(b), torch.empty_like(a), torch.zeros_like(v)
        for rows, r in _reciprocals(a, b):
            de = gradient[rows].contiguous()  # [n, n_q, n_k]
            dv += de.flatten() @ r.flatten(0, 2)
            slope = torch.addcmul(r, r, r, value=-1, out=r)  # r - r^2
            torch.matmul(de[:, :, None], slope, out=dq[rows][:, :, None])
            if slope.size(1) == 1:  # one query per call, as in a recurrent decoder: no sum over queries is needed
                torch.mul(slope[:, 0], de[:, 0, :, None], out=dk[rows])
            else:
                torch.sum(slope.mul_(de[..., None]), 1, out=dk[rows])
        return dq.mul_(4 * v), dk.mul_(4 * v), None, 2 * dv - gradient.sum()


def _reciprocals(a: Tensor, b: Tensor) -> Iterator[tuple[slice, Tensor]]:
    """Yield slices of n rows with their r [n, n_q, n_k, D]; every slice overwrites the memory of the one before."""
    rows_per_block = max(1, BLOCK // max(1, a[0].numel() * b.size(1)))
    unit = a.new_ones(())
    memory = a.new_empty(min(rows_per_block, len(a)), b.size(1), *a.shape[1:])
    for start in range(0, len(a), rows_per_block):
        rows = slice(start, min(start + rows_per_block, len(a)))
        r = memory[: rows.stop - rows.start]
        yield rows, torch.addcmul(unit, b[rows, :, None], a[rows, None], out=r).reciprocal_()
