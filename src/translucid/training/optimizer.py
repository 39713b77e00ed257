"""What moves the weights: Adam, NAdam, or Muon for the matrices within the layers and Adam for all else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from translucid.models.protocol import Model
from translucid.runs.training_options import TrainingOptions
from translucid.training.layers import Layers
from translucid.training.muon import Muon

ADAM: dict[str, Any] = {"betas": (0.9, 0.98), "eps": 1e-9}
"""As in arXiv 1706.03762, section 5.3."""


class Optimizer:
    """One optimiser or two, which share the parameters of a model among them."""

    def __init__(
        self, options: TrainingOptions, model: Model, parameters: Sequence[nn.Parameter], *, bfloat16: bool
    ) -> None:
        """Nothing has moved yet.

        Args:
            options: which optimisers.
            model: the model.
            parameters: all of the model's, by whose places in this list the moments are known.
            bfloat16: whether Muon may make its products in that type.

        Raises:
            UserError: layers are to have rates of their own, and the model does not say which is above which.
        """
        self.parameters = parameters
        rate = options.learning_rate
        muon = {id(matrix) for matrix in inner_matrices(model)} if options.optimizer == "muon" else set()
        layers = Layers(model, options, parameters)
        groups: list[dict[str, Any]] = []
        matrices: list[dict[str, Any]] = []
        for share, group in layers.shares():
            for chosen, wanted in ((matrices, True), (groups, False)):
                if own := [parameter for parameter in group if (id(parameter) in muon) is wanted]:
                    chosen.append({"params": own, "share": share})
        self.layers = layers
        on_cuda = all(parameter.device.type == "cuda" for parameter in parameters)
        self.skips_on_device = on_cuda and options.optimizer != "nadam" and not options.sharded
        """Whether `step` can skip an update without the host knowing."""
        self.parts: list[torch.optim.Optimizer] = []
        if matrices:
            self.parts.append(Muon(matrices, lr=rate, bfloat16=bfloat16))
        if options.optimizer == "nadam":
            self.parts.append(torch.optim.NAdam(groups, lr=rate, **ADAM))
        elif groups:
            self.parts.append(torch.optim.Adam(groups, lr=rate, fused=True, **ADAM))

    def step(self, rate: float, finite: Tensor | None = None) -> None:
        """Make an update at this learning rate, and forget the gradients.

        `finite`: boolean [] on the device; where it is False, weights and moments stay as they are. Only for
        optimisers that skip on the device.
        """
        for part in self.parts:
            for group in part.param_groups:
                group["lr"] = rate * group["share"]
            if isinstance(part, Muon):
                part.step(finite)
                continue
            if finite is not None:
                part.found_inf = (~finite).float()  # type: ignore[attr-defined]  # which PyTorch's gradient scaler sets
            part.step()
        self.zero_grad()

    def zero_grad(self) -> None:
        """Forget the gradients."""
        for part in self.parts:
            part.zero_grad(set_to_none=True)

    def moments(self) -> dict[int, dict[str, Tensor]]:
        """Return what is remembered of each parameter, by its place, as far as there is anything."""
        found = {}
        for place, parameter in enumerate(self.parameters):
            for part in self.parts:
                if state := part.state.get(parameter):
                    found[place] = state
        return found

    def restore(self, moments: dict[int, dict[str, Tensor]]) -> None:
        """Take over what `moments` returned."""
        places = {id(parameter): place for place, parameter in enumerate(self.parameters)}
        for part in self.parts:
            own = [places[id(parameter)] for group in part.param_groups for parameter in group["params"]]
            state = {i: moments[place] for i, place in enumerate(own) if place in moments}
            part.load_state_dict({**part.state_dict(), "state": state})
            if isinstance(part, torch.optim.NAdam):
                # PyTorch reads it on the host, weight by weight, but moves it to the weights' device when it loads.
                for moved in part.state.values():
                    moved["mu_product"] = moved["mu_product"].cpu()


def inner_matrices(model: Model) -> list[nn.Parameter]:
    """Return the matrices that take one state of a model to another: all but embeddings and output projection.

    Kernels of convolutions are among them, but for those that read pixels.
    """
    output = getattr(model, "output", None)
    outer = {id(output.weight)} if output is not None else set()
    outer |= {id(module.weight) for module in model.modules() if isinstance(module, nn.Embedding)}
    kernels = {id(module.weight) for module in model.modules() if isinstance(module, nn.Conv2d)}
    inner = (p for p in model.parameters() if p.requires_grad and p.ndim >= 2 and id(p) not in outer)
    return [p for p in inner if p.ndim == 2 or (id(p) in kernels and p.size(1) > 3)]
