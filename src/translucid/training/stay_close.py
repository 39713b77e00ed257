"""Knowledge distillation and L2-SP against catastrophic forgetting in fine-tuning.

Two ways, each with the first model, which stays as it was:

    l2_sp   loss + L/2 |w - w0|^2, w0 its weights              (Barone et al. 2017, arXiv 1707.09920, section 3.2)
    distillation_weight   (1 - a) loss + a sum_v -p0(v) log p(v), p0 what it would say next
                                                        (Khayrallah et al. 2018, W18-2705, section 2.2, equation 4)
"""

from __future__ import annotations

import copy
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from translucid.data.batching import Batch
from translucid.models.protocol import SequenceModel
from translucid.training.objective import Loss, batch_loss, loss_of_log_p, real_places


class L2SP:
    """The weights that a training began with, and the pull towards them."""

    def __init__(self, parameters: Sequence[nn.Parameter], strength: float) -> None:
        """`parameters`: as they are at the beginning; `strength`: L."""
        self.parameters, self.strength = parameters, strength
        self.first = [parameter.detach().clone() for parameter in parameters]

    @torch.no_grad()
    def pull(self) -> None:
        """Add the derivative L (w - w0) to the gradients, which are those of a mean over tokens."""
        for parameter, first in zip(self.parameters, self.first, strict=True):
            if parameter.grad is not None:
                parameter.grad.add_(parameter - first, alpha=self.strength)


class DistillationLoss:
    """The loss of a batch, a share of which is the cross-entropy to what the first model would say."""

    def __init__(self, model: SequenceModel, share: float) -> None:
        """Keep the first model: `model` as it is now; `share`: a."""
        self.model, self.share = model, share
        self.first = copy.deepcopy(model).eval().requires_grad_(False)

    def __call__(self, batch: Batch, smoothing: float = 0.0) -> Loss:
        """See `batch_loss`; all figures but what is minimised are as there."""
        with torch.no_grad():
            memory = self.first.encode(batch.source, lengths=batch.lengths)
            features = self.first.features(memory, batch.targets_in).flatten(0, 1)
            places = real_places(batch, self.first.pad)
            first = self.first.output(features.index_select(0, places)).float().softmax(-1)

        def loss_of(features: Tensor, output: nn.Linear, labels: Tensor, smoothing: float) -> Loss:
            log_p = output(features).float().log_softmax(-1)
            loss = loss_of_log_p(log_p, labels, smoothing)
            difference = -(first * log_p).sum()
            return loss._replace(smoothed=(1 - self.share) * loss.smoothed + self.share * difference)

        return batch_loss(self.model, batch, smoothing, loss_of)
