"""The weights in parts: each process holds its share of every weight, gradient, moment and average (FSDP2).

For models whose weights fit on a device but not five times over. A block's weights are gathered when it is at work and
let go after it (Zhao et al. 2023, arXiv 2304.11277; ZeRO stage 3, Rajbhandari et al. 2020, arXiv 1910.02054). To
validate and to save, the average is gathered once.

FSDP sums the gradients of a block during the backward pass, like `gradient_buckets.py`. It does so for each batch of an
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
from translucid.training.objective import Loss, batch_loss
from translucid.training.weights import Weights, under
from translucid.training.workers import Workers


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
        """Cut the weights, block by block, so that the device never holds all of them.

        `model`: on the CPU; FSDP moves a block to the device and cuts it before it moves the next one.
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
        self.averages = [_local(parameter).detach().clone() for parameter in self.parameters]
        self._empty()

    def rows(self, rows: Batch | None) -> Batch:
        """See `Weights`; who has no rows goes along with one that asks nothing, as all must gather together."""
        if rows is None:
            rows = Batch(self.model.empty_source(), torch.tensor([[self.model.bos]]), torch.tensor([[self.model.pad]]))
        return rows.to(self.device)

    def _loss(self, rows: Batch, smoothing: float) -> Loss:
        loss: Loss = self.model_and_loss(rows, smoothing)
        # FSDP takes the mean of the gradients over the processes, but a batch is one sum.
        return loss._replace(smoothed=loss.smoothed * self.workers.count)

    def clip(self, longest: float) -> Tensor:
        """See `Weights`."""
        norm = super().clip(longest)
        return norm.full_tensor() if isinstance(norm, DTensor) else norm

    @torch.no_grad()
    def average(self, decay: float) -> None:
        """See `Weights`."""
        torch._foreach_lerp_(self.averages, [_local(parameter) for parameter in self.parameters], 1 - decay)

    @contextmanager
    def averaged_model(self) -> Iterator[SequenceModel]:
        """See `Weights`."""
        for parameter, average in zip(self.complete.parameters(), self._distributed_averages(), strict=True):
            parameter.data = average.full_tensor()
        try:
            yield self.complete.to(self.device)
        finally:
            self._empty()

    def tensors(self) -> dict[str, Tensor]:
        """See `Weights`."""
        weights = {f"model.{name}": self.whole(p.data) for name, p in zip(self.names, self.parameters, strict=True)}
        averages = zip(self.names, self._distributed_averages(), strict=True)
        return {**weights, **{f"averaged.{name}": self.whole(average) for name, average in averages}}

    def load(self, tensors: dict[str, Tensor], file: Path) -> None:
        """See `Weights`."""
        weights, averages = under("model.", tensors), under("averaged.", tensors)
        shapes = {name: p.shape for name, p in zip(self.names, self.parameters, strict=True)}
        for named_tensors in (weights, averages):
            refuse_misfits(shapes, {name: tensor.shape for name, tensor in named_tensors.items()}, file)
        for name, parameter, average in zip(self.names, self.parameters, self.averages, strict=True):
            _local(parameter).data.copy_(_local(self.part(weights[name], parameter)))
            average.copy_(_local(self.part(averages[name], parameter)))

    def whole(self, tensor: Tensor) -> Tensor:
        """See `Weights`; the first process has it on its CPU and the others nothing, as no GPU may hold all of them."""
        if not isinstance(tensor, DTensor):
            return tensor
        complete = tensor.full_tensor()
        return complete.cpu() if self.workers.leads else complete.new_empty(0)

    def part(self, tensor: Tensor, parameter: nn.Parameter) -> Tensor:
        """See `Weights`; a count of updates has no parts."""
        if not tensor.dim() or not isinstance(parameter, DTensor):
            return tensor
        return distribute_tensor(tensor.to(self.device), parameter.device_mesh, parameter.placements)

    def _distributed_averages(self) -> Iterator[DTensor]:
        for average, parameter in zip(self.averages, self.parameters, strict=True):
            assert isinstance(parameter, DTensor)
            yield DTensor.from_local(
                average, parameter.device_mesh, parameter.placements, shape=parameter.shape, stride=parameter.stride()
            )

    def _empty(self) -> None:
        """Let go of the whole model's weights."""
        for parameter in self.complete.parameters():
            parameter.data = torch.empty(0)


def _local(tensor: Tensor) -> Tensor:
    return tensor.to_local() if isinstance(tensor, DTensor) else tensor
