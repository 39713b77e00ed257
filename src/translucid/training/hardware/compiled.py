"""The forward pass of a Transformer as one graph, from which `torch.compile` generates fused kernels.

A graph is compiled for each length of a batch, which takes a while, so batches are padded to a few lengths. Padding
changes no number: no position attends to it, and the loss does not read it. The number of rows may vary.
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
"""All lengths are multiples of this, as the tensor cores of GPUs need."""
GRAPHS = 64
"""The maximum number of graphs in a training: more than there are lengths; PyTorch's default is 8."""


class CompiledLoss:
    """`batch_loss` with compiled features; the loss itself is computed in chunks by `kernels.loss`."""

    def __init__(self, model: SequenceModel, backend: str = "inductor") -> None:
        """Prepare the compilation, which starts at the first batch.

        `backend`: that of `torch.compile`; `eager` and `aot_eager` trace the graph and run PyTorch's own kernels.
        """
        import torch._inductor.exc  # imported here because it takes seconds

        def features(source: Tensor, targets_in: Tensor) -> Tensor:
            return model.features(model.encode(source), targets_in)

        self.model = model
        limits: dict[str, Any] = {"recompile_limit": GRAPHS, "isolate_recompiles": True}  # missing in PyTorch's stubs
        self._features = torch.compile(features, backend=backend, fullgraph=True, **limits)

    def __call__(self, batch: Batch, smoothing: float = 0.0) -> Loss:
        """Return the loss of a batch, as `batch_loss` does.

        Raises:
            UserError: the compiler fails, for instance because this machine has no C++ compiler.
        """
        if in_reference_mode():  # a compiled graph does not check the mode
            return batch_loss(self.model, batch, smoothing)
        source, targets_in = self._padded(batch)
        for ids in (source, targets_in):
            torch._dynamo.maybe_mark_dynamic(ids, 0)  # one graph for all numbers of rows
        try:
            with without_cudnn(source.device):
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


def padded_length(length: int) -> int:
    """Return the length to pad to: 8, 16, 24, 32, 48, 64, 96, 128, 192, 256 and so on."""
    # A step is a quarter of the next power of two, which limits both the padding and the number of lengths.
    step = max(SMALLEST_STEP, 1 << max(0, (length - 1).bit_length() - 2))
    return -(-length // step) * step  # rounded up
