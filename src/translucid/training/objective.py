"""Label-smoothed cross-entropy over the target tokens: the plain path, and one that never holds all the logits.

Label smoothing (Szegedy et al. 2016; arXiv 1706.03762, section 5.4) gives the right token the probability 1 - e and
spreads e evenly over the vocabulary: loss = (1 - e) * -log p(y) + e / V * sum_v -log p(v).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from translucid.data.batching import Batch
from translucid.kernels.linear import factor, fast_products
from translucid.models.protocol import SequenceModel

ROWS = 1024
"""Target positions whose logits are held at a time; 1,024 rows of 10,000 entries are 40 MB, half that in bfloat16."""

SAFE = 60.0
"""Highest logit of a row, plus or minus, up to which exp of them is safe in float32, and so is 1 / their sum."""


class Loss(NamedTuple):
    """Sums over the real target tokens of a batch."""

    smoothed: Tensor
    """What is minimised, [] with a gradient."""
    cross_entropy: float
    """-log p of the right tokens, in nats."""
    correct: int
    """Tokens that the model ranks first, given the right ones before; of logits that are equal, as they more often are
    in bfloat16, each is first."""
    tokens: int
    """Target tokens, end tokens included."""


def batch_loss(model: SequenceModel, batch: Batch, smoothing: float = 0.0) -> Loss:
    """Return the loss of a batch, teacher-forced, at its real target positions only."""
    features = model.features(model.encode(batch.source), batch.targets_in)
    labels = batch.labels.flatten()
    real = (labels != model.pad).nonzero().squeeze(1)
    features, labels = features.flatten(0, 1).index_select(0, real), labels.index_select(0, real)
    path = chunked_loss if features.device.type == "cpu" else plain_loss
    return path(features, model.output, labels, smoothing)


def plain_loss(features: Tensor, output: nn.Linear, labels: Tensor, smoothing: float) -> Loss:
    """The equation above for features [n, D] and labels [n], with all logits [n, V] in memory."""
    logits = output(features).float()
    log_p = logits.log_softmax(-1)
    right = -log_p.gather(1, labels[:, None]).sum()
    smoothed = (1 - smoothing) * right - smoothing * log_p.mean(-1).sum()
    correct = (logits.argmax(-1) == labels).sum()
    return Loss(smoothed, right.item(), int(correct), len(labels))


def chunked_loss(features: Tensor, output: nn.Linear, labels: Tensor, smoothing: float) -> Loss:
    """The same in chunks of rows, the gradients made on the way: equal, faster on a CPU, and flat in memory."""
    totals: list[Tensor] = []
    smoothed = _ChunkedLoss.apply(features, output.weight, output.bias, labels, smoothing, totals)  # type: ignore[no-untyped-call]
    right, correct = totals
    return Loss(smoothed, float(right), int(correct), len(labels))


class _ChunkedLoss(torch.autograd.Function):
    @staticmethod
    @fast_products()
    def forward(
        ctx: Any, features: Tensor, weight: Tensor, bias: Tensor, labels: Tensor, e: float, totals: list[Tensor]
    ) -> Tensor:
        rows, vocabulary = len(features), len(weight)
        # The bias is the weight of one more feature, which is always 1; so its gradient comes with that of the others.
        x = torch.cat([features, features.new_ones(rows, 1)], 1)
        w = torch.cat([weight, bias[:, None]], 1)
        d_features, dw = torch.empty_like(features), torch.zeros_like(w)
        right, smoothed = features.new_zeros(()), features.new_zeros(())
        correct = labels.new_zeros(())
        w_factor = factor(w)
        buffer = w_factor.new_empty(min(ROWS, rows), vocabulary)
        w_sum = w.sum(0)  # so the sum of a row's logits is one product: no pass over them for the smoothing
        for first in range(0, rows, ROWS):
            own, y = x[first : first + ROWS], labels[first : first + ROWS]
            at = (torch.arange(len(own)), y)  # not scatter: of bfloat16 it copies all of its target
            logits = torch.mm(factor(own), w_factor.t(), out=buffer[: len(own)])
            at_label, highest = logits[at], logits.amax(1)
            correct += (at_label == highest).sum()
            extreme = bool(highest.abs().max() > SAFE)
            if extreme:
                logits -= highest[:, None]
            # Their softmax is exp / z; instead of dividing all of exp by z, divide what it is multiplied by.
            exp = logits.exp_()
            z = exp.sum(1).to(own.dtype)
            log_z = z.log() + highest if extreme else z.log()
            chunk_right = (log_z - at_label).sum()
            right += chunk_right
            smoothed += (1 - e) * chunk_right
            if e:
                smoothed += e * (log_z.sum() - (own @ w_sum).sum() / vocabulary)
            exp[at] -= (1 - e) * z  # now z times the gradient of the loss to the logits, but for the smoothing's share
            d_features[first : first + ROWS] = (exp @ w_factor[:, :-1]) / z[:, None]
            dw += exp.t() @ factor(own / z[:, None])
        if e:  # that is e / V on every entry of every row
            d_features -= e / vocabulary * w_sum[:-1]
            dw -= e / vocabulary * x.sum(0)
        ctx.save_for_backward(d_features, dw[:, :-1], dw[:, -1])
        totals += [right, correct]
        return smoothed

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        d_features, d_weight, d_bias = ctx.saved_tensors
        return d_features * gradient, d_weight * gradient, d_bias * gradient, None, None, None
