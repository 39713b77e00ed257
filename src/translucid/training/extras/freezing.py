"""Which weights are trained: `training.freeze`, and gradual unfreezing, `training.unfreeze`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from torch import nn

from translucid.ground.errors import UserError, nearest
from translucid.models.protocol import Model
from translucid.training.extras.training_step import TrainingStep
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
