"""Label-smoothed cross-entropy of features x [n, D] in chunks: the same numbers, less memory, and faster on a CPU.

All logits of 25,000 positions and 32,000 pieces, and the tensors computed from them, would take 17 GB.

With logits l = W x + b [V] and z = sum_v exp l_v, the loss of one row with label y and its derivative are

    (1 - e) * (log z - l_y) + e * (log z - mean_v l_v),      dl_v = exp l_v / z - (1 - e) * 1[v = y] - e / V

Five ideas make it cheap:

1. Chunks. The loss is computed for some rows at a time, and the gradients of a chunk at once: dx = dl W and
   dW = sum of dl^T x. So only one chunk of logits is in memory at a time, in one buffer, and none is computed twice.
   The backward pass multiplies these gradients by the gradient of the loss, a number. If no gradients are needed, none
   are computed.
2. Bias. It is the weight of one more feature that is always 1, so products include the bias and its gradient.
3. Mean. The smoothing needs a row's sum of logits, which is x times the sum of the rows of W: n D operations instead
   of n V. Its share of the gradient, e / V on every entry, is likewise computed from sums, after all chunks.
4. Maximum. If no logit of a chunk is above `SAFE` and no row has its maximum below -`SAFE`, exp can neither overflow
   nor leave z at 0, so no maximum is subtracted before it.
5. Division. exp l / z divides a row by z. Dividing a row of the product afterwards, or of x before, is equivalent:
   D numbers per row instead of V. So the factor of the products is z dl = exp l - (1 - e) z 1[v = y].

On a GPU, 4 would wait for the device, and 2 and 5 gain nothing. Chunks are larger there, since many short kernels are
slow. The same code is compiled within a graph (`training.compile`).

Positions of a packed batch that have no label have the factor 0 in each sum, so that all batches have one shape. On a
CPU, they are left out instead.

Soft targets q (Hinton et al. 2015, arXiv 1503.02531), the probabilities that teachers give to a few tokens c_k, with a
sum of 1, take a share a of the loss: the loss above times 1 - a, plus a * (log z - sum_k q_k l_ck). They change dl only
at these tokens.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from translucid.kernels.dispatch import uses_reference
from translucid.kernels.onednn import fast_products
from translucid.kernels.rounding import factor

ROWS = 1024
"""Target positions per chunk; the logits of 1,024 positions and 10,000 pieces take 40 MB, half of that in bfloat16."""

LOGITS_ON_GPU = 1 << 27
"""The number of logits per chunk on a GPU: 512 MiB in float32."""

SAFE = 60.0
"""The largest absolute value of a row's highest logit for which exp and 1 / z are safe in float32."""


class SoftTargets(NamedTuple):
    """The most probable tokens of teachers at n target positions."""

    tokens: Tensor
    """The tokens [n, K] int64; those of a position differ."""
    probabilities: Tensor
    """Their probabilities [n, K]; those of a position sum to 1."""

    def rows(self, rows: slice | Tensor) -> SoftTargets:
        """Return the soft targets of some positions."""
        return SoftTargets(self.tokens[rows], self.probabilities[rows])


class Sums(NamedTuple):
    """Sums over all rows, each []."""

    smoothed: Tensor
    """The loss, with a gradient if an input requires one."""
    nll: Tensor
    """-log p of the labels."""
    correct: Tensor
    """The number of rows whose label has the highest logit."""


def supports_chunks(features: Tensor, output: nn.Linear) -> bool:
    """Whether `chunked_loss` supports these tensors: all on a GPU, float32 and float64 on a CPU."""
    if uses_reference("loss") or output.bias is None:
        return False
    same_dtype = features.dtype == output.weight.dtype and features.dtype in (torch.float32, torch.float64)
    return features.device.type != "cpu" or same_dtype


class Target(NamedTuple):
    """The distribution that the model learns at each of n positions."""

    labels: Tensor
    """The correct tokens [n] int64."""
    smoothing: float
    """e."""
    soft: SoftTargets | None = None
    share: float = 0.0
    """a; 0 without soft targets."""
    counted: Tensor | None = None
    """boolean [n], False at positions that have no label; None if all have one."""

    @property
    def weights(self) -> tuple[float, float]:
        """The shares of the loss of the labels, and of the uniform distribution."""
        hard = 1 - self.share
        return hard * (1 - self.smoothing), hard * self.smoothing

    def rows(self, rows: slice | Tensor) -> Target:
        """Return the target distribution of some positions."""
        counted = None if self.counted is None else self.counted[rows]
        return self._replace(labels=self.labels[rows], soft=self.soft and self.soft.rows(rows), counted=counted)

    def weighted(self, x: Tensor) -> Tensor:
        """Return x [n] or [n, ..], 0 at positions that have no label."""
        return x if self.counted is None else x * self.counted.view(-1, *[1] * (x.dim() - 1))


def chunked_loss(features: Tensor, weight: Tensor, bias: Tensor, target: Target) -> Sums:
    """Return the sums for features [n, D], given W [V, D] and b [V]."""
    if torch.is_grad_enabled() and any(x.requires_grad for x in (features, weight, bias)):
        return Sums(*_ChunkedLoss.apply(features, weight, bias, target))  # type: ignore[no-untyped-call]
    return _sums(features, weight, bias, target, None)


class _Gradients(NamedTuple):
    """The gradients of the loss, filled chunk by chunk."""

    features: Tensor
    """[n, D]."""
    weight: Tensor
    """[V, D + 1]; the last column belongs to the bias."""


class _ChunkedLoss(torch.autograd.Function):
    """The forward pass computes the gradients too, so that the logits need not be stored or computed again."""

    @staticmethod
    def forward(ctx: Any, features: Tensor, weight: Tensor, bias: Tensor, target: Target) -> Sums:
        gradients = _Gradients(torch.empty_like(features), _empty_gradient(weight))
        sums = _sums(features, weight, bias, target, gradients)
        ctx.save_for_backward(gradients.features, gradients.weight[:, :-1], gradients.weight[:, -1])
        ctx.mark_non_differentiable(sums.nll, sums.correct)
        return sums

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor, *count_gradients: Tensor) -> tuple[Tensor | None, ...]:
        d_features, d_weight, d_bias = ctx.saved_tensors
        return d_features * gradient, (d_weight * gradient).contiguous(), d_bias * gradient, None


def _empty_gradient(weight: Tensor) -> Tensor:
    """Return zeros [V, D + 1] for a weight [V, D] and its bias."""
    rows, columns = len(weight), weight.size(1) + 1
    if weight.device.type == "cpu":
        # Products with D + 1 columns are slower than those with as many rows: on AVX2, 85 instead of 97 GFLOP/s.
        return weight.new_zeros(columns, rows).t()
    return weight.new_zeros(rows, columns)


@fast_products()
def _sums(features: Tensor, weight: Tensor, bias: Tensor, target: Target, gradients: _Gradients | None) -> Sums:
    """Return the sums, and fill `gradients` if it is not None."""
    if features.device.type != "cpu" or torch.compiler.is_compiling():
        return _sums_on_gpu(features, weight, bias, target, gradients)
    if target.counted is None:
        return _sums_on_cpu(features, weight, bias, target, gradients)
    index = target.counted.nonzero().squeeze(1)
    selected = features.index_select(0, index)
    own_gradients = gradients and gradients._replace(features=torch.empty_like(selected))
    sums = _sums_on_cpu(selected, weight, bias, target.rows(index), own_gradients)
    if gradients and own_gradients:
        gradients.features.zero_().index_copy_(0, index, own_gradients.features)
    return sums


def _sums_on_cpu(features: Tensor, weight: Tensor, bias: Tensor, target: Target, gradients: _Gradients | None) -> Sums:
    """Compute the sums with the five ideas above."""
    rows, vocabulary = len(features), len(weight)
    hard, uniform = target.weights
    x = torch.cat([features, features.new_ones(rows, 1)], 1)  # [n, D + 1]
    w = torch.cat([weight, bias[:, None]], 1)  # [V, D + 1]
    nll, smoothed = features.new_zeros(()), features.new_zeros(())
    correct = target.labels.new_zeros(())
    w_factor = factor(w)
    buffer = w_factor.new_empty(min(ROWS, rows), vocabulary)
    w_sum = w.sum(0)
    for start in range(0, rows, ROWS):
        span = slice(start, start + ROWS)
        chunk, (y, _, soft, share, _) = x[span], target.rows(span)
        row = torch.arange(len(chunk))
        label_index = (row, y)  # not scatter, which copies its whole target if that is bfloat16
        logits = torch.mm(factor(chunk), w_factor.t(), out=buffer[: len(chunk)])
        label_logits, highest = logits[label_index], logits.amax(1)
        correct += (label_logits == highest).sum()
        if soft:
            soft_index = (row[:, None], soft.tokens)
            expected = (soft.probabilities * logits[soft_index]).sum(1)  # sum_k q_k l_ck
        is_extreme = bool(highest.abs().max() > SAFE)
        if is_extreme:
            logits -= highest[:, None]
        exp = logits.exp_()
        z = exp.sum(1).to(chunk.dtype)
        log_z = z.log() + highest if is_extreme else z.log()
        chunk_nll = (log_z - label_logits).sum()
        nll += chunk_nll
        smoothed += hard * chunk_nll
        if uniform:
            smoothed += uniform * (log_z.sum() - (chunk @ w_sum).sum() / vocabulary)
        if soft:
            smoothed += share * (log_z - expected).sum()
        if gradients:
            exp[label_index] -= hard * z  # z dl, except for the term of the uniform distribution
            if soft:
                exp[soft_index] -= (share * z[:, None] * soft.probabilities).to(exp.dtype)
            gradients.features[span] = (exp @ w_factor[:, :-1]) / z[:, None]
            gradients.weight.add_((factor(chunk / z[:, None]).t() @ exp).t())
    if gradients and uniform:  # that term, for all chunks at once
        gradients.features.sub_(uniform / vocabulary * w_sum[:-1])
        gradients.weight.sub_(uniform / vocabulary * x.sum(0))
    return Sums(smoothed, nll, correct)


def _sums_on_gpu(features: Tensor, weight: Tensor, bias: Tensor, target: Target, gradients: _Gradients | None) -> Sums:
    """Compute the sums with PyTorch's kernels; products are in the dtype of autocast if it is on."""
    device = features.device.type
    dtype = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else weight.dtype
    exact = torch.promote_types(weight.dtype, torch.float32)
    vocabulary, rows = len(weight), max(1, LOGITS_ON_GPU // len(weight))
    hard, uniform = target.weights
    w_sum = weight.sum(0)
    nll, log_z, soft_loss = (torch.zeros((), dtype=exact, device=features.device) for _ in range(3))
    correct = target.labels.new_zeros(())
    with torch.autocast(device, enabled=False):
        x, w, b = features.to(dtype), weight.to(dtype), bias.to(dtype)
        for start in range(0, len(x), rows):
            span = slice(start, start + rows)
            chunk, part = x[span], target.rows(span)
            y, soft, weighted = part.labels[:, None], part.soft, part.weighted
            logits = F.linear(chunk, w, b)
            log_p = logits.to(exact).log_softmax(-1)
            label_log_p = log_p.gather(1, y)
            correct += weighted(label_log_p == log_p.amax(1, keepdim=True)).sum()
            nll -= weighted(label_log_p).sum()
            log_z += weighted(logits.gather(1, y).to(exact) - label_log_p).sum()  # log z = l_y - log p_y
            if soft:
                soft_loss -= weighted(soft.probabilities * log_p.gather(1, soft.tokens)).sum()
            if gradients:
                dl = log_p.exp_().scatter_add_(1, y, torch.full_like(label_log_p, -hard))
                if soft:
                    dl.scatter_add_(1, soft.tokens, -part.share * soft.probabilities)
                dl = weighted(dl).to(dtype)
                gradients.features[span] = dl @ w
                gradients.weight[:, :-1] += dl.t() @ chunk
                gradients.weight[:, -1] += dl.sum(0, dtype=exact)
        count = len(x) if target.counted is None else target.counted.sum(dtype=exact)
        x_sum = target.weighted(features).sum(0, dtype=weight.dtype)
        sum_of_logits = x_sum @ w_sum + count * bias.sum()
        smoothed = hard * nll + uniform * (log_z - sum_of_logits / vocabulary)
        if target.soft:
            smoothed = smoothed + target.share * soft_loss
        if gradients and uniform:
            gradients.features.sub_(target.weighted((uniform / vocabulary * w_sum).expand_as(features)))
            gradients.weight[:, :-1].sub_(uniform / vocabulary * x_sum)
            gradients.weight[:, -1].sub_(uniform / vocabulary * count)
    return Sums(smoothed, nll, correct)
