"""The weights in training and their exponential moving average (EMA), complete in every process."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from translucid.data.batching import Batch
from translucid.models.kinds import resolved, task_of
from translucid.models.protocol import Model, SequenceModel
from translucid.runs.tensor_file import load_weights, unshared
from translucid.runs.training_options import TrainingOptions
from translucid.training.hardware.compiled import CompiledLoss
from translucid.training.hardware.ddp import GradientBuckets, Workers
from translucid.training.objective import LossFunction, batch_loss


class Weights:
    """A model in training and the EMA of its weights; `sharding.py` distributes them over the processes."""

    parameters: list[nn.Parameter]
    """The weights that the optimizer updates."""
    loss: LossFunction
    """The loss of rows of a batch."""
    buckets: GradientBuckets | None = None
    """The buckets in which several processes sum their gradients."""

    def __init__(self, model: Model, device: torch.device, workers: Workers, *, compiles: bool = False) -> None:
        """Move the model to the device; `compiles`: whether to compile the forward pass of training."""
        self.device, self.workers = device, workers
        self.model = model.to(device).train()
        self.ema_copy = copy.deepcopy(self.model).eval().requires_grad_(False)
        for module in self.ema_copy.modules():
            if isinstance(module, nn.RNNBase):  # cuDNN needs the weights in one block, which copying has split
                module.flatten_parameters()
        self.parameters = trainable(self.model)
        if workers.count > 1:
            self.buckets = GradientBuckets(self.parameters)
        pairs = zip(self.ema_copy.parameters(), self.model.parameters(), strict=True)
        self._ema: list[Tensor] = [average for average, parameter in pairs if parameter.requires_grad]
        if loss := task_of(model.options.reads).loss:
            self.loss = resolved(loss)(self.model)
        else:
            assert isinstance(self.model, SequenceModel)
            self.loss = CompiledLoss(self.model) if compiles else partial(batch_loss, self.model)

    def rows(self, rows: Batch | None) -> Batch | None:
        """Return this process's rows of a batch, if it has any, on the device."""
        if rows is None or self.device.type == "cpu":
            return rows
        return rows.prepared().to(self.device)

    def backward(self, loss: Tensor, *, last: bool) -> None:
        """Add the gradients of a loss; in the last backward pass of an update, start to sum them over the processes."""
        if last and self.buckets:
            self.buckets.overlap()
        loss.backward()

    def sum_gradients(self) -> None:
        """Wait until each gradient is the sum over the processes."""
        if self.buckets:
            self.buckets.finish()

    def clip_grad_norm(self, max_norm: float) -> Tensor:
        """Clip the norm of the gradient to `max_norm`; return the original norm []."""
        return nn.utils.clip_grad_norm_(self.parameters, max_norm)

    @torch.no_grad()
    def update_ema(self, decay: float) -> None:
        """Update the exponential moving average: averaged = decay * averaged + (1 - decay) * weights."""
        torch._foreach_lerp_(self._ema, [*self.parameters], 1 - decay)

    @contextmanager
    def ema_model(self) -> Iterator[Model]:
        """Yield the model with the averaged weights, in evaluation mode; all processes must call this together."""
        with parametrize.cached():  # adds a low-rank difference to its matrix once, instead of at each use
            yield self.ema_copy

    def tensors(self) -> dict[str, Tensor]:
        """Return all weights by name, complete; all processes must call this together."""
        tensors = {f"model.{name}": tensor for name, tensor in unshared(self.model).items()}
        return tensors | {f"averaged.{name}": tensor for name, tensor in unshared(self.ema_copy).items()}

    def load(self, tensors: dict[str, Tensor], file: Path) -> None:
        """Load the weights that `tensors` returned, from a checkpoint in `file`.

        Raises:
            UserError: they do not fit the model.
        """
        load_weights(self.model, with_prefix("model.", tensors), file)
        load_weights(self.ema_copy, with_prefix("averaged.", tensors), file)

    def full_tensor(self, tensor: Tensor) -> Tensor:
        """Return a complete tensor of the optimizer's state; all processes must call this together."""
        return tensor

    def shard(self, tensor: Tensor, parameter: nn.Parameter) -> Tensor:
        """Return this process's part of a complete tensor of the optimizer's state."""
        return tensor


def trainable(model: nn.Module) -> list[nn.Parameter]:
    """Return the weights that training updates: all that are not frozen."""
    return [weight for weight in model.parameters() if weight.requires_grad]


def sizes(model: nn.Module) -> tuple[int, int]:
    """Return the numbers of trainable and of frozen weights."""
    total = sum(weight.numel() for weight in model.parameters())
    learned = sum(weight.numel() for weight in trainable(model))
    return learned, total - learned


def is_sharded(options: TrainingOptions, workers: Workers) -> bool:
    """Whether each process has a part of the weights; a single one has them all."""
    return options.sharded and workers.count > 1


def with_prefix(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return the tensors whose names begin with a prefix, under their names without it."""
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}
