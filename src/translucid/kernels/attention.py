"""Scaled dot-product attention without its weights: the choice of a kernel.

    P = softmax(s Q K^T),  C = P V,  s = 1 / sqrt(d)

PyTorch's fused kernel computes C tile by tile, with a running maximum and sum for each row, and never has all of P in
memory (Dao et al. 2022, arXiv 2205.14135). It runs everywhere except for short memories on a CPU: there it is slower
than batched products of all heads, above all in bfloat16, from which it gains nothing. These keep P for the backward
pass:

    dV = P^T dC,   dP = dC V^T,   dS = P * (dP - rows' sums of P * dP),   dQ = s dS K,   dK = s dS^T Q

The third is the derivative of softmax, dp_i / ds_j = p_i (1[i = j] - p_j), applied to dP. Where the mask hides a
position, p is 0 and so is dS, so the mask needs no derivative. P and dS are rounded to the dtype of Q, as within
`torch.autocast`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from translucid.kernels.dispatch import uses_reference
from translucid.kernels.packing import Sentences
from translucid.kernels.rounding import rounding

LONGEST = {torch.bfloat16: 128, torch.float32: 28}
"""The longest memory for which `_Products` is faster. In bfloat16, 4,096 queries in 4 heads have 4 MB of weights."""


@dataclass(frozen=True)
class SharedMask:
    """A mask in all forms that the kernels need, computed once per batch and shared by all layers."""

    allowed: Tensor
    """boolean [.., n_q, n_k], True where a query may look."""
    kernel_mask: Tensor
    """The mask for PyTorch's kernel. Kernels disagree on queries that may look at no key, so these may look at all keys
    here. Boolean on a CPU; elsewhere the numbers to add to the scores, 0 or -inf, in the dtype of products, because
    the kernel would otherwise convert the mask in each layer."""
    empty_rows: Tensor | None
    """boolean [.., n_q, 1], True for queries that may look at no key, whose context is 0; None if there are none."""
    all_allowed: bool
    """Whether all queries may look at all keys; False on a GPU, where the host would have to wait for the answer."""


def share_mask(allowed: Tensor) -> SharedMask:
    """Return a mask [.., n_q, n_k] in all forms that the kernels need.

    The function reads no value from a GPU, because the host would wait for it, and none while a graph is compiled.
    """
    host_reads = allowed.device.type == "cpu" and not torch.compiler.is_compiling()
    if host_reads and allowed.all():
        return SharedMask(allowed, allowed, None, all_allowed=True)
    has_keys = allowed.any(-1, keepdim=True)
    if host_reads and has_keys.all():
        return SharedMask(allowed, allowed, None, all_allowed=False)
    empty_rows = ~has_keys
    kernel_mask, device = allowed | empty_rows, allowed.device.type
    if device != "cpu":
        kernel_mask = torch.where(kernel_mask, 0.0, -torch.inf)
        if torch.is_autocast_enabled(device):
            kernel_mask = kernel_mask.to(torch.get_autocast_dtype(device))
    return SharedMask(allowed, kernel_mask, empty_rows, all_allowed=False)


@dataclass(frozen=True)
class PackedMask:
    """The mask of a packed batch: a query may look at the keys of its own sentence."""

    queries: Sentences
    """The sentences of the n_q queries."""
    keys: Sentences
    """The sentences of the n_k keys, as many."""

    @property
    def allowed(self) -> Tensor:
        """boolean [1, 1, n_q, n_k], True where a query may look: the whole mask, for the equation."""
        return (self.queries.number[:, None] == self.keys.number)[None, None]


Mask: TypeAlias = SharedMask | PackedMask
"""The mask of a padded or of a packed batch."""


def mask_of_keys(visible: Tensor, queries: Sentences | None = None, keys: Sentences | None = None) -> Mask:
    """Return the mask of queries that may look at the `visible` keys [B, n_k] of their row.

    In a packed batch, they may look at all keys of their sentence; padding is in sentences of its own.
    """
    if queries is None or keys is None:
        return share_mask(visible[:, None, None])  # [B, 1, 1, n_k]
    return PackedMask(queries, keys)


Equation: TypeAlias = Callable[[Tensor, Tensor, Tensor, Tensor | None], tuple[Tensor, Tensor]]
"""From queries, keys, values and a mask to contexts and weights."""


def context_of(
    equation: Equation,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | Mask | None = None,
    *,
    causal: bool = False,
) -> Tensor:
    """Return the context of an equation [.., n_q, d_v], from a kernel if it is the one above; arguments as below.

    Kernels do not compute what someone has edited, so then the equation itself runs.
    """
    if is_scaled_dot_product(equation):
        context = fast_attention(query, key, value, mask, causal=causal)
        if context is not None:
            return context
    context, _ = equation(query, key, value, whole_mask(mask, query, causal))
    return context


def fast_attention(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | Mask | None = None, *, causal: bool = False
) -> Tensor | None:
    """Return C [.., n_q, d_v] of Q [.., n_q, d], K [.., n_k, d] and V [.., n_k, d_v]; None in the reference mode.

    `mask` [.., n_q, n_k] is True where a query may look. `causal` lets query i look at the keys 0..i, where n_q = n_k.
    Both may be given. The context of a query that may look at no key is 0.
    """
    if uses_reference("attention"):
        return None
    if isinstance(mask, PackedMask):
        return _packed(query, key, value, mask, causal)
    products = _products_are_faster(query, key, value)
    # PyTorch's kernel takes a mask or `is_causal`, not both; our products take a mask only.
    if causal and (products or mask is not None):
        mask, causal = whole_mask(mask, query, causal=True), False
    if isinstance(mask, Tensor):
        mask = share_mask(mask)
    if products:
        return _Products.apply(query, key, value, mask)  # type: ignore[no-untyped-call]
    return _fused(query, key, value, mask, causal)


def is_scaled_dot_product(equation: Equation) -> bool:
    """Whether a function computes the equation above: True for `attention.attend` unless someone has edited it.

    The answer comes from one comparison on a small sample, which is cached. While a graph is traced, no sample can be
    computed, so the answer is True.
    """
    if torch.compiler.is_compiling() or torch._C._get_tracing_state() is not None or uses_reference("attention"):
        return True
    return _same_on_a_sample(equation)


@cache
def _same_on_a_sample(equation: Equation) -> bool:
    # Fixed numbers, since a random draw here would change the random state of the caller.
    query, key, value = (torch.arange(24.0).view(1, 4, 6).mul(step).sin() for step in (0.7, 1.9, 2.3))
    mask = torch.tensor([True, True, True, False]).expand(1, 4, 4)
    with torch.no_grad(), torch.autocast("cpu", enabled=False):
        context, _ = equation(query, key, value, mask)
        return bool(torch.allclose(context, F.scaled_dot_product_attention(query, key, value, mask), atol=1e-4))


def _products_are_faster(query: Tensor, key: Tensor, value: Tensor) -> bool:
    """Whether `_Products` is faster than PyTorch's kernel for these inputs."""
    return (
        query.device.type == "cpu"
        and not torch.compiler.is_compiling()
        and key.size(-2) <= LONGEST.get(query.dtype, 0)
        and query.dim() > 2
        and query.shape[:-2] == key.shape[:-2] == value.shape[:-2]  # the batched products do not broadcast
        and torch.is_grad_enabled()  # without gradients PyTorch's kernel stores nothing and is faster
        and not torch.is_autocast_enabled("cpu")
    )


def whole_mask(mask: Tensor | Mask | None, query: Tensor, causal: bool) -> Tensor | None:
    """Combine the mask and, if `causal`, the causal mask of queries [.., T, d] in one tensor; None if there is none."""
    allowed = mask if mask is None or isinstance(mask, Tensor) else mask.allowed
    if not causal:
        return allowed
    length = query.size(-2)
    causal_mask = torch.ones(length, length, dtype=torch.bool, device=query.device).tril()
    return causal_mask if allowed is None else allowed & causal_mask


def _fused(query: Tensor, key: Tensor, value: Tensor, mask: SharedMask | None, causal: bool) -> Tensor:
    """Return C from PyTorch's kernel."""
    if rounding() and query.dtype == torch.bfloat16:  # on a CPU, where this kernel is faster in float32
        return _fused(query.float(), key.float(), value.float(), mask, causal).bfloat16()
    kernel_mask = None if mask is None else mask.kernel_mask
    if kernel_mask is not None and kernel_mask.is_floating_point():
        kernel_mask = kernel_mask.to(query.dtype)
    with without_cudnn(query.device):
        context = F.scaled_dot_product_attention(query, key, value, attn_mask=kernel_mask, is_causal=causal)
    if mask is None or mask.empty_rows is None:
        return context
    return context.masked_fill(mask.empty_rows, 0)


VARLEN = torch.bfloat16, torch.float16
"""The types of numbers that `varlen_attn` takes."""


def _packed(query: Tensor, key: Tensor, value: Tensor, mask: PackedMask, causal: bool) -> Tensor:
    """Return C of a packed batch, with the tensors [1, H, N, d].

    PyTorch has a kernel for packed batches, FlashAttention on CUDA GPUs in half precision, for heads whose width is a
    multiple of 8 up to 256. Otherwise, the batch is padded for the products of queries, keys and values.
    """
    queries, keys = mask.queries, mask.keys
    rows = [x.transpose(1, 2) for x in (query, key, value)]  # [1, N, H, d]
    if query.device.type == "cuda" and query.dtype in VARLEN and query.size(-1) in range(8, 257, 8):
        from torch.nn.attention.varlen import varlen_attn  # imported here because it takes a second

        q, k, v = (row[0] for row in rows)  # [N, H, d]
        window = (-1, 0) if causal else (-1, -1)
        context = varlen_attn(q, k, v, queries.offsets, keys.offsets, queries.longest, keys.longest, window_size=window)
        assert isinstance(context, Tensor)
        return context.transpose(0, 1)[None]
    sides = (queries, keys, keys)
    q, k, v = (side.padded(row).transpose(1, 2) for side, row in zip(sides, rows, strict=True))  # [B, H, T, d]
    # A causal query sees no cell after its sentence, as cells without a token are on the right.
    allowed = None if causal else keys.padded(torch.ones_like(keys.number, dtype=torch.bool)[None])[:, None, None]
    padded_context = fast_attention(q, k, v, allowed, causal=causal)
    assert padded_context is not None
    return queries.packed(padded_context.transpose(1, 2)).transpose(1, 2)


@contextmanager
def without_cudnn(device: torch.device) -> Iterator[None]:
    """Exclude cuDNN's attention kernel on a GPU.

    PyTorch prefers that kernel on Hopper. But cuDNN plans anew for every new shape, and two batches of text rarely have
    the same shape: training the preset `tiny` in bfloat16 took 9 times as long with it on an H200.
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
    """C by batched products of all heads, with the backward pass above."""

    @staticmethod
    def forward(ctx: Any, query: Tensor, key: Tensor, value: Tensor, mask: SharedMask | None) -> Tensor:
        q, k, v = (x.flatten(0, -3) for x in (query, key, value))
        ctx.scale = 1 / math.sqrt(q.size(-1))
        scores = _product(q, k.mT, ctx.scale).view(*query.shape[:-1], -1)
        if mask is None or mask.all_allowed:
            weights = scores.softmax(-1)
        else:
            masked = ~mask.allowed
            weights = scores.masked_fill_(masked, torch.finfo(scores.dtype).min).softmax(-1)
            if mask.empty_rows is not None:  # the softmax of a fully masked row is uniform, so set it to zero
                weights.masked_fill_(masked, 0)
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
        batch_shape = d_context.shape[:-2]
        return dq.unflatten(0, batch_shape), dk.unflatten(0, batch_shape), dv.unflatten(0, batch_shape), None


def _product(a: Tensor, b: Tensor, scale: float) -> Tensor:
    """Return scale * a b for batches of matrices; the result is rounded once, after scaling."""
    return torch.baddbmm(a.new_empty(()), a, b, beta=0, alpha=scale)
