"""Updates as one CUDA graph (`training.captured`).

A GPU computes an update of a small model faster than the host can launch its kernels (`kernels/cuda_graph.py`). Each
batch is copied into the memory of the recorded one. Packed batches have the one shape that this needs. The learning
rate is read from memory, too. PyTorch lets dropout draw new random numbers in each replay.

The host decides nothing within an update: the optimizer skips one that is not finite by itself.
"""

from __future__ import annotations

import torch
from torch import Tensor

from translucid.data.batching import Batch
from translucid.kernels.cuda_graph import Captured
from translucid.kernels.rounding import mixed_precision
from translucid.runs.training_options import TrainingOptions
from translucid.training.hardware.ddp import Workers
from translucid.training.optimizer import Optimizer
from translucid.training.weights import Weights

EXTRAS = "guided_alignment", "distillation_weight", "l2_sp", "quantized_weights", "adapter_rank", "deterministic"
"""Settings with which updates are not captured."""


def reason_against(options: TrainingOptions, device: torch.device, workers: Workers) -> str:
    """Return why updates can't be captured: a device or a setting; empty if they can."""
    if device.type != "cuda":
        return f"the device {device.type}"
    if workers.count > 1:
        return "several processes"
    if options.accumulate > 1:
        return "training.accumulate"
    if options.optimizer == "nadam":
        return "training.optimizer=nadam"
    return next((f"training.{name}" for name in EXTRAS if getattr(options, name)), "")


class CapturedUpdate:
    """An update from a packed batch and a learning rate; all updates but the first ones replay the same graph."""

    def __init__(self, weights: Weights, optimizer: Optimizer, options: TrainingOptions, *, bfloat16: bool) -> None:
        """Prepare updates of weights on a CUDA device; `bfloat16`: whether to compute products in it."""
        self.weights, self.optimizer, self.options, self.bfloat16 = weights, optimizer, options, bfloat16
        self._rate = torch.zeros((), device=weights.device)
        self._inputs: Batch | None = None
        """The batch on the device whose memory the graph reads."""
        self._captured: Captured[Tensor]

    def __call__(self, batch: Batch, rate: float) -> Tensor:
        """Make an update with a batch in pinned memory and a learning rate; return its figures as `_update` does."""
        self._rate.fill_(rate)
        if self._inputs is None or _shapes(batch) != _shapes(self._inputs):
            inputs = batch.to(self.weights.device)
            if self._inputs is not None and self._captured.is_captured:
                return self._update(inputs)  # a pair that is too long for the shape of the other batches
            self._inputs = inputs
            self._captured = Captured(lambda: self._update(inputs), self.weights.device)
        else:
            for memory, tensor in zip(_tensors(self._inputs), _tensors(batch), strict=True):
                memory.copy_(tensor, non_blocking=True)
        return self._captured()

    def _update(self, batch: Batch) -> Tensor:
        """Make an update and return its figures [8], those of the trainer; the clock and the signal are 0."""
        with mixed_precision(self.weights.device, enabled=self.bfloat16):
            loss = self.weights.loss(batch, self.options.label_smoothing)
        assert isinstance(loss.tokens, Tensor)
        (loss.smoothed / loss.tokens).backward()
        norm = self.weights.clip_grad_norm(self.options.clip_norm)
        zero = torch.zeros((), dtype=torch.float64, device=norm.device)
        figures = [loss.cross_entropy, loss.correct, loss.tokens, zero, zero, zero, zero, norm]
        self.optimizer.step(self._rate, loss.cross_entropy.isfinite() & norm.isfinite())
        return torch.stack([figure.double() for figure in figures])


def _tensors(batch: Batch) -> list[Tensor]:
    """Return everything that a loss reads of a packed batch."""
    assert batch.packing
    tensors = [batch.source, batch.targets_in, batch.labels]
    for sentences in batch.packing:
        tensors += [sentences.offsets, sentences.number, sentences.position]
    return tensors


def _shapes(batch: Batch) -> list[object]:
    """Return what all batches of a graph have in common."""
    assert batch.packing
    return [tensor.shape for tensor in _tensors(batch)] + [sentences.longest for sentences in batch.packing]
