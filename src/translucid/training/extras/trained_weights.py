"""Which weights a training changes, and how.

freeze, unfreeze     parts of the model do not learn, or only from an epoch on
(Howard and Ruder 2018, arXiv 1801.06146)
adapter_rank         low-rank differences to frozen matrices learn (LoRA, `layers/low_rank.py`)
l2_sp                loss + L/2 |w - w0|^2, w0 the initial weights
(Barone et al. 2017, arXiv 1707.09920, section 3.2)
quantized_weights    the model computes with rounded weights
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import cached_property
from typing import Any

import torch
from torch import nn

from translucid.ground.errors import UserError, nearest
from translucid.layers.low_rank import adapt, differences
from translucid.layers.quantized import quantized_weights
from translucid.models.protocol import Model
from translucid.runs.adapters import save_adapter
from translucid.runs.run_folder import RunFolder
from translucid.training.extras.training_step import INITIAL_MODEL, TrainingStep
from translucid.training.optimizer import layer_groups
from translucid.training.weights import Weights, trainable


class FrozenParts(TrainingStep):
    """Freezes the parts that `training.freeze` names."""

    def prepare(self, model: Model) -> None:
        """Freeze the parts.

        Raises:
            UserError: the model has no such part, or nothing is left to learn.
        """
        freeze(model, self.options.freeze)


class FrozenOutputBias(TrainingStep):
    """Freezes the bias of the output of fine-tuned models in the formats M2M100 and NLLB, which have none."""

    def prepare(self, model: Model) -> None:
        """Freeze the bias."""
        if self.configuration.data.tokenizer.marks_sources:
            freeze(model, ["output.bias"])


class GradualUnfreezing(TrainingStep):
    """Unfreezes one layer more in each epoch, from the top (Howard and Ruder 2018, arXiv 1801.06146)."""

    groups: list[list[nn.Parameter]]

    def begin(self, weights: Weights) -> None:
        """Find the layers.

        Raises:
            UserError: the model does not define an order of its layers.
        """
        self.groups = layer_groups(weights.model, weights.parameters)

    def begin_epoch(self, epoch: int) -> None:
        """Unfreeze the last layer in epoch 0, two layers in epoch 1, and so on."""
        for layers_above, group in enumerate(reversed(self.groups)):
            for parameter in group:
                parameter.requires_grad_(layers_above <= epoch)


class Adapters(TrainingStep):
    """Learns low-rank differences, and saves them in a file of their own."""

    @cached_property
    def _initial_model(self) -> dict[str, str]:
        return self.fingerprint_of_initial_model()

    def fingerprints(self) -> Mapping[str, str]:
        """Return that of the model that the differences belong to."""
        return self._initial_model

    def prepare(self, model: Model) -> None:
        """Add a difference to each matrix that is not frozen.

        Raises:
            UserError: all are frozen.
        """
        if not adapt(model, self.options.adapter_rank, self.options.adapter_scale, self.options.adapter_parts):
            fix = "Name fewer parts."
            raise UserError("training.freeze leaves no matrix that training.adapter_rank is for", fix=fix)

    def save_best(self, run: RunFolder, model: Model, facts: dict[str, Any]) -> None:
        """Save the differences."""
        base = self._initial_model[INITIAL_MODEL]
        save_adapter(run, differences(model), self.options.adapter_scale, base, facts)


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


class QuantizedWeights(TrainingStep):
    """Rounds the weights for each update and validation; their gradients change the exact weights."""

    def computing(self, model: Model) -> AbstractContextManager[None]:
        """Return a context in which the weights are rounded."""
        return quantized_weights(model)


def freeze(model: Model, names: Sequence[str]) -> None:
    """Freeze the parts of a model with these names, including weights that they share with other parts.

    Raises:
        UserError: the model has no such part, or nothing is left to learn.
    """
    for name in names:
        weights = list(_weights_of(model, name))
        if not weights:
            raise UserError(f"training.freeze: the model has no part {name!r}", fix=nearest(name, parts(model)))
        for weight in weights:
            weight.requires_grad_(False)
    if names and not trainable(model):
        raise UserError(f"training.freeze={','.join(names)} leaves nothing to learn", fix="Name fewer parts.")


def parts(model: Model) -> list[str]:
    """Return the names of all parts: `embeddings`, and all modules with weights, the outer ones first."""
    modules = set[str]()
    for name, _ in model.named_parameters(remove_duplicate=False):
        # `encoder.0.norm.weight` belongs to `encoder.0.norm`, `encoder.0` and `encoder`.
        while name := name.rpartition(".")[0]:
            modules.add(name)
    return ["embeddings", *sorted(modules, key=lambda name: (name.count("."), name))]


def _weights_of(model: Model, part: str) -> Iterator[nn.Parameter]:
    """Yield the weights of a part; the norm after a stack of blocks belongs to the stack."""
    if part == "embeddings":
        for module in model.modules():
            if isinstance(module, nn.Embedding):
                yield from module.parameters()
    for name, weight in model.named_parameters(remove_duplicate=False):
        if name == part or name.startswith((f"{part}.", f"{part}_norm.")):
            yield weight
