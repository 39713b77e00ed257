"""Attention as differentiable memory: scores, then weights, then context.

The exact path, `attend`, is the equation and returns the weights. The fused path, `attend_fused`, computes the same
context with a kernel (`translucid.kernels.attention`) and returns no weights. Models use it unless the caller asks for
weights.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from translucid.kernels.attention import Mask, context_of


def scaled_dot_product(query: Tensor, key: Tensor, scale: float | Tensor | None = None) -> Tensor:
    """Return scores Q K^T * scale [.., n_q, n_k] of queries [.., n_q, d_k] and keys [.., n_k, d_k].

    The default scale is 1 / sqrt(d_k) (Vaswani et al. 2017, arXiv 1706.03762, section 3.2.1).
    """
    if scale is None:
        scale = 1 / math.sqrt(query.size(-1))
    return (query * scale) @ key.transpose(-2, -1)


def masked_softmax(scores: Tensor, mask: Tensor | None = None) -> Tensor:
    """Return the weights [.., n_q, n_k] for scores: each row sums to 1, and is exactly 0 where the mask is False.

    A row whose mask is False everywhere is all zeros, never NaN, and passes no gradient.
    """
    if mask is None:
        return scores.softmax(-1)
    # The lowest finite number instead of -inf: a row that contains only -inf would be NaN, forwards and backwards.
    hidden = ~mask
    weights = scores.masked_fill(hidden, torch.finfo(scores.dtype).min).softmax(-1)
    # A fully masked row is uniform now, so set it to zero.
    return weights.masked_fill(hidden, 0)


def attend(
    query: Tensor,
    key: Tensor,
    value: Tensor | None = None,
    mask: Tensor | None = None,
    score: Callable[[Tensor, Tensor], Tensor] = scaled_dot_product,
    focus: Tensor | None = None,
    replacement: Callable[[Tensor], Tensor] | None = None,
) -> tuple[Tensor, Tensor]:
    """Attention(Q, K, V) = softmax(score(Q, K)) V: the exact path, one function for every model of this package.

    With the scaled dot product, this is equation 1 of Vaswani et al. 2017 (arXiv 1706.03762). With the scores of
    `translucid.attention.scores`, it is Bahdanau's and Luong's attention.

    Args:
        query: queries [.., n_q, d_k].
        key: keys [.., n_k, d_k].
        value: values [.., n_k, d_v]; the keys by default.
        mask: boolean, broadcastable to [.., n_q, n_k], True = may attend.
        score: a function from queries and keys to scores [.., n_q, n_k].
        focus: factors for the weights, broadcastable to [.., n_q, n_k]. The products need not sum to 1. Luong's local
            attention uses this.
        replacement: a function that reads or replaces the weights before they are used.

    Returns:
        The context [.., n_q, d_v] and the weights [.., n_q, n_k].
    """
    if value is None:
        value = key
    weights = masked_softmax(score(query, key), mask)
    if focus is not None:
        weights = weights * focus
    if replacement is not None:
        weights = replacement(weights)
    return weights @ value, weights


def attend_fused(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | Mask | None = None, *, causal: bool = False
) -> Tensor:
    """Return the context of `attend` [.., n_q, d_v] without the weights, from the fastest kernel for this machine.

    `causal=True` stands for `causal_mask(n_q)`, where n_q = n_k, and lets a kernel skip the future. Both masks apply
    if `mask` is given too.
    """
    return context_of(attend, query, key, value, mask, causal=causal)
