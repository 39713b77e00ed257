"""Attention in training on a CPU that multiplies bfloat16 quickly: the equation of `attend`, of rounded factors.

PyTorch's fused kernel takes no advantage of such processors, and for short sentences it is slower than products of the
matrices of all heads at once. These keep the weights for the way back, so they are for short memories only.
"""

import math
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from translucid.attention.attend import masked_softmax

LONGEST = 128
"""Positions of a memory up to which keeping the weights is cheap: those of 4,096 queries in 4 heads take 4 MB."""


def attend_rounded(query: Tensor, key_value: Tensor, heads: int, mask: Tensor | None) -> Tensor:
    """Return the context [B, T, D] of queries [B, T, D] and keys and values side by side [B, S, 2 D], in their dtype.

    The scores are divided by sqrt(D / heads); the mask is broadcastable to [B, heads, T, S]. Scores and weights are
    rounded to that dtype, as within `torch.autocast`.
    """
    return _Rounded.apply(query, key_value, heads, mask)  # type: ignore[no-untyped-call]


class _Rounded(torch.autograd.Function):
    """P = softmax(s Q K^T), C = P V; dV = P^T dC, dS = P (dP - sum P dP), dP = dC V^T, dQ = s dS K, dK = s dS^T Q."""

    @staticmethod
    def forward(ctx: Any, query: Tensor, key_value: Tensor, heads: int, mask: Tensor | None) -> Tensor:
        (q,), (k, v) = _split(query, 1, heads), _split(key_value, 2, heads)
        ctx.scale = 1 / math.sqrt(q.size(-1))
        scores = _product(q, k.mT, ctx.scale).unflatten(0, (-1, heads))
        weights = masked_softmax(scores, None if mask is None or mask.all() else mask).flatten(0, 1)
        ctx.save_for_backward(q, k, v, weights)
        ctx.heads = heads
        return _merge([weights @ v], heads)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_context: Tensor) -> tuple[Tensor | None, ...]:
        q, k, v, weights = ctx.saved_tensors
        (dc,) = _split(d_context, 1, ctx.heads)
        ds = torch.ops.aten._softmax_backward_data(dc @ v.mT, weights, -1, weights.dtype)
        dq, dk, dv = _product(ds, k, ctx.scale), _product(ds.mT, q, ctx.scale), weights.mT @ dc
        return _merge([dq], ctx.heads), _merge([dk, dv], ctx.heads), None, None


def _product(a: Tensor, b: Tensor, scale: float) -> Tensor:
    """Return scale * a b of batches of matrices, rounded once."""
    return torch.baddbmm(a.new_empty(()), a, b, beta=0, alpha=scale)


def _split(x: Tensor, parts: int, heads: int) -> tuple[Tensor, ...]:
    """[B, T, parts * D] -> of each part [B * heads, T, d]."""
    return x.unflatten(-1, (parts, heads, -1)).permute(2, 0, 3, 1, 4).flatten(1, 2).unbind(0)


def _merge(parts: list[Tensor], heads: int) -> Tensor:
    """The other way round."""
    return torch.stack([part.unflatten(0, (-1, heads)).transpose(1, 2) for part in parts], dim=2).flatten(2)
