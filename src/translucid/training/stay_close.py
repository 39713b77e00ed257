"""Knowledge distillation and L2-SP against catastrophic forgetting in fine-tuning.

Both keep a copy of the initial model, unless the distribution is that of other runs:

    l2_sp                 loss + L/2 |w - w0|^2, w0 the initial weights
                                                        (Barone et al. 2017, arXiv 1707.09920, section 3.2)
    distillation_weight   (1 - a) loss + a sum_v -p0(v) log p(v), p0 the distribution of the initial model
                                                        (Khayrallah et al. 2018, W18-2705, section 2.2, equation 4),
                          or of teachers (word-level knowledge distillation, Kim and Rush 2016, arXiv 1606.07947,
                                                        section 3.1)
"""

from __future__ import annotations

import copy
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from translucid.data.batching import Batch
from translucid.kernels.loss import Target
from translucid.models.protocol import SequenceModel
from translucid.runs.training_options import TrainingOptions
from translucid.training.objective import Loss, batch_loss, loss_of_log_p, loss_of_target, non_padding_indices
from translucid.training.soft_targets import teachers_of


class L2SP:
    """Regularisation towards the weights at the beginning of a training."""

    def __init__(self, parameters: Sequence[nn.Parameter], strength: float) -> None:
        """Store the current values of `parameters` as w0; `strength` is L."""
        self.parameters, self.strength = parameters, strength
        self.initial = [parameter.detach().clone() for parameter in parameters]

    @torch.no_grad()
    def pull(self) -> None:
        """Add the derivative L (w - w0) to the gradients, which are those of a mean over tokens."""
        for parameter, initial in zip(self.parameters, self.initial, strict=True):
            if parameter.grad is not None:
                parameter.grad.add_(parameter - initial, alpha=self.strength)


class DistillationLoss:
    """A mean of the loss of a batch and the cross-entropy to the distribution of a teacher."""

    def __init__(self, model: SequenceModel, share: float, teacher: SequenceModel | None = None) -> None:
        """Store the model and its teacher.

        Args:
            model: the model that learns.
            share: a.
            teacher: a model with the same vocabulary on the same device; a copy of the current model by default.
        """
        self.model, self.share = model, share
        self.teacher = (teacher or copy.deepcopy(model)).eval().requires_grad_(False)

    def __call__(self, batch: Batch, smoothing: float = 0.0) -> Loss:
        """Return the loss of a batch; only the objective differs from that of `batch_loss`."""
        with torch.no_grad():
            memory = self.teacher.encode(batch.source, lengths=batch.lengths)
            features = self.teacher.features(memory, batch.targets_in).flatten(0, 1)
            indices = non_padding_indices(batch, self.teacher.pad)
            p_teacher = self.teacher.output(features.index_select(0, indices)).float().softmax(-1)  # [n, V]

        def loss_of(features: Tensor, output: nn.Linear, labels: Tensor, smoothing: float) -> Loss:
            log_p = output(features).float().log_softmax(-1)
            loss = loss_of_log_p(log_p, labels, smoothing)
            distillation = -(p_teacher * log_p).sum()
            return loss._replace(smoothed=(1 - self.share) * loss.smoothed + self.share * distillation)

        return batch_loss(self.model, batch, smoothing, loss_of)


class SoftTargetLoss:
    """The same mean, with the most probable tokens of teachers that the batch contains."""

    def __init__(self, model: SequenceModel, share: float) -> None:
        """Store the model that learns, and a."""
        self.model, self.share = model, share

    def __call__(self, batch: Batch, smoothing: float = 0.0) -> Loss:
        """Return the loss of a batch."""

        def loss_of(features: Tensor, output: nn.Linear, labels: Tensor, smoothing: float) -> Loss:
            return loss_of_target(features, output, Target(labels, smoothing, batch.soft_targets, self.share))

        return batch_loss(self.model, batch, smoothing, loss_of)


def distillation_loss(
    model: SequenceModel, options: TrainingOptions, device: torch.device
) -> DistillationLoss | SoftTargetLoss:
    """Return the loss of `training.distillation_weight`.

    Raises:
        UserError: a teacher is damaged, or its vocabulary differs from that of the first one.
    """
    if options.soft_targets:
        return SoftTargetLoss(model, options.distillation_weight)
    teacher = teachers_of(options).to(device) if options.teachers else None
    return DistillationLoss(model, options.distillation_weight, teacher)
