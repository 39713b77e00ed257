"""NAdam (Dozat 2016) that can skip an update without a decision on the host."""

from __future__ import annotations

import torch
from torch import Tensor


class NAdam(torch.optim.NAdam):
    """`torch.optim.NAdam`, which has no counterpart to the `found_inf` of Adam."""

    @torch.no_grad()
    def step(self, finite: Tensor | None = None) -> None:  # type: ignore[override]
        """Update the weights; if `finite` [] is given and False, weights and moments stay unchanged."""
        if finite is None:
            super().step()
            return
        weights = [weight for group in self.param_groups for weight in group["params"] if weight.grad is not None]
        tensors: list[Tensor] = list(weights)
        for weight in weights:
            if not self.state.get(weight):
                # Weights without moments have nothing to return to, so their first update is decided on the host.
                if finite:
                    super().step()
                return
            tensors += self.state[weight].values()
        copies = [tensor.clone() for tensor in tensors]
        super().step()
        for tensor, unchanged in zip(tensors, copies, strict=True):
            tensor.copy_(torch.where(finite, tensor, unchanged))
