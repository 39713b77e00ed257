"""Scaled dot-product attention without its weights: which kernel makes it.

    P = softmax(s Q K^T),  C = P V,  s = 1 / sqrt(d)

PyTorch's fused kernel makes C tile by tile, with a running maximum and sum for each row, and never has all of P in
memory (Dao et al. 2022, arXiv 2205.14135). It is taken everywhere but where products have been rounded to bfloat16 on a
CPU: of that dtype it takes no advantage there, and for short memories it is slower than the products of all heads at
once. These keep P for the way back:

    dV = P^T dC,   dP = dC V^T,   dS = P * (dP - rows' sums of P * dP),   dQ = s dS K,   dK = s dS^T Q

The third is the derivative of softmax, dp_i / ds_j = p_i (1[i = j] - p_j), applied to dP. Where the mask hides a
position, p is 0 and so is dS, so the mask needs no derivative of its own. P and what is made of it are rounded to the
dtype of Q, as within `torch.autocast`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from translucid.kernels.dispatch import is_plain
from translucid.kernels.rounding import rounding

LONGEST = 128
"""Positions of a memory up to which keeping the weights is cheap: those of 4,096 queries in 4 heads take 4 MB."""


@dataclass(frozen=True)
class SharedMask:
    """A mask that all layers use, and what the kernels need to know of it; computed once for a batch."""

    allowed: Tensor
    """boolean [.., n_q, n_k], True where a query may look."""
    filled: Tensor
    """The same for PyTorch's kernel, but a query that may look nowhere may look everywhere: kernels disagree on rows
    without any key. On a CPU boolean; elsewhere what is added to the scores, 0 or -inf, in the dtype of products,
    which the kernel would otherwise make of it in each layer."""
    nowhere: Tensor | None
    """boolean [.., n_q, 1], the queries that may look nowhere, whose context is 0; None if there are none."""
    everywhere: bool
    """Whether all queries are known to look everywhere. On a GPU it is not known: the host would have to wait."""


def share_mask(allowed: Tensor) -> SharedMask:
    """Return a mask with what the kernels need to know of it.

    A GPU is never asked whether there are such rows, and neither is a tensor while a graph is compiled.
    """
    host_reads = allowed.device.type == "cpu" and not torch.compiler.is_compiling()
    if host_reads and allowed.all():
        return SharedMask(allowed, allowed, None, everywhere=True)
    somewhere = allowed.any(-1, keepdim=True)
    if host_reads and somewhere.all():
        return SharedMask(allowed, allowed, None, everywhere=False)
    nowhere = ~somewhere
    filled, device = allowed | nowhere, allowed.device.type
    if device != "cpu":
        filled = torch.where(filled, 0.0, -torch.inf)
        if torch.is_autocast_enabled(device):
            filled = filled.to(torch.get_autocast_dtype(device))
    return SharedMask(allowed, filled, nowhere, everywhere=False)


def fast_attention(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | SharedMask | None = None, *, causal: bool = False
) -> Tensor | None:
    """Return C [.., n_q, d_v] of Q [.., n_q, d], K [.., n_k, d] and V [.., n_k, d_v]; None in the reference mode.

    `mask` [.., n_q, n_k] is True where a query may look, `causal` keeps query i from looking further than key i, for
    n_q = n_k; both may be given. The context of a query that may look nowhere is 0.
    """
    if is_plain("attention"):
        return None
    products = _products_are_faster(query, key, value)
    if causal and (products or mask is not None):
        mask, causal = with_causal(query, mask), False
    if isinstance(mask, Tensor):
        mask = share_mask(mask)
    if products:
        return _Products.apply(query, key, value, mask)  # type: ignore[no-untyped-call]
    return _fused(query, key, value, mask, causal)


def is_scaled_dot_product(attend: Callable[[Tensor, Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]) -> bool:
    """Whether a function computes the equation above, as it does unless somebody has edited it; found out once.

    While a graph is traced nothing can be tried out, and it is taken to be so.
    """
    if torch.compiler.is_compiling() or torch._C._get_tracing_state() is not None or is_plain("attention"):
        return True
    return _same_on_a_sample(attend)


@cache
def _same_on_a_sample(attend: Callable[[Tensor, Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]) -> bool:
    query, key, value = (torch.arange(24.0).view(1, 4, 6).mul(step).sin() for step in (0.7, 1.9, 2.3))
    mask = torch.tensor([True, True, True, False]).expand(1, 4, 4)
    with torch.no_grad(), torch.autocast("cpu", enabled=False):
        context, _ = attend(query, key, value, mask)
        return bool(torch.allclose(context, F.scaled_dot_product_attention(query, key, value, mask), atol=1e-4))


def _products_are_faster(query: Tensor, key: Tensor, value: Tensor) -> bool:
    return (
        query.dtype == torch.bfloat16
        and query.device.type == "cpu"
        and key.size(-2) <= LONGEST
        and query.shape[:-2] == key.shape[:-2] == value.shape[:-2]  # nothing to broadcast
        and torch.is_grad_enabled()  # without gradients nothing is kept, and PyTorch's has less to do
        and not torch.is_autocast_enabled("cpu")
    )


def with_causal(query: Tensor, mask: Tensor | SharedMask | None) -> Tensor:
    """Return a mask, if there is one, together with the causal mask of queries [.., T, d]."""
    length = query.size(-2)
    causal = torch.ones(length, length, dtype=torch.bool, device=query.device).tril()
    if mask is None:
        return causal
    return (mask.allowed if isinstance(mask, SharedMask) else mask) & causal


def _fused(query: Tensor, key: Tensor, value: Tensor, mask: SharedMask | None, causal: bool) -> Tensor:
    """PyTorch's kernel; of rounded products in float32, which on a CPU it is faster in."""
    if rounding() and query.dtype == torch.bfloat16:
        return _fused(query.float(), key.float(), value.float(), mask, causal).bfloat16()
    if mask is None:
        with without_cudnn(query.device):
            return F.scaled_dot_product_attention(query, key, value, is_causal=causal)
    with without_cudnn(query.device):
        context = F.scaled_dot_product_attention(query, key, value, attn_mask=mask.filled)
    return context if mask.nowhere is None else context.masked_fill(mask.nowhere, 0)


@contextmanager
def without_cudnn(device: torch.device) -> Iterator[None]:
    """Within it, attention on a GPU is never cuDNN's.

    PyTorch prefers that kernel on Hopper, but it is planned anew for every new shape, and batches of text hardly ever
    have a shape twice: a training of the preset `tiny` in bfloat16 took 9 times as long with it on an H200.
    """
    if torch.compiler.is_compiling() or device.type != "cuda" or not torch.backends.cuda.cudnn_sdp_enabled():
        yield
        return
    torch.backends.cuda.enable_cudnn_sdp(False)
    try:
        yield
    finally:
        torch.backends.cuda.enable_cudnn_sdp(True)


class _Products(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, query: Tensor, key: Tensor, value: Tensor, mask: SharedMask | None) -> Tensor:
        q, k, v = (x.flatten(0, -3) for x in (query, key, value))
        ctx.scale = 1 / math.sqrt(q.size(-1))
        scores = _product(q, k.mT, ctx.scale).view(*query.shape[:-1], -1)
        if mask is None or mask.everywhere:
            weights = scores.softmax(-1)
        else:
            hidden = ~mask.allowed
            weights = scores.masked_fill_(hidden, torch.finfo(scores.dtype).min).softmax(-1)
            if mask.nowhere is not None:  # a row that may look nowhere has looked everywhere now
                weights.masked_fill_(hidden, 0)
        weights = weights.flatten(0, -3)
        ctx.save_for_backward(q, k, v, weights)
        return (weights @ v).view(*query.shape[:-1], -1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_context: Tensor) -> tuple[Tensor | None, ...]:
        q, k, v, weights = ctx.saved_tensors
        dc = d_context.flatten(0, -3)
        ds = torch.ops.aten._softmax_backward_data(dc @ v.mT, weights, -1, weights.dtype)
        dq, dk, dv = _product(ds, k, ctx.scale), _product(ds.mT, q, ctx.scale), weights.mT @ dc
        before = d_context.shape[:-2]
        return dq.unflatten(0, before), dk.unflatten(0, before), dv.unflatten(0, before), None


def _product(a: Tensor, b: Tensor, scale: float) -> Tensor:
    """Return scale * a b of batches of matrices, rounded once."""
    return torch.baddbmm(a.new_empty(()), a, b, beta=0, alpha=scale)
