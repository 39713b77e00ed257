"""The forward pass of a Transformer as one graph, of which `torch.compile` makes kernels that do more at once.

A graph is compiled for each length that it meets, which takes a while, so batches are padded to a few lengths. What is
padded changes no number: nothing attends to it, and the loss does not read it. Rows may be any number.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from translucid.data.batching import Batch
from translucid.ground.errors import UserError
from translucid.kernels.attention import without_cudnn
from translucid.kernels.dispatch import in_reference_mode
from translucid.models.protocol import SequenceModel
from translucid.training.objective import Loss, batch_loss, target_loss

SMALLEST_STEP = 8
"""Lengths are multiples of it, as the fast units of GPUs want them."""
GRAPHS = 64
"""Different graphs of one training, more than there are lengths; PyTorch gives up after 8 by itself."""


class CompiledLoss:
    """`batch_loss` with compiled features; the loss itself goes its own way in chunks, see `kernels.loss`."""

    def __init__(self, model: SequenceModel, backend: str = "inductor") -> None:
        """Nothing is compiled before the first batch.

        `backend`: of `torch.compile`; `eager` and `aot_eager` trace the graph and run PyTorch's own kernels.
        """
        import torch._inductor.exc  # seconds to import

        def features(source: Tensor, targets_in: Tensor) -> Tensor:
            return model.features(model.encode(source), targets_in)

        self.model = model
        limits: dict[str, Any] = {"recompile_limit": GRAPHS, "isolate_recompiles": True}  # which its stubs lack
        self._features = torch.compile(features, backend=backend, fullgraph=True, **limits)

    def __call__(self, batch: Batch, smoothing: float = 0.0) -> Loss:
        """See `batch_loss`.

        Raises:
            UserError: this machine lacks what the compiler needs.
        """
        if in_reference_mode():  # the graph would not notice
            return batch_loss(self.model, batch, smoothing)
        source, targets_in = self._padded(batch)
        for ids in (source, targets_in):
            torch._dynamo.maybe_mark_dynamic(ids, 0)
        try:
            with without_cudnn(source.device):
                features = self._features(source, targets_in)
        except (torch._dynamo.exc.BackendCompilerFailed, torch._inductor.exc.InductorError) as error:
            reason = str(error).strip().splitlines()[0]
            fix = "Set training.compile=false, or install a C++ compiler for a CPU, Triton for a GPU."
            raise UserError(f"PyTorch cannot compile the model here ({reason})", fix=fix) from error
        return target_loss(self.model, features[:, : batch.labels.size(1)], batch, smoothing)

    def _padded(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return sources and targets padded on the right; images have one size as they are."""
        source, targets_in, pad = batch.source, batch.targets_in, self.model.pad
        is_ids = source.dim() == 2 and source.dtype == torch.int64
        longest = targets_in.size(1)
        if is_ids:
            longest = max(longest, source.size(1))  # one length for both sides, or else there are many pairs of lengths
        length = max(longest, min(padded_length(longest), self.model.max_length or padded_length(longest)))
        if is_ids:
            source = F.pad(source, (0, length - source.size(1)), value=pad)
        return source, F.pad(targets_in, (0, length - targets_in.size(1)), value=pad)


def padded_length(length: int) -> int:
    """Return the length to pad to: 8, 16, 24, 32, 48, 64, 96, 128, 192, 256 and so on."""
    step = max(SMALLEST_STEP, 1 << max(0, (length - 1).bit_length() - 2))
    return -(-length // step) * step
