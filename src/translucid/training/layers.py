"""Discriminative learning rates and gradual unfreezing of layers (Howard and Ruder 2018, arXiv 1801.06146)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from torch import nn

from translucid.ground.errors import UserError
from translucid.models.protocol import Model
from translucid.runs.training_options import TrainingOptions


class Layers:
    """The weights of a model in layers, as far as anything is to be different from layer to layer."""

    def __init__(self, model: Model, options: TrainingOptions, parameters: Sequence[nn.Parameter]) -> None:
        """`parameters`: those that training moves.

        Raises:
            UserError: layers are to differ, and the model does not say which is above which.
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
        moved = {id(parameter) for parameter in parameters}
        self.groups = [[parameter for parameter in group if id(parameter) in moved] for group in groups]

    def shares(self) -> Iterator[tuple[float, list[nn.Parameter]]]:
        """Yield the share of the learning rate that each layer gets, decay^-(layers above it), and its weights."""
        top = len(self.groups) - 1
        for place, group in enumerate(self.groups):
            yield self.decay ** (place - top), group

    def begin(self, epoch: int) -> None:
        """Let only those layers move whose time has come: one in epoch 0, counted from the top, two in epoch 1."""
        if self.unfreeze:
            for place, group in enumerate(reversed(self.groups)):
                for parameter in group:
                    parameter.requires_grad_(place <= epoch)
