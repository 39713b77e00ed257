"""Discriminative learning rates and gradual unfreezing of layers (Howard and Ruder 2018, arXiv 1801.06146)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from torch import nn

from translucid.ground.errors import UserError
from translucid.models.protocol import Model
from translucid.runs.training_options import TrainingOptions


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
