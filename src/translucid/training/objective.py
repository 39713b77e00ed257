"""Label-smoothed cross-entropy over the target tokens: the plain path, and one that never holds all the logits.

Label smoothing (Szegedy et al. 2016; arXiv 1706.03762, section 5.4) gives the right token the probability 1 - e and
spreads e evenly over the vocabulary: loss = (1 - e) * -log p(y) + e / V * sum_v -log p(v).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from translucid.data.batching import Batch
from translucid.models.protocol import SequenceModel
from translucid.products import factor, fast_products

ROWS = 512
"""Target positions whose logits and probabilities are held at a time, of bfloat16 twice as many; 512 rows of 10,000
entries are 20 MB each."""


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
        d_features, d_weight, d_bias = torch.empty_like(features), torch.zeros_like(weight), torch.zeros_like(bias)
        right, smoothed = features.new_zeros(()), features.new_zeros(())
        correct = labels.new_zeros(())
        w, b = factor(weight), factor(bias)
        chunk = ROWS * features.element_size() // w.element_size()
        logits_buffer, p_buffer = w.new_empty(2, min(chunk, rows), vocabulary)
        # Sum over v of logit v is one product with the summed weights: no pass over the logits for the smoothing.
        weight_sum, bias_sum = weight.sum(0), bias.sum()
        for first in range(0, rows, chunk):
            own, y = features[first : first + chunk], labels[first : first + chunk]
            x, at = factor(own), (torch.arange(len(own)), y)  # not scatter: of bfloat16 it copies all of p
            logits = torch.addmm(b, x, w.t(), out=logits_buffer[: len(x)])
            at_label, highest = logits[at], logits.amax(1)
            correct += (at_label == highest).sum()
            p = torch.softmax(logits, 1, out=p_buffer[: len(x)])
            log_z = highest.to(own.dtype) - p.amax(1).to(own.dtype).log()  # the highest p is exp(highest) / z
            chunk_right = (log_z - at_label).sum()
            right += chunk_right
            smoothed += (1 - e) * chunk_right
            if e:
                mean_logit = (own @ weight_sum + bias_sum) / vocabulary
                smoothed += e * (log_z.sum() - mean_logit.sum())
            # In place from here on: the gradient of the loss to the logits, but for the smoothing's share of it.
            p[at] -= 1 - e
            d_features[first : first + chunk] = p @ w
            d_weight += p.t() @ x
            d_bias += p.sum(0)
        if e:  # that is e / V on every entry of every row
            d_features -= e / vocabulary * weight_sum
            d_weight -= e / vocabulary * features.sum(0)
            d_bias -= e / vocabulary * rows
        ctx.save_for_backward(d_features, d_weight, d_bias)
        totals += [right, correct]
        return smoothed

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        d_features, d_weight, d_bias = ctx.saved_tensors
        return d_features * gradient, d_weight * gradient, d_bias * gradient, None, None, None
