"""L2-SP, `training.l2_sp`: regularization towards the initial weights, against catastrophic forgetting in fine-tuning.

loss + L/2 |w - w0|^2, w0 the initial weights       (Barone et al. 2017, arXiv 1707.09920, section 3.2)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import nn

from translucid.training.extras.training_step import TrainingStep
from translucid.training.weights import Weights


class L2SP:
    """Regularization towards the weights at the beginning of a training."""

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


class L2SPStep(TrainingStep):
    """Pulls the weights in each update."""

    needs_initial_weights = True
    l2_sp: L2SP

    def fingerprints(self) -> Mapping[str, str]:
        """Return that of the initial model."""
        return self.fingerprint_of_initial_model()

    def begin(self, weights: Weights) -> None:
        """Remember the initial weights."""
        self.l2_sp = L2SP(weights.parameters, self.options.l2_sp)

    def change_gradients(self) -> None:
        """Pull the weights."""
        self.l2_sp.pull()
