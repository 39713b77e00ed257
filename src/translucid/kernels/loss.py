"""Label-smoothed cross-entropy of features x [n, D] without all of its logits: equal, faster on a CPU, flat in memory.

All logits of 25,000 positions and 32,000 pieces, and what is made of them, would take 17 GB.

With logits l = W x + b [V] and z = sum_v exp l_v, the loss of one row whose label is y is, and its derivative,

    (1 - e) * (log z - l_y) + e * (log z - mean_v l_v),      dl_v = exp l_v / z - (1 - e) * 1[v = y] - e / V

Five things make it cheap:

1. Chunks. The rows are taken some at a time, and of each chunk the gradients are made at once: dx = dl W and
   dW = sum of dl^T x. So no more than one chunk of logits is ever held, in one buffer, and none is made twice. The
   gradient of what follows the loss, a number, is multiplied in the end. Gradients that nobody wants are not made.
2. Bias. It is the weight of one more feature that is always 1, so it is added, and its gradient made, within products.
3. Mean. The smoothing needs a row's sum of logits, which is x times the sum of the rows of W: n D operations in place
   of n V. Its share of the gradient, e / V on every entry, is likewise made of sums, after all chunks.
4. Maximum. Where no logit of a chunk is above `SAFE` or has a maximum below -`SAFE`, exp can neither overflow nor
   leave z at 0, so nothing is subtracted before it.
5. Division. exp l / z is a row's division by z, and a row of a product may as well be divided after it, and a row of
   x before it: D numbers a row instead of V. So what is multiplied is z dl = exp l - (1 - e) z 1[v = y].

On a GPU, 4 would wait for it, and 2 and 5 gain nothing; its chunks are larger, since many short kernels are slow.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from translucid.kernels.dispatch import is_plain
from translucid.kernels.onednn import fast_products
from translucid.kernels.rounding import factor

ROWS = 1024
"""Target positions whose logits are held at a time; 1,024 rows of 10,000 entries are 40 MB, half that in bfloat16."""

LOGITS_ON_GPU = 1 << 27
"""How many are held at a time there: 512 MiB in float32."""

SAFE = 60.0
"""Highest logit of a row, plus or minus, up to which exp of them is safe in float32, and so is 1 / their sum."""


class Sums(NamedTuple):
    """Over all rows, each []."""

    smoothed: Tensor
    """The loss, with a gradient if one is wanted."""
    right: Tensor
    """-log p of the labels."""
    correct: Tensor
    """Rows whose label has the highest logit."""


def chunks_suit(features: Tensor, output: nn.Linear) -> bool:
    """Whether `chunked_loss` is the way to take: on a GPU, and on a CPU in float32 or float64."""
    if is_plain("loss") or output.bias is None:
        return False
    same = features.dtype == output.weight.dtype and features.dtype in (torch.float32, torch.float64)
    return features.device.type != "cpu" or same


def chunked_loss(features: Tensor, weight: Tensor, bias: Tensor, labels: Tensor, smoothing: float) -> Sums:
    """Return the sums for features [n, D] and labels [n], with W [V, D] and b [V]."""
    if torch.is_grad_enabled() and any(x.requires_grad for x in (features, weight, bias)):
        return Sums(*_ChunkedLoss.apply(features, weight, bias, labels, smoothing))  # type: ignore[no-untyped-call]
    return _sums(features, weight, bias, labels, smoothing, None)


class _Gradients(NamedTuple):
    features: Tensor
    """[n, D]."""
    weight: Tensor
    """[V, D + 1], the bias' last."""


class _ChunkedLoss(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, features: Tensor, weight: Tensor, bias: Tensor, labels: Tensor, e: float) -> Sums:
        made = _Gradients(torch.empty_like(features), weight.new_zeros(len(weight), weight.size(1) + 1))
        sums = _sums(features, weight, bias, labels, e, made)
        ctx.save_for_backward(made.features, made.weight[:, :-1], made.weight[:, -1])
        ctx.mark_non_differentiable(sums.right, sums.correct)
        return sums

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor, *of_counts: Tensor) -> tuple[Tensor | None, ...]:
        d_features, d_weight, d_bias = ctx.saved_tensors
        return d_features * gradient, d_weight * gradient, d_bias * gradient, None, None


@fast_products()
def _sums(features: Tensor, weight: Tensor, bias: Tensor, labels: Tensor, e: float, made: _Gradients | None) -> Sums:
    """Return the sums; the gradients, if they are wanted, are left in `made`."""
    sums = _sums_on_cpu if features.device.type == "cpu" else _sums_on_gpu
    return sums(features, weight, bias, labels, e, made)


def _sums_on_cpu(
    features: Tensor, weight: Tensor, bias: Tensor, labels: Tensor, e: float, made: _Gradients | None
) -> Sums:
    """Make the sums by the five ways above."""
    rows, vocabulary = len(features), len(weight)
    x = torch.cat([features, features.new_ones(rows, 1)], 1)
    w = torch.cat([weight, bias[:, None]], 1)
    right, smoothed = features.new_zeros(()), features.new_zeros(())
    correct = labels.new_zeros(())
    w_factor = factor(w)
    buffer = w_factor.new_empty(min(ROWS, rows), vocabulary)
    w_sum = w.sum(0)
    for first in range(0, rows, ROWS):
        own, y = x[first : first + ROWS], labels[first : first + ROWS]
        at = (torch.arange(len(own)), y)  # not scatter: of bfloat16 it copies all of its target
        logits = torch.mm(factor(own), w_factor.t(), out=buffer[: len(own)])
        at_label, highest = logits[at], logits.amax(1)
        correct += (at_label == highest).sum()
        extreme = bool(highest.abs().max() > SAFE)
        if extreme:
            logits -= highest[:, None]
        exp = logits.exp_()
        z = exp.sum(1).to(own.dtype)
        log_z = z.log() + highest if extreme else z.log()
        chunk_right = (log_z - at_label).sum()
        right += chunk_right
        smoothed += (1 - e) * chunk_right
        if e:
            smoothed += e * (log_z.sum() - (own @ w_sum).sum() / vocabulary)
        if made:
            exp[at] -= (1 - e) * z
            made.features[first : first + ROWS] = (exp @ w_factor[:, :-1]) / z[:, None]
            made.weight.add_(exp.t() @ factor(own / z[:, None]))
    if made and e:
        made.features.sub_(e / vocabulary * w_sum[:-1])
        made.weight.sub_(e / vocabulary * x.sum(0))
    return Sums(smoothed, right, correct)


def _sums_on_gpu(
    features: Tensor, weight: Tensor, bias: Tensor, labels: Tensor, e: float, made: _Gradients | None
) -> Sums:
    """Make the sums by PyTorch's own kernels, with products in the dtype of autocast, if that is on."""
    device = features.device.type
    dtype = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else weight.dtype
    vocabulary, rows = len(weight), max(1, LOGITS_ON_GPU // len(weight))
    w_sum = weight.sum(0)
    right, log_z = (torch.zeros((), device=features.device) for _ in range(2))
    correct = labels.new_zeros(())
    with torch.autocast(device, enabled=False):
        x, w, b = features.to(dtype), weight.to(dtype), bias.to(dtype)
        for first in range(0, len(x), rows):
            own, y = x[first : first + rows], labels[first : first + rows, None]
            logits = F.linear(own, w, b)
            log_p = logits.float().log_softmax(-1)
            at_label = log_p.gather(1, y)
            correct += (at_label == log_p.amax(1, keepdim=True)).sum()
            right -= at_label.sum()
            log_z += (logits.gather(1, y).float() - at_label).sum()
            if made:
                dl = log_p.exp_().scatter_add_(1, y, torch.full_like(at_label, e - 1)).to(dtype)
                made.features[first : first + rows] = dl @ w
                made.weight[:, :-1] += dl.t() @ own
                made.weight[:, -1] += dl.sum(0, dtype=torch.float32)
        x_sum = features.sum(0, dtype=weight.dtype)
        sum_of_logits = x_sum @ w_sum + len(x) * bias.sum()
        smoothed = (1 - e) * right + e * (log_z - sum_of_logits / vocabulary)
        if made and e:
            made.features.sub_(e / vocabulary * w_sum)
            made.weight[:, :-1].sub_(e / vocabulary * x_sum)
            made.weight[:, -1].sub_(e / vocabulary * len(x))
    return Sums(smoothed, right, correct)
