"""Label-smoothed cross-entropy over the target tokens.

Label smoothing (Szegedy et al. 2016; arXiv 1706.03762, section 5.4) gives the correct token the probability 1 - e and
spreads e evenly over the vocabulary: loss = (1 - e) * -log p(y) + e / V * sum_v -log p(v).
`translucid.kernels.loss` computes it without storing all logits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol, TypeAlias, runtime_checkable

import torch
from torch import Tensor, nn

from translucid.attention.points import recording_weights
from translucid.data.batching import Batch
from translucid.kernels.loss import Target, chunked_loss, supports_chunks
from translucid.kernels.upload import upload
from translucid.models.protocol import Memory, SequenceModel
from translucid.training.profile import part


class Loss(NamedTuple):
    """Sums over the target tokens of a batch, without padding; in self-critical training, over sampled tokens.

    Results of the model's device stay tensors on it, because reading them would wait for the device.
    """

    smoothed: Tensor
    """The objective, [] with a gradient, auxiliary losses included."""
    cross_entropy: Tensor
    """[] -log p of these tokens, in nats, without a gradient."""
    correct: Tensor
    """[] the number of tokens that the model ranks first, given the correct tokens before. Equal logits, which are more
    frequent in bfloat16, all rank first."""
    tokens: Tensor | int
    """The number of target tokens, end tokens included; a tensor [] for packed batches."""
    reward: float = 0.0
    """The sum of the rewards of sampled outputs, in self-critical training."""
    samples: int = 0
    """The number of sampled outputs."""

    def figures(self) -> tuple[Tensor | float, ...]:
        """Return the figures that are added up over batches and processes: all except the objective."""
        return self[1:]


def sums(losses: Sequence[Loss], device: torch.device, *extra: float) -> Tensor:
    """Return the sums of `Loss.figures` over some batches, then `extra` numbers [5 + M], on their device."""
    dtype = torch.float32 if device.type == "mps" else torch.float64  # MPS has no float64
    device_sums, host_sums = torch.zeros(2, dtype=dtype, device=device), torch.zeros(3, dtype=dtype)
    packed_tokens = []
    for loss in losses:
        tokens = loss.tokens
        if isinstance(tokens, Tensor):
            packed_tokens.append(tokens)
            tokens = 0
        device_sums += torch.stack([loss.cross_entropy.to(dtype), loss.correct.to(dtype)])
        host_sums += torch.tensor([tokens, loss.reward, loss.samples], dtype=dtype)
    host_figures = upload(torch.cat([host_sums, torch.tensor(extra, dtype=dtype)]), device)
    if packed_tokens:
        host_figures[0] += torch.stack(packed_tokens).sum()
    return torch.cat([device_sums, host_figures])


LossFunction: TypeAlias = Callable[[Batch, float], Loss]
"""The loss of a batch, given the label smoothing."""


@runtime_checkable
class CarriedLoss(Protocol):
    """A loss with a state that it carries from one batch to the next, and that checkpoints contain."""

    def state_tensors(self) -> dict[str, Tensor]:
        """Return the tensors of the state by name."""

    def restore(self, rank: int, count: int, tensors: Mapping[str, Tensor], device: torch.device) -> None:
        """Restore the state of process `rank` of `count` from the tensors of a checkpoint."""


LossOf: TypeAlias = Callable[[Tensor, nn.Linear, Target], Loss]
"""A function from features [n, D], the output projection and the target distribution to the loss."""


def encoded(model: SequenceModel, batch: Batch) -> Memory:
    """Return the memory of the sources of a batch, padded or packed."""
    if batch.packing is None:
        return model.encode(batch.source, batch.lengths)
    return model.encode_packed(batch.source, batch.packing)


def batch_loss(model: SequenceModel, batch: Batch, smoothing: float = 0.0, loss_of: LossOf | None = None) -> Loss:
    """Return the teacher-forced loss of a batch at its target positions without padding.

    `loss_of`: the loss function, `loss_of_target` by default.
    """
    memory = encoded(model, batch)
    if not (model.has_auxiliary_loss and model.training):
        return target_loss(model, model.features(memory, batch.targets_in), batch, smoothing, loss_of)
    # An auxiliary loss needs the attention maps, which require the exact path; evaluation does without it.
    with recording_weights(model) as maps:
        features = model.features(memory, batch.targets_in)
    loss = target_loss(model, features, batch, smoothing, loss_of)

    @torch.no_grad()
    def log_probs() -> Tensor:
        features_of_labels, labels, indices = _without_padding(features, batch, model.pad)
        log_p = features.new_zeros(batch.labels.numel(), dtype=torch.float32)
        logits = model.output(features_of_labels).float()
        log_p[indices] = -nn.functional.cross_entropy(logits, labels, reduction="none")
        return log_p.view_as(batch.labels)

    auxiliary = model.auxiliary_loss(memory, batch.labels, maps, log_probs)
    return loss._replace(smoothed=loss.smoothed + auxiliary)


def target_loss(
    model: SequenceModel, features: Tensor, batch: Batch, smoothing: float = 0.0, loss_of: LossOf | None = None
) -> Loss:
    """Return the loss of a batch's labels [B, T], given the decoder's features [B, T, D], without auxiliary losses."""
    if batch.packing:  # all positions, so that all batches have one shape
        features, labels = features.flatten(0, 1), batch.labels.flatten()
        target = Target(labels, smoothing, counted=labels.ne(model.pad))
    else:
        features, labels, _ = _without_padding(features, batch, model.pad)
        target = Target(labels, smoothing)
    with part("loss"):
        return (loss_of or loss_of_target)(features, model.output, target)


def _without_padding(features: Tensor, batch: Batch, pad: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return the features [n, D], the labels [n] and the indices [n] of the target positions without padding."""
    indices = non_padding_indices(batch, pad)
    return features.flatten(0, 1).index_select(0, indices), batch.labels.flatten().index_select(0, indices), indices


def non_padding_indices(batch: Batch, pad: int) -> Tensor:
    """Return the indices [n] of the labels of a batch, flattened, that are not padding."""
    # They are usually computed on the host, because `nonzero` waits for a GPU.
    return batch.labels.flatten().ne(pad).nonzero().squeeze(1) if batch.positions is None else batch.positions


def smoothed_loss(features: Tensor, output: nn.Linear, labels: Tensor, smoothing: float) -> Loss:
    """Return the loss of features [n, D] and labels [n]."""
    return loss_of_target(features, output, Target(labels, smoothing))


def loss_of_target(features: Tensor, output: nn.Linear, target: Target) -> Loss:
    """Return the loss of features [n, D], from the kernel if it supports them, or else by the equations."""
    if not supports_chunks(features, output):
        return reference_loss(features, output, target)
    chunked = chunked_loss(features, output.weight, output.bias, target)
    return Loss(chunked.smoothed, chunked.nll.detach(), chunked.correct, _tokens(target))


def _tokens(target: Target) -> Tensor | int:
    return len(target.labels) if target.counted is None else target.counted.sum()


def reference_loss(features: Tensor, output: nn.Linear, target: Target) -> Loss:
    """Return the loss of features [n, D] by the equations, with all logits [n, V] in memory."""
    log_p = output(features).float().log_softmax(-1)
    loss = loss_of_log_p(log_p, target)
    if target.soft is None:
        return loss
    soft_loss = -target.weighted(target.soft.probabilities * log_p.gather(1, target.soft.tokens)).sum()
    return loss._replace(smoothed=(1 - target.share) * loss.smoothed + target.share * soft_loss)


def loss_of_log_p(log_p: Tensor, target: Target) -> Loss:
    """Return the loss of log-probabilities [n, V] by the equation above, without soft targets."""
    labels, smoothing = target.labels, target.smoothing
    cross_entropy = -target.weighted(log_p.gather(1, labels[:, None])).sum()
    smoothed = (1 - smoothing) * cross_entropy - smoothing * target.weighted(log_p.mean(-1)).sum()
    correct = target.weighted(log_p.argmax(-1) == labels).sum()
    return Loss(smoothed, cross_entropy.detach(), correct, _tokens(target))
