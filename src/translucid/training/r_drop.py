"""R-Drop (Liang et al. 2021, arXiv 2106.14448): what two passes with different dropout say shall be alike.

loss = (CE(P1) + CE(P2)) / 2 + alpha / 4 * (KL(P1 || P2) + KL(P2 || P1)), half of the paper's equation 4, so that it is
of the size of one cross-entropy CE. Added up, the two divergences are sum_v (P1(v) - P2(v)) (log P1(v) - log P2(v)).
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from translucid.products import fast_products
from translucid.training.cross_entropy import Loss

ROWS = 256
"""Target positions whose logits are held at a time, of both passes."""


def plain_r_drop(
    first: Tensor, second: Tensor, output: nn.Linear, labels: Tensor, smoothing: float, alpha: float
) -> Loss:
    """The equation above for the features [n, D] of two passes and labels [n], with all logits [n, V] in memory."""
    log_p = torch.stack([output(features).float().log_softmax(-1) for features in (first, second)])
    right = -log_p.gather(2, labels.expand(2, -1)[:, :, None]).sum() / 2
    smoothed = (1 - smoothing) * right - smoothing / 2 * log_p.mean(-1).sum()
    apart = (log_p[0].exp() - log_p[1].exp()) * (log_p[0] - log_p[1])
    correct = (log_p[0].argmax(-1) == labels).sum()
    return Loss(smoothed + alpha / 4 * apart.sum(), right.item(), int(correct), len(labels))


def chunked_r_drop(
    first: Tensor, second: Tensor, output: nn.Linear, labels: Tensor, smoothing: float, alpha: float
) -> Loss:
    """The same in chunks of rows, the gradients made on the way: equal, faster on a CPU, and flat in memory."""
    totals: list[Tensor] = []
    arguments = (first, second, output.weight, output.bias, labels, smoothing, alpha, totals)
    loss = _ChunkedRDrop.apply(*arguments)  # type: ignore[no-untyped-call]
    right, correct = totals
    return Loss(loss, float(right), int(correct), len(labels))


class _ChunkedRDrop(torch.autograd.Function):
    @staticmethod
    @fast_products()
    def forward(
        ctx: Any,
        first: Tensor,
        second: Tensor,
        weight: Tensor,
        bias: Tensor,
        labels: Tensor,
        e: float,
        alpha: float,
        totals: list[Tensor],
    ) -> Tensor:
        d_first, d_second = torch.empty_like(first), torch.empty_like(second)
        d_weight, d_bias = torch.zeros_like(weight), torch.zeros_like(bias)
        right, loss, correct = first.new_zeros(()), first.new_zeros(()), labels.new_zeros(())
        for at in range(0, len(first), ROWS):
            y = labels[at : at + ROWS, None]
            passes = [
                (features[at : at + ROWS], d[at : at + ROWS]) for features, d in ((first, d_first), (second, d_second))
            ]
            log_p = [torch.addmm(bias, x, weight.t()).log_softmax(1) for x, _ in passes]
            p = [each.exp() for each in log_p]
            correct += (log_p[0].argmax(1, keepdim=True) == y).sum()
            chunk_right = -(log_p[0].gather(1, y) + log_p[1].gather(1, y)).sum() / 2
            right += chunk_right
            loss += (1 - e) * chunk_right - e / 2 * (log_p[0].mean(1) + log_p[1].mean(1)).sum()
            apart = log_p[0] - log_p[1]
            for (x, d), mine, other, sign in zip(passes, p, reversed(p), (1, -1), strict=True):
                divergence = sign * (mine * apart).sum(1, keepdim=True)
                loss += alpha / 4 * divergence.sum()
                # To the logits, of the cross-entropy (p - its target) / 2, of both divergences together
                # p (log p - log p' - KL + 1) - p'.
                gradient = mine * (alpha / 4 * (sign * apart - divergence + 1) + 0.5)
                gradient.sub_(other, alpha=alpha / 4).sub_(e / 2 / len(weight))
                gradient.scatter_add_(1, y, torch.full_like(y, (e - 1) / 2, dtype=gradient.dtype))
                torch.mm(gradient, weight, out=d)
                d_weight.addmm_(gradient.t(), x)
                d_bias += gradient.sum(0)
        ctx.save_for_backward(d_first, d_second, d_weight, d_bias)
        totals += [right, correct]
        return loss

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        return *(gradient * d for d in ctx.saved_tensors), None, None, None, None
