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
"""Of x, x^3 and x^5: five rounds take every singular value from 0.002 to 1 to between 0.68 and 1.21."""
ROUNDS = 5


class Muon(torch.optim.Optimizer):
    """W -= rate * 0.2 sqrt(max(rows, columns)) * orthogonal(G + momentum), with Nesterov's momentum.

    The factor gives its updates the length of Adam's (Liu et al. 2025, arXiv 2502.16982, section 2.2), so that one
    learning rate suits both. The same as `torch.optim.Muon`, which has no choice of type, and makes its products in
    bfloat16 one matrix at a time: on a CPU without instructions for it, a step of `tiny` takes it a second, and here
    0.05, in float32; on one with them 0.057, and here 0.025, matrices of one shape together (docs/speed.md).
    """

    def __init__(self, matrices: Iterable[Tensor] | Iterable[dict[str, Any]], lr: float, *, bfloat16: bool) -> None:
        """Take matrices, or groups of them.

        `lr`: the learning rate; `bfloat16`: the type to make directions orthogonal in, else float32.
        """
        super().__init__(matrices, {"lr": lr})
        self.dtype = torch.bfloat16 if bfloat16 else torch.float32

    @torch.no_grad()
    def step(self, finite: Tensor | None = None) -> None:  # type: ignore[override]
        """Make an update; if `finite` [] is given and False, weights and momenta stay as they are."""
        for group in self.param_groups:
            matrices = [matrix for matrix in group["params"] if matrix.grad is not None]
            if not matrices:
                continue
            gradients = [matrix.grad for matrix in matrices]
            momenta = [self._momentum(matrix) for matrix in matrices]
            if finite is not None:  # a momentum that is drawn towards itself does not move
                both = zip(gradients, momenta, strict=True)
                gradients = [torch.where(finite, gradient, momentum) for gradient, momentum in both]
            torch._foreach_lerp_(momenta, gradients, 1 - MOMENTUM)
            by_shape = defaultdict(list)
            for matrix, direction in zip(matrices, torch._foreach_lerp(gradients, momenta, MOMENTUM), strict=True):
                flat = matrix.flatten(1), direction.flatten(1)  # a convolution's kernel is a matrix for each output
                wide = flat if flat[0].size(0) <= flat[0].size(1) else (flat[0].mT, flat[1].mT)
                by_shape[wide[0].shape].append(wide)
            for (_, columns), alike in by_shape.items():
                moved, directions = zip(*alike, strict=True)
                moves = orthogonal(torch.stack(directions).to(self.dtype)).to(moved[0].dtype)
                if finite is not None:
                    moves *= finite
                torch._foreach_add_(moved, moves.unbind(), alpha=-0.2 * math.sqrt(columns) * group["lr"])

    def _momentum(self, matrix: Tensor) -> Tensor:
        state = self.state[matrix]
        if not state:
            state["momentum_buffer"] = torch.zeros_like(matrix)
        buffer: Tensor = state["momentum_buffer"]
        return buffer


def orthogonal(x: Tensor) -> Tensor:
    """Return matrices [N, m, n], m <= n, with the singular vectors of x and singular values near 1.

    By Newton and Schulz's iteration, x <- a x + b (x x^T) x + c (x x^T)^2 x.
    """
    a, b, c = COEFFICIENTS
    x = x / torch.linalg.matrix_norm(x, keepdim=True).clamp(min=1e-7)
    for _ in range(ROUNDS):
        gram = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x
