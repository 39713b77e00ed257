"""Matrices of 8-bit integers with a scale for each row, and training with them.

    s_i = 127 / max_j |W_ij|,    Q_ij = round(s_i W_ij),    W'_ij = Q_ij / s_i

This is CTranslate2's conversion to int8. In quantization-aware training (Jacob et al. 2018, arXiv 1712.05877, section
3), the forward and the backward pass use W', and its gradient updates W, as if W' were W: dL/dW = dL/dW' (the
straight-through estimator, Bengio et al. 2013, arXiv 1308.3432, section 2). Biases and norms are not quantized.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

LEVELS = 127.0
"""The largest of the integers."""


def row_scales(weight: Tensor) -> Tensor:
    """Return the scales s [rows, 1] for W [rows, columns]."""
    # The bound keeps the scale of a row of zeros, or of tiny numbers, finite.
    largest = weight.abs().amax(1, keepdim=True).clamp(min=LEVELS / torch.finfo(weight.dtype).max)
    # A number divided by a tensor would become a product with its reciprocal, which rounds twice.
    return torch.full_like(largest, LEVELS) / largest


def quantized(weight: Tensor) -> Tensor:
    """Return W' for W [rows, columns]."""
    scale = row_scales(weight)
    return (weight * scale).round() / scale


def matrices(model: nn.Module) -> list[nn.Parameter]:
    """Return the matrices of all linear layers and embeddings, each once, as CTranslate2 quantizes them."""
    by_identity: dict[int, nn.Parameter] = {}
    for module in model.modules():
        if isinstance(module, nn.Linear | nn.Embedding):
            weight = module.get_parameter("weight")
            by_identity[id(weight)] = weight
    return list(by_identity.values())


@contextmanager
def quantized_weights(model: nn.Module) -> Iterator[None]:
    """Let a model compute with W'; at the end, W is restored and has the gradient of W'."""
    weights = matrices(model)
    originals = [weight.data for weight in weights]
    try:
        with torch.no_grad():
            for weight in weights:
                weight.data = quantized(weight)
        yield
    finally:
        for weight, original in zip(weights, originals, strict=True):
            weight.data = original
