"""The weights that are learned and their running average, whole in every process."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from translucid.data.batching import Batch
from translucid.models.classifier import Classifier
from translucid.models.language.model import LanguageModel
from translucid.models.protocol import Model, SequenceModel
from translucid.runs.weight_loading import load_weights, unshared
from translucid.training.compiled import CompiledLoss
from translucid.training.gradient_buckets import GradientBuckets
from translucid.training.objective import Loss, batch_loss, label_loss
from translucid.training.stream_loss import StreamLoss
from translucid.training.workers import Workers


class Weights:
    """A model in training and the average of its weights; `sharding.py` has the same in parts."""

    parameters: list[nn.Parameter]
    """What the optimiser moves."""
    loss: Callable[[Batch, float], Loss]
    """The loss of rows of a batch, with so much label smoothing."""
    stream: StreamLoss | None = None
    """The same, if the model carries something from one batch to the next."""
    buckets: GradientBuckets | None = None
    """How several processes sum their gradients."""

    def __init__(self, model: Model, device: torch.device, workers: Workers, *, compiles: bool = False) -> None:
        """Put the model on the device; `compiles`: whether the forward pass of training is compiled."""
        self.device, self.workers = device, workers
        self.model = model.to(device).train()
        self.averaged = copy.deepcopy(self.model).eval().requires_grad_(False)
        for module in self.averaged.modules():
            if isinstance(module, nn.RNNBase):  # whose copied weights are no longer one block, as cuDNN wants them
                module.flatten_parameters()
        self.parameters = moved(self.model)
        if workers.count > 1:
            self.buckets = GradientBuckets(self.parameters)
        whole = zip(self.averaged.parameters(), self.model.parameters(), strict=True)
        self._averages: list[Tensor] = [average for average, parameter in whole if parameter.requires_grad]
        self.stream = StreamLoss(self.model) if isinstance(self.model, LanguageModel) else None
        if isinstance(self.model, SequenceModel):
            self.loss = self.stream or partial(batch_loss, self.model)
            if compiles:
                self.loss = CompiledLoss(self.model)
        else:
            assert isinstance(self.model, Classifier)
            self.loss = partial(label_loss, self.model)

    def rows(self, rows: Batch | None) -> Batch | None:
        """Return this process's rows of a batch, if it has any, where the model is."""
        if rows is None or self.device.type == "cpu":
            return rows
        return rows.prepared().to(self.device)

    def backward(self, loss: Tensor, *, last: bool) -> None:
        """Add the gradients of a loss; in the last backward pass of an update, start to sum them over the processes."""
        if last and self.buckets:
            self.buckets.overlap()
        loss.backward()

    def sum_gradients(self) -> None:
        """Return when the gradients are sums over the processes."""
        if self.buckets:
            self.buckets.finish()

    def clip(self, longest: float) -> Tensor:
        """Shorten the gradient to this length, and return the length that it had, []."""
        return nn.utils.clip_grad_norm_(self.parameters, longest)

    @torch.no_grad()
    def average(self, decay: float) -> None:
        """averaged = decay * averaged + (1 - decay) * weights."""
        torch._foreach_lerp_(self._averages, [*self.parameters], 1 - decay)

    @contextmanager
    def averaged_model(self) -> Iterator[Model]:
        """Give the model with the averaged weights, in evaluation mode; all processes must ask for it together.

        A matrix that has a difference of low rank is added up once, not with every use.
        """
        with parametrize.cached():
            yield self.averaged

    def tensors(self) -> dict[str, Tensor]:
        """Return all weights by name, complete; all processes must ask together."""
        parts = {"model": self.model, "averaged": self.averaged}
        return {f"{part}.{name}": tensor for part, model in parts.items() for name, tensor in unshared(model).items()}

    def load(self, tensors: dict[str, Tensor], file: Path) -> None:
        """Take over what `tensors` returned.

        Raises:
            UserError: it does not fit; `file` is where it comes from.
        """
        load_weights(self.model, under("model.", tensors), file)
        load_weights(self.averaged, under("averaged.", tensors), file)

    def whole(self, tensor: Tensor) -> Tensor:
        """Return a tensor of the optimiser complete; all processes must ask together."""
        return tensor

    def part(self, tensor: Tensor, parameter: nn.Parameter) -> Tensor:
        """Return what this process holds of a complete tensor of the optimiser."""
        return tensor


def moved(model: Model) -> list[nn.Parameter]:
    """Return the weights that training moves: all but those of a frozen network."""
    return [parameter for parameter in model.parameters() if parameter.requires_grad]


def under(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return the tensors whose names begin with a prefix, without it."""
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}
