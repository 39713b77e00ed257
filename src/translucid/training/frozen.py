"""Which weights are trained, and how fast: freezing of parts of a model, and gradual unfreezing of its layers.

`freeze` is for `training.freeze`. `Layers` has the discriminative learning rates and the gradual unfreezing of Howard
and Ruder 2018 (arXiv 1801.06146).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from torch import nn

from translucid.ground.errors import UserError, nearest
from translucid.models.protocol import Model
from translucid.runs.training_options import TrainingOptions


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


def trainable(model: nn.Module) -> list[nn.Parameter]:
    """Return the weights that training updates: all that are not frozen."""
    return [weight for weight in model.parameters() if weight.requires_grad]


def sizes(model: nn.Module) -> tuple[int, int]:
    """Return the numbers of trainable and of frozen weights."""
    total = sum(weight.numel() for weight in model.parameters())
    learned = sum(weight.numel() for weight in trainable(model))
    return learned, total - learned


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


class Layers:
    """The weights of a model by layer, or all in one group if the layers are trained alike."""

    def __init__(self, model: Model, options: TrainingOptions, parameters: Sequence[nn.Parameter]) -> None:
        """Group the `parameters` that training updates.

        Raises:
            UserError: the options treat layers differently, and the model does not define an order of its layers.
        """
        self.decay, self.unfreeze = options.layer_decay, options.unfreeze
        self.groups = [[*parameters]]
        if self.decay == 1 and not self.unfreeze:
            return
        try:
            groups = model.layer_groups()
        except NotImplementedError as error:
            what = "training.layer_decay and training.unfreeze are for language models and classifiers"
            raise UserError(what, fix="Leave them out.") from error
        trained = set(map(id, parameters))
        self.groups = []
        for group in groups:
            self.groups.append([parameter for parameter in group if id(parameter) in trained])

    def shares(self) -> Iterator[tuple[float, list[nn.Parameter]]]:
        """Yield the factor of each layer's learning rate, decay^-(layers above it), and the weights of the layer."""
        top = len(self.groups) - 1
        for layer, group in enumerate(self.groups):
            yield self.decay ** (layer - top), group

    def begin(self, epoch: int) -> None:
        """Unfreeze one layer more in each epoch, from the top: the last layer in epoch 0, two layers in epoch 1."""
        if self.unfreeze:
            for layers_above, group in enumerate(reversed(self.groups)):
                for parameter in group:
                    parameter.requires_grad_(layers_above <= epoch)
