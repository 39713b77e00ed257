"""Additive scores without a tanh for each pair, and without keeping what is in between.

    e_qk = v^T tanh(q + k)

has D hidden values for each pair of a query and a key, and both a tanh and the memory for it are what such a model
spends most of its time on. With a = exp(-2 k) and b = exp(-2 q), which are of keys and queries alone,

    tanh(q + k) = 2 / (1 + a b) - 1,    so    e_qk = 2 v^T r - sum_d v_d,    r = 1 / (1 + a b)

takes a product and a division for each hidden value. With de the gradient of e,

    dk = 4 v sum_q de (r - r^2),    dq = 4 v sum_k de (r - r^2),    dv = sum_qk de (2 r - 1)

and r is computed again, a few rows at a time, in a block of memory that stays in the processor's cache. Keys and
queries beyond +-20 count as that: tanh is 1 in float32 from 9 on, and the exponentials have to stay finite.
"""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from translucid.kernels.dispatch import is_plain

BLOCK = 1 << 18
"""Hidden values that are held at a time."""
BOUND = 20.0


def additive_over(key: Tensor, v: Tensor) -> Callable[[Tensor], Tensor] | None:
    """Return what gives e [N, n_q, n_k] of queries [N, n_q, D], for keys [N, n_k, D] and v [D]; None if it can't.

    What is of the keys alone is computed once for all queries to come.
    """
    suits = key.dim() == 3 and key.device.type == "cpu" and key.dtype == v.dtype == torch.float32
    if not suits or is_plain("additive"):
        return None
    a = _exponential(key.detach())

    def scores(query: Tensor) -> Tensor:
        found: Tensor = _Additive.apply(query.to(torch.float32), key, a, v)  # type: ignore[no-untyped-call]
        return found

    return scores


def _exponential(x: Tensor) -> Tensor:
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
            if slope.size(1) == 1:
                torch.mul(slope[:, 0], de[:, 0, :, None], out=dk[rows])
            else:
                torch.sum(slope.mul_(de[..., None]), 1, out=dk[rows])
        return dq.mul_(4 * v), dk.mul_(4 * v), None, 2 * dv - gradient.sum()


def _reciprocals(a: Tensor, b: Tensor) -> Iterator[tuple[slice, Tensor]]:
    """Yield r [n, n_q, n_k, D] of a few rows at a time, each in the same memory, and which rows they are."""
    together = max(1, BLOCK // max(1, a[0].numel() * b.size(1)))
    one = a.new_ones(())
    memory = a.new_empty(min(together, len(a)), b.size(1), *a.shape[1:])
    for start in range(0, len(a), together):
        rows = slice(start, min(start + together, len(a)))
        r = memory[: rows.stop - rows.start]
        yield rows, torch.addcmul(one, b[rows, :, None], a[rows, None], out=r).reciprocal_()
