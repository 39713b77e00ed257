"""The memory of a GPU: what a training takes at least, and how PyTorch says that there is no more."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

COPIES = 5
"""Numbers kept of each weight that is learned: it, its gradient, two moments and its average."""


def is_memory_full(error: BaseException) -> bool:
    """Whether an exception says that a GPU has no memory left. Nothing is imported to find that out."""
    if (torch := sys.modules.get("torch")) is None:
        return False
    if isinstance(error, torch.OutOfMemoryError):
        return True
    # MPS, and the libraries of CUDA that take memory for themselves, have no exception of their own.
    says = str(error)
    causes = "out of memory", "CUBLAS_STATUS_ALLOC_FAILED", "CUDNN_STATUS_ALLOC_FAILED"
    return isinstance(error, RuntimeError) and any(cause in says for cause in causes)


def memory_for_training(learned: int, fixed: int) -> int:
    """Return the bytes that a training needs for its weights alone: of the numbers learned, and those that stay."""
    return 4 * (COPIES * learned + 2 * fixed)


def gpu_memory(device: torch.device) -> int | None:
    """Return the bytes of memory that a CUDA GPU has in all; None of another device."""
    if device.type != "cuda":
        return None
    import torch

    return torch.cuda.mem_get_info(device)[1]
