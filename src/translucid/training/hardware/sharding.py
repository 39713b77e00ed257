"""Sharded weights: each process holds its share of every weight, gradient, moment and average (FSDP2).

This is for models whose weights fit on a device, but not together with gradients, moments and average. The weights of a
block are gathered before it is computed and freed afterwards (Zhao et al. 2023, arXiv 2304.11277; ZeRO stage 3,
Rajbhandari et al. 2020, arXiv 1910.02054). The average is gathered for each validation and checkpoint.

FSDP sums the gradients of a block during the backward pass, like `GradientBuckets`. It does so for each batch of an
accumulated update: to sum them only once, each process would have to hold the gradients of all weights meanwhile.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, distribute_tensor

from translucid.data.batching import Batch
from translucid.models.protocol import SequenceModel
from translucid.runs.tensor_file import refuse_misfits
from translucid.training.hardware.ddp import Workers
from translucid.training.objective import Loss, batch_loss
from translucid.training.weights import Weights, with_prefix


class _ModelAndLoss(nn.Module):
    """Model and loss as one module: FSDP gathers what a module's forward needs."""

    def __init__(self, model: SequenceModel) -> None:
        super().__init__()
        self.model = model

    def forward(self, batch: Batch, smoothing: float) -> Loss:
        return batch_loss(self.model, batch, smoothing)


class ShardedWeights(Weights):
    """The same as `Weights`, with a share of everything in each process."""

    model: SequenceModel

    def __init__(self, model: SequenceModel, device: torch.device, workers: Workers) -> None:
        """Shard the weights block by block, so that the device never holds all of them.

        `model`: on the CPU; FSDP moves a block to the device and shards it before it moves the next one.
        """
        self.device, self.workers = device, workers
        self.complete = copy.deepcopy(model).eval().requires_grad_(False)
        self.model = model.train()
        model_and_loss = _ModelAndLoss(model)
        mesh = init_device_mesh(device.type, (workers.count,))
        stacks = [child for child in model.children() if isinstance(child, nn.ModuleList)]
        for block in chain.from_iterable(stacks):
            fully_shard(block, mesh=mesh)
        fully_shard(model_and_loss, mesh=mesh)
        self.model_and_loss, self.loss = model_and_loss, self._loss
        self.names = [name for name, _ in model.named_parameters()]
        self.parameters = list(model.parameters())
        self.ema = [_local(parameter).detach().clone() for parameter in self.parameters]
        self._empty()

    def rows(self, rows: Batch | None) -> Batch:
        """Return the rows, or an empty row for a process without any, because all processes must gather together."""
        if rows is None:
            rows = Batch(self.model.empty_source(), torch.tensor([[self.model.bos]]), torch.tensor([[self.model.pad]]))
        return rows.to(self.device)

    def _loss(self, rows: Batch, smoothing: float) -> Loss:
        loss: Loss = self.model_and_loss(rows, smoothing)
        # FSDP takes the mean of the gradients over the processes, but a batch is one sum.
        return loss._replace(smoothed=loss.smoothed * self.workers.count)

    def clip_grad_norm(self, max_norm: float) -> Tensor:
        """Clip the norm of the gradient over all processes, as `Weights.clip` does."""
        norm = super().clip_grad_norm(max_norm)
        return norm.full_tensor() if isinstance(norm, DTensor) else norm

    @torch.no_grad()
    def update_ema(self, decay: float) -> None:
        """Update this process's share of the average."""
        torch._foreach_lerp_(self.ema, [_local(parameter) for parameter in self.parameters], 1 - decay)

    @contextmanager
    def ema_model(self) -> Iterator[SequenceModel]:
        """Yield the complete model with the averaged weights; all processes must call this together."""
        for parameter, average in zip(self.complete.parameters(), self._distributed_ema(), strict=True):
            parameter.data = average.full_tensor()
        try:
            yield self.complete.to(self.device)
        finally:
            self._empty()

    def tensors(self) -> dict[str, Tensor]:
        """Return all weights by name: complete in the first process, empty in the others."""
        weights = {
            f"model.{name}": self.full_tensor(p.data) for name, p in zip(self.names, self.parameters, strict=True)
        }
        averages = zip(self.names, self._distributed_ema(), strict=True)
        return {**weights, **{f"averaged.{name}": self.full_tensor(average) for name, average in averages}}

    def load(self, tensors: dict[str, Tensor], file: Path) -> None:
        """Load this process's share of the weights that `tensors` returned."""
        weights, averages = with_prefix("model.", tensors), with_prefix("averaged.", tensors)
        shapes = {name: p.shape for name, p in zip(self.names, self.parameters, strict=True)}
        for named_tensors in (weights, averages):
            refuse_misfits(shapes, {name: tensor.shape for name, tensor in named_tensors.items()}, file)
        for name, parameter, average in zip(self.names, self.parameters, self.ema, strict=True):
            _local(parameter).data.copy_(_local(self.shard(weights[name], parameter)))
            average.copy_(_local(self.shard(averages[name], parameter)))

    def full_tensor(self, tensor: Tensor) -> Tensor:
        """Return the complete tensor on the CPU in the first process, and an empty one in the others.

        No GPU could hold the complete tensors of all weights.
        """
        if not isinstance(tensor, DTensor):
            return tensor
        complete = tensor.full_tensor()
        return complete.cpu() if self.workers.leads else complete.new_empty(0)

    def shard(self, tensor: Tensor, parameter: nn.Parameter) -> Tensor:
        """Return this process's shard; a number of updates, which Adam stores for each weight, stays as it is."""
        if not tensor.dim() or not isinstance(parameter, DTensor):
            return tensor
        return distribute_tensor(tensor.to(self.device), parameter.device_mesh, parameter.placements)

    def _distributed_ema(self) -> Iterator[DTensor]:
        for average, parameter in zip(self.ema, self.parameters, strict=True):
            assert isinstance(parameter, DTensor)
            yield DTensor.from_local(
                average, parameter.device_mesh, parameter.placements, shape=parameter.shape, stride=parameter.stride()
            )

    def _empty(self) -> None:
        """Free the weights of the complete model."""
        for parameter in self.complete.parameters():
            parameter.data = torch.empty(0)


def _local(tensor: Tensor) -> Tensor:
    return tensor.to_local() if isinstance(tensor, DTensor) else tensor
