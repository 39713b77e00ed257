"""Muon (Jordan et al. 2024): momentum whose directions are made orthogonal, for the matrices within the layers."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

MOMENTUM = 0.95
COEFFICIENTS = 3.4445, -4.775, 2.0315
"""The coefficients of x, x^3 and x^5: five rounds map every singular value in 0.002 .. 1 to 0.68 .. 1.21."""
ROUNDS = 5


class Muon(torch.optim.Optimizer):
    """W -= rate * 0.2 sqrt(max(rows, columns)) * orthogonal(G + momentum), with Nesterov's momentum.

    The factor gives the updates the length of Adam's (Liu et al. 2025, arXiv 2502.16982, section 2.2), so that one
    learning rate suits both. `torch.optim.Muon` computes the same, but always in bfloat16 and one matrix at a time. On
    a CPU without instructions for bfloat16, a step of the preset `tiny` takes one second with it, and 0.05 s here in
    float32; on a CPU with them, 0.057 s and 0.025 s, because matrices of the same shape are batched
    (docs/benchmarks.md).
    """

    def __init__(self, matrices: Iterable[Tensor] | Iterable[dict[str, Any]], lr: float, *, bfloat16: bool) -> None:
        """Optimise matrices, or groups of them, with the learning rate `lr`.

        `bfloat16`: whether to orthogonalise in bfloat16 instead of float32.
        """
        super().__init__(matrices, {"lr": lr})
        self.dtype = torch.bfloat16 if bfloat16 else torch.float32

    @torch.no_grad()
    def step(self, finite: Tensor | None = None) -> None:  # type: ignore[override]
        """Update the weights; if `finite` [] is given and False, weights and momenta stay unchanged."""
        for group in self.param_groups:
            matrices = [matrix for matrix in group["params"] if matrix.grad is not None]
            if not matrices:
                continue
            gradients = [matrix.grad for matrix in matrices]
            momenta = list(map(self._momentum, matrices))
            if finite is not None:
                # Interpolating a momentum with itself leaves it unchanged, without a decision on the host.
                pairs = zip(gradients, momenta, strict=True)
                gradients = [torch.where(finite, gradient, momentum) for gradient, momentum in pairs]
            torch._foreach_lerp_(momenta, gradients, 1 - MOMENTUM)
            by_shape = defaultdict(list)
            for matrix, direction in zip(matrices, torch._foreach_lerp(gradients, momenta, MOMENTUM), strict=True):
                # A convolution's kernel [out, in, height, width] becomes a matrix [out, in * height * width].
                weight, direction = matrix.flatten(1), direction.flatten(1)
                if weight.size(0) > weight.size(1):  # `orthogonal` needs at least as many columns as rows
                    weight, direction = weight.mT, direction.mT
                by_shape[weight.shape].append((weight, direction))
            for (_, columns), same_shape in by_shape.items():
                weights, directions = zip(*same_shape, strict=True)
                updates = orthogonal(torch.stack(directions).to(self.dtype)).to(weights[0].dtype)
                if finite is not None:
                    updates *= finite
                torch._foreach_add_(weights, updates.unbind(), alpha=-0.2 * math.sqrt(columns) * group["lr"])

    def _momentum(self, matrix: Tensor) -> Tensor:
        state = self.state[matrix]
        if not state:
            state["momentum_buffer"] = torch.zeros_like(matrix)
        return state["momentum_buffer"]


def orthogonal(x: Tensor) -> Tensor:
    """Return matrices [N, m, n], m <= n, with the singular vectors of x and singular values near 1.

    This is the Newton-Schulz iteration x <- a x + b (x x^T) x + c (x x^T)^2 x.
    """
    a, b, c = COEFFICIENTS
    # The Frobenius norm is an upper bound of the largest singular value, which must be 1 at most.
    x = x / torch.linalg.matrix_norm(x, keepdim=True).clamp(min=1e-7)
    for _ in range(ROUNDS):
        gram = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x
