"""The optimisers: Adam, NAdam, or Muon for the matrices within the layers and Adam for all other weights."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

import torch
from torch import Tensor, nn

from translucid.models.protocol import Model
from translucid.runs.training_options import TrainingOptions
from translucid.training.frozen import trainable
from translucid.training.layers import Layers
from translucid.training.muon import Muon
from translucid.training.nadam import NAdam

ADAM: dict[str, Any] = {"betas": (0.9, 0.98), "eps": 1e-9}
"""As in arXiv 1706.03762, section 5.3."""


class Optimizer:
    """One optimiser or two, each for some parameters of a model."""

    def __init__(
        self, options: TrainingOptions, model: Model, parameters: Sequence[nn.Parameter], *, bfloat16: bool
    ) -> None:
        """Create the optimisers.

        Args:
            options: the choice of optimisers, and their settings.
            model: the model.
            parameters: the trainable weights of the model; checkpoints name moments by the index in this list.
            bfloat16: whether Muon may compute its products in bfloat16.

        Raises:
            UserError: the options treat layers differently, and the model does not define an order of its layers.
        """
        self.parameters = parameters
        rate = options.learning_rate
        muon_ids = set(map(id, inner_matrices(model))) if options.optimizer == "muon" else set()
        self.layers = Layers(model, options, parameters)
        groups: list[dict[str, Any]] = []
        matrices: list[dict[str, Any]] = []
        for share, layer in self.layers.shares():
            muon_weights = [parameter for parameter in layer if id(parameter) in muon_ids]
            other_weights = [parameter for parameter in layer if id(parameter) not in muon_ids]
            # PyTorch rejects optimisers without parameters, so leave out empty groups.
            if muon_weights:
                matrices.append({"params": muon_weights, "share": share})
            if other_weights:
                groups.append({"params": other_weights, "share": share})
        self.skips_on_device = all(parameter.device.type == "cuda" for parameter in parameters)
        """Whether `step` can skip an update by itself, so that the host need not wait for the loss."""
        self.optimizers: list[torch.optim.Optimizer] = []
        if matrices:
            self.optimizers.append(Muon(matrices, lr=rate, bfloat16=bfloat16))
        if options.optimizer == "nadam":
            self.optimizers.append(NAdam(groups, lr=rate, capturable=self.skips_on_device, **ADAM))
        elif groups:
            self.optimizers.append(torch.optim.Adam(groups, lr=rate, fused=True, **ADAM))

    def step(self, rate: float, finite: Tensor | None = None) -> None:
        """Update the weights with this learning rate, and clear the gradients.

        `finite`: boolean [] on the device; if it is False, weights and moments stay unchanged.
        """
        for optimizer in self.optimizers:
            for group in optimizer.param_groups:
                group["lr"] = rate * group["share"]
            if isinstance(optimizer, Muon | NAdam):
                optimizer.step(finite)
                continue
            if finite is not None:
                # PyTorch's gradient scaler skips updates through this attribute too.
                optimizer.found_inf = (~finite).float()  # type: ignore[attr-defined]
            optimizer.step()
        self.zero_grad()

    def zero_grad(self) -> None:
        """Clear the gradients."""
        for optimizer in self.optimizers:
            optimizer.zero_grad(set_to_none=True)

    def moments(self) -> dict[int, dict[str, Tensor]]:
        """Return the state of each parameter that has one, such as its moments, by the parameter's index."""
        states = {}
        for index, parameter in enumerate(self.parameters):
            for optimizer in self.optimizers:
                state = optimizer.state.get(parameter)
                if state:
                    states[index] = state
        return states

    def restore(self, moments: dict[int, dict[str, Tensor]]) -> None:
        """Restore the states that `moments` returned."""
        indices = {id(parameter): index for index, parameter in enumerate(self.parameters)}
        for optimizer in self.optimizers:
            # PyTorch numbers the parameters of an optimiser through all its groups.
            parameters = chain.from_iterable(group["params"] for group in optimizer.param_groups)
            numbered = enumerate(indices[id(parameter)] for parameter in parameters)
            state = {number: moments[index] for number, index in numbered if index in moments}
            optimizer.load_state_dict({**optimizer.state_dict(), "state": state})
            if isinstance(optimizer, NAdam) and not optimizer.defaults["capturable"]:
                # Loading moves this number to the weights' device, but PyTorch reads it on the host for each weight.
                for loaded in optimizer.state.values():
                    loaded["mu_product"] = loaded["mu_product"].cpu()


def inner_matrices(model: Model) -> list[nn.Parameter]:
    """Return the matrices between two states of a model: all except embeddings and the output projection.

    They include the kernels of convolutions, except those that read pixels.
    """
    output = getattr(model, "output", None)
    outer_ids = {id(module.weight) for module in model.modules() if isinstance(module, nn.Embedding)}
    if output is not None:
        outer_ids.add(id(output.weight))
    convolutions = [module.weight for module in model.modules() if isinstance(module, nn.Conv2d)]
    # Kernels with 3 input channels, the colours, read pixels.
    kernel_ids = {id(kernel) for kernel in convolutions if kernel.size(1) > 3}
    matrices = [weight for weight in trainable(model) if weight.ndim == 2 or id(weight) in kernel_ids]
    return [matrix for matrix in matrices if id(matrix) not in outer_ids]
