"""The weights in training and their exponential moving average (EMA), complete in every process.

`torch.compile` generates fused kernels from the graph of a Transformer's forward pass. A graph is compiled for each
length of a batch, which takes a while, so batches are padded to a few lengths. Padding changes no number: no position
attends to it, and the loss does not read it. The number of rows may vary. Packed batches have one shape anyway.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils import parametrize

from translucid.data.batching import Batch
from translucid.ground.errors import UserError
from translucid.kernels.attention import without_cudnn
from translucid.kernels.dispatch import in_reference_mode
from translucid.models.kinds import resolved, task_of
from translucid.models.protocol import Model, SequenceModel
from translucid.runs.tensor_file import load_weights, unshared
from translucid.runs.training_options import TrainingOptions
from translucid.training.hardware.ddp import GradientBuckets, Workers
from translucid.training.objective import Loss, LossFunction, batch_loss, target_loss


class Weights:
    """A model in training and the EMA of its weights; `sharding.py` distributes them over the processes."""

    parameters: list[nn.Parameter]
    """The weights that the optimizer updates."""
    loss: LossFunction
    """The loss of rows of a batch."""
    buckets: GradientBuckets | None = None
    """The buckets in which several processes sum their gradients."""

    def __init__(self, model: Model, device: torch.device, workers: Workers, *, compiles: bool | None = False) -> None:
        """Move the model to the device.

        `compiles`: whether to compile the forward pass of training; None if that is decided later.
        """
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
            self.loss = partial(batch_loss, self.model)
            if compiles is not False:
                self.loss = CompiledLoss(self.model, enabled=bool(compiles))

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


SMALLEST_STEP = 8
"""All lengths are multiples of this, as the tensor cores of GPUs need."""
GRAPHS = 64
"""The maximum number of graphs in a training: more than there are lengths; PyTorch's default is 8."""


class CompiledLoss:
    """`batch_loss` with compiled features; the loss itself is computed in chunks by `kernels.loss`."""

    def __init__(self, model: SequenceModel, backend: str = "inductor", *, enabled: bool = True) -> None:
        """Prepare the compilation, which starts at the first batch.

        Args:
            model: the model.
            backend: that of `torch.compile`; `eager` and `aot_eager` trace the graph and run PyTorch's own kernels.
            enabled: whether to use what is compiled; `training.compile=auto` decides later.
        """
        import torch._inductor.exc  # imported here because it takes seconds

        def features(source: Tensor, targets_in: Tensor) -> Tensor:
            return model.features(model.encode(source), targets_in)

        self.model, self.enabled = model, enabled
        self._seconds_before = _seconds_of_compiling()
        limits: dict[str, Any] = {"recompile_limit": GRAPHS, "isolate_recompiles": True}  # missing in PyTorch's stubs
        self._features = torch.compile(features, backend=backend, fullgraph=True, **limits)
        self._packed_loss = torch.compile(partial(batch_loss, model), backend=backend, fullgraph=True, **limits)

    @property
    def seconds(self) -> float:
        """The seconds spent compiling so far; kernels that Inductor finds in its cache are not compiled again."""
        return _seconds_of_compiling() - self._seconds_before

    def __call__(self, batch: Batch, smoothing: float = 0.0) -> Loss:
        """Return the loss of a batch, as `batch_loss` does.

        Raises:
            UserError: the compiler fails, for instance because this machine has no C++ compiler.
        """
        if not self.enabled or in_reference_mode():  # a compiled graph does not check the mode
            return batch_loss(self.model, batch, smoothing)
        return self.compiled(batch, smoothing)

    def compiled(self, batch: Batch, smoothing: float = 0.0) -> Loss:
        """Return the loss of a batch from compiled kernels.

        Raises:
            UserError: the compiler fails, for instance because this machine has no C++ compiler.
        """
        try:
            with without_cudnn(batch.source.device):
                if batch.packing:
                    return self._packed_loss(batch, smoothing)
                source, targets_in = self._padded(batch)
                for ids in (source, targets_in):
                    torch._dynamo.maybe_mark_dynamic(ids, 0)  # one graph for all numbers of rows
                features = self._features(source, targets_in)
        except (torch._dynamo.exc.BackendCompilerFailed, torch._inductor.exc.InductorError) as error:
            reason = str(error).strip().splitlines()[0]
            fix = "Set training.compile=false, or install a C++ compiler for a CPU, Triton for a GPU."
            raise UserError(f"PyTorch cannot compile the model here ({reason})", fix=fix) from error
        return target_loss(self.model, features[:, : batch.labels.size(1)], batch, smoothing)

    def _padded(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return sources and targets padded on the right; grids all have the same size already."""
        source, targets_in, pad = batch.source, batch.targets_in, self.model.pad
        is_ids = source.dim() == 2 and source.dtype == torch.int64
        longest = targets_in.size(1)
        if is_ids:
            # Both sides get the same length, because each pair of lengths would need its own graph.
            longest = max(longest, source.size(1))
        length = padded_length(longest)
        if self.model.max_length:  # never more than the learned positions, unless the batch itself has more
            length = max(longest, min(length, self.model.max_length))
        if is_ids:
            source = F.pad(source, (0, length - source.size(1)), value=pad)
        return source, F.pad(targets_in, (0, length - targets_in.size(1)), value=pad)


def _seconds_of_compiling() -> float:
    """Return the seconds that this process has spent compiling forward and backward passes."""
    seconds: float = torch._dynamo.utils.calculate_time_spent()["total_wall_time"]
    return seconds


def padded_length(length: int) -> int:
    """Return the length to pad to: 8, 16, 24, 32, 48, 64, 96, 128, 192, 256 and so on."""
    # A step is a quarter of the next power of two, which limits both the padding and the number of lengths.
    step = max(SMALLEST_STEP, 1 << max(0, (length - 1).bit_length() - 2))
    return -(-length // step) * step  # rounded up
