"""The memory of a GPU: its size, what training needs at least, and PyTorch's errors when it is full."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

COPIES = 5
"""Numbers in memory for each trainable weight: the weight, its gradient, two moments and its running average."""


def is_memory_full(error: BaseException) -> bool:
    """Whether an exception says that a GPU has no memory left; PyTorch is not imported for the answer."""
    torch = sys.modules.get("torch")
    if torch is None:
        return False
    if isinstance(error, torch.OutOfMemoryError):
        return True
    # MPS and the CUDA libraries that allocate memory themselves raise a RuntimeError with one of these messages.
    message = str(error)
    causes = "out of memory", "CUBLAS_STATUS_ALLOC_FAILED", "CUDNN_STATUS_ALLOC_FAILED"
    return isinstance(error, RuntimeError) and any(cause in message for cause in causes)


def memory_for_training(learned: int, fixed: int) -> int:
    """Return the bytes that training needs for the weights alone, given the numbers of learned and frozen weights."""
    # A frozen weight has no gradient and no moments, but the averaged model has a copy of it. 4 bytes each.
    return 4 * (COPIES * learned + 2 * fixed)


def gpu_memory(device: torch.device) -> int | None:
    """Return the total memory of a CUDA GPU in bytes; None for another device."""
    if device.type != "cuda":
        return None
    import torch

    return torch.cuda.mem_get_info(device)[1]
