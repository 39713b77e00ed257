"""Matrices of 8-bit integers with a scale for each row, and training with them.

    s_i = 127 / max_j |W_ij|,    Q_ij = round(s_i W_ij),    W'_ij = Q_ij / s_i

This is CTranslate2's conversion to int8. In quantisation-aware training (Jacob et al. 2018, arXiv 1712.05877, section
3), the forward and the backward pass use W', and its gradient updates W, as if W' were W: dL/dW = dL/dW' (the
straight-through estimator, Bengio et al. 2013, arXiv 1308.3432, section 2). Biases and norms are not quantised.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

LEVELS = 127.0
"""The largest of the integers."""


def quantised(weight: Tensor) -> Tensor:
    """Return W' for W [rows, columns]."""
    largest = weight.abs().amax(1, keepdim=True)
    largest = largest.masked_fill(largest == 0, LEVELS)  # a row of zeros stays one
    scale = LEVELS / largest
    return (weight * scale).round() / scale


def matrices(model: nn.Module) -> list[nn.Parameter]:
    """Return the matrices of all linear layers and embeddings, each once, as CTranslate2 quantises them."""
    by_identity: dict[int, nn.Parameter] = {}
    for module in model.modules():
        if isinstance(module, nn.Linear | nn.Embedding):
            by_identity[id(module.weight)] = module.weight
    return list(by_identity.values())


@contextmanager
def quantised_weights(model: nn.Module, wanted: bool = True) -> Iterator[None]:
    """Let a model compute with W', if wanted; W is back at the end, and has the gradient of W'."""
    weights = matrices(model) if wanted else []
    originals = [weight.data for weight in weights]
    try:
        with torch.no_grad():
            for weight in weights:
                weight.data = quantised(weight)
        yield
    finally:
        for weight, original in zip(weights, originals, strict=True):
            weight.data = original
