"""Attention as differentiable memory: scores, then weights, then context.

The exact path, `attend`, is the equation and returns the weights. The fused path, `attend_fused`, gives the same
context from a kernel (`translucid.kernels.attention`) and no weights; it is what runs whenever nobody asks to see them.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from translucid.attention.masks import whole_mask
from translucid.kernels.attention import SharedMask, fast_attention, is_scaled_dot_product


def scaled_dot_product(query: Tensor, key: Tensor, scale: float | Tensor | None = None) -> Tensor:
    """Return scores Q K^T * scale [.., n_q, n_k] of queries [.., n_q, d_k] and keys [.., n_k, d_k].

    Without a scale it is 1 / sqrt(d_k) (Vaswani et al. 2017, arXiv 1706.03762, section 3.2.1).
    """
    if scale is None:
        scale = 1 / math.sqrt(query.size(-1))
    return (query * scale) @ key.transpose(-2, -1)


def masked_softmax(scores: Tensor, mask: Tensor | None = None) -> Tensor:
    """Return the weights [.., n_q, n_k] of scores: each row sums to 1, and is exactly 0 where the mask is False.

    A row that may look nowhere is all zeros, never NaN, and passes no gradient.
    """
    if mask is None:
        return scores.softmax(-1)
    # The lowest finite number instead of -inf: a row of nothing but -inf would be NaN, forwards and backwards.
    hidden = ~mask
    weights = scores.masked_fill(hidden, torch.finfo(scores.dtype).min).softmax(-1)
    return weights.masked_fill(hidden, 0)


def attend(
    query: Tensor,
    key: Tensor,
    value: Tensor | None = None,
    mask: Tensor | None = None,
    score: Callable[[Tensor, Tensor], Tensor] = scaled_dot_product,
    focus: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Attention(Q, K, V) = softmax(score(Q, K)) V, the exact path; one function for every model of this package.

    With the scaled dot product it is equation 1 of Vaswani et al. 2017 (arXiv 1706.03762); with the scores of
    `translucid.attention.scores` it is Bahdanau's and Luong's attention.

    Args:
        query: [.., n_q, d_k].
        key: [.., n_k, d_k].
        value: [.., n_k, d_v]; the keys themselves if not given.
        mask: boolean, broadcastable to [.., n_q, n_k], True = may look.
        score: from queries and keys to scores [.., n_q, n_k].
        focus: what the weights are multiplied by in the end, broadcastable to [.., n_q, n_k], if anything: they then
            no longer sum to 1 (Luong's local attention).

    Returns:
        The context [.., n_q, d_v] and the weights [.., n_q, n_k].
    """
    weights = masked_softmax(score(query, key), mask)
    if focus is not None:
        weights = weights * focus
    return weights @ (key if value is None else value), weights


def attend_fused(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | SharedMask | None = None, *, causal: bool = False
) -> Tensor:
    """Return the context of `attend` [.., n_q, d_v] without the weights, from the kernel that is fastest here.

    `causal` stands for `causal_mask(n_q)`, for n_q = n_k, and lets a kernel skip the future altogether; with a mask,
    both hold. If `attend` has been edited, no kernel computes it, and it is what runs.
    """
    context = fast_attention(query, key, value, mask, causal=causal) if is_scaled_dot_product(attend) else None
    if context is None:
        context, _ = attend(query, key, value, whole_mask(mask, query, causal))
    return context
