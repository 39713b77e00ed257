"""Label-smoothed cross-entropy over the target tokens.

Label smoothing (Szegedy et al. 2016; arXiv 1706.03762, section 5.4) gives the right token the probability 1 - e and
spreads e evenly over the vocabulary: loss = (1 - e) * -log p(y) + e / V * sum_v -log p(v).
`translucid.kernels.loss` has a way to it that never holds all the logits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

import torch
from torch import Tensor, nn

from translucid.data.batching import Batch
from translucid.kernels.loss import chunked_loss, chunks_suit
from translucid.kernels.transfer import upload
from translucid.models.classifier import Classifier
from translucid.models.protocol import Maps, SequenceModel


class Loss(NamedTuple):
    """Sums over the real target tokens of a batch; of a self-critical one, over those that the model has drawn.

    What the model's device has computed stays a tensor there: to read it is to wait for the device.
    """

    smoothed: Tensor
    """What is minimised, [] with a gradient; with what a model is taught beyond its words."""
    cross_entropy: Tensor
    """[] -log p of these tokens, in nats, without a gradient."""
    correct: Tensor
    """[] how many the model ranks first, given the right ones before; of logits that are equal, as they more often are
    in bfloat16, each is first."""
    tokens: int
    """Target tokens, end tokens included."""
    reward: float = 0.0
    """Of what the model has drawn itself, if it has; see `self_critical.py`."""
    drawn: int = 0
    """How many that were."""

    def figures(self) -> tuple[Tensor | float, ...]:
        """Return what is added up over batches and processes: all but what is minimised."""
        return self[1:]


def sums(losses: Sequence[Loss], device: torch.device, *more: float) -> Tensor:
    """Return the sums of `Loss.figures` over some batches, then `more` numbers [5 + M], on their device."""
    dtype = torch.float32 if device.type == "mps" else torch.float64  # which MPS does not have
    measured, counted = torch.zeros(2, dtype=dtype, device=device), torch.zeros(3, dtype=dtype)
    for loss in losses:
        measured += torch.stack([loss.cross_entropy.to(dtype), loss.correct.to(dtype)])
        counted += torch.tensor([loss.tokens, loss.reward, loss.drawn], dtype=dtype)
    return torch.cat([measured, upload(torch.cat([counted, torch.tensor(more, dtype=dtype)]), device)])


LossOf: TypeAlias = Callable[[Tensor, nn.Linear, Tensor, float], Loss]
"""The loss of features [n, D], given the projection to logits, the labels [n] and how much label smoothing there is."""


def batch_loss(model: SequenceModel, batch: Batch, smoothing: float = 0.0, loss_of: LossOf | None = None) -> Loss:
    """Return the loss of a batch, teacher-forced, at its real target positions only.

    `loss_of`: another loss than `smoothed_loss`, of what that is given.
    """
    maps: Maps | None = {} if model.has_auxiliary_loss and model.training else None
    memory = model.encode(batch.source, lengths=batch.lengths)
    features = model.features(memory, batch.targets_in, maps)
    loss = target_loss(model, features, batch, smoothing, loss_of)
    if maps is None:
        return loss

    @torch.no_grad()
    def log_probs() -> Tensor:
        asked, labels, places = _real(features, batch, model.pad)
        found = features.new_zeros(batch.labels.numel(), dtype=torch.float32)
        logits = model.output(asked).float()
        found[places] = -nn.functional.cross_entropy(logits, labels, reduction="none")
        return found.view_as(batch.labels)

    further = model.auxiliary_loss(memory, batch.labels, maps, log_probs)
    return loss._replace(smoothed=loss.smoothed + further)


def target_loss(
    model: SequenceModel, features: Tensor, batch: Batch, smoothing: float = 0.0, loss_of: LossOf | None = None
) -> Loss:
    """Return the loss of a batch's labels [B, T], given the decoder's features [B, T, D]; see `batch_loss`."""
    features, labels, _ = _real(features, batch, model.pad)
    return (loss_of or smoothed_loss)(features, model.output, labels, smoothing)


def _real(features: Tensor, batch: Batch, pad: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return the features [n, D], the labels [n] and the places [n] of the real target positions."""
    places = real_places(batch, pad)
    return features.flatten(0, 1).index_select(0, places), batch.labels.flatten().index_select(0, places), places


def real_places(batch: Batch, pad: int) -> Tensor:
    """Return where the labels of a batch, flattened, are not padding [n]."""
    return batch.labels.flatten().ne(pad).nonzero().squeeze(1) if batch.places is None else batch.places


def smoothed_loss(features: Tensor, output: nn.Linear, labels: Tensor, smoothing: float) -> Loss:
    """Return the loss of features [n, D] and labels [n] by the way that suits, or by the equation."""
    if not chunks_suit(features, output):
        return plain_loss(features, output, labels, smoothing)
    sums = chunked_loss(features, output.weight, output.bias, labels, smoothing)
    return Loss(sums.smoothed, sums.right.detach(), sums.correct, len(labels))


def plain_loss(features: Tensor, output: nn.Linear, labels: Tensor, smoothing: float) -> Loss:
    """The equation above for features [n, D] and labels [n], with all logits [n, V] in memory."""
    return loss_of_log_p(output(features).float().log_softmax(-1), labels, smoothing)


def loss_of_log_p(log_p: Tensor, labels: Tensor, smoothing: float) -> Loss:
    """The same of log-probabilities [n, V]."""
    right = -log_p.gather(1, labels[:, None]).sum()
    smoothed = (1 - smoothing) * right - smoothing * log_p.mean(-1).sum()
    correct = (log_p.argmax(-1) == labels).sum()
    return Loss(smoothed, right.detach(), correct, len(labels))


def label_loss(model: Classifier, batch: Batch, smoothing: float = 0.0) -> Loss:
    """Return the label-smoothed cross-entropy of a batch; its tokens are texts."""
    logits, labels = model(batch.source).float(), batch.labels[:, 0]
    loss = nn.functional.cross_entropy(logits, labels, reduction="sum", label_smoothing=smoothing)
    with torch.no_grad():
        right = nn.functional.cross_entropy(logits, labels, reduction="sum") if smoothing else loss
        correct = (logits.argmax(-1) == labels).sum()
    return Loss(loss, right.detach(), correct, len(labels))
