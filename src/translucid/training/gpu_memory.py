"""Errors for a training that does not fit into the memory of a GPU."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn

from translucid.ground.errors import UserError
from translucid.kernels.devices import gpu_memory, is_memory_full, memory_for_training
from translucid.runs.training_options import TrainingOptions
from translucid.training.frozen import sizes


@contextmanager
def explained_when_full(options: TrainingOptions) -> Iterator[None]:
    """Turn PyTorch's errors about a full GPU into advice to use smaller batches.

    Raises:
        UserError: the memory is full.
    """
    try:
        yield
    except RuntimeError as error:
        if not is_memory_full(error):
            raise
        halved = max(1, options.batch_tokens // 2)
        fix = (
            f"Lower training.batch_tokens (now {options.batch_tokens}), and raise training.accumulate (now "
            f"{options.accumulate}) by the same factor, which learns the same from each update: "
            f"training.batch_tokens={halved} training.accumulate={2 * options.accumulate}."
        )
        raise UserError(f"the memory of the GPU is full ({str(error).splitlines()[0]})", fix=fix) from error


def refuse_too_large(model: nn.Module, device: torch.device, parts: int) -> None:
    """Compare the memory that the weights need in training with the memory of the GPU.

    `parts`: the number of processes that share the weights.

    Raises:
        UserError: the weights do not fit, even with small batches.
    """
    memory = gpu_memory(device)
    learned, frozen = sizes(model)
    needed = memory_for_training(learned, frozen) // parts
    if memory is not None and needed > memory:
        raise UserError(
            f"to train {learned / 1e6:,.0f}M weights takes at least {needed / 2**30:.1f} GiB, and the GPU has "
            f"{memory / 2**30:.1f} GiB of memory",
            fix="Take a smaller model, or share the weights among several GPUs with training.sharded=true.",
        )
