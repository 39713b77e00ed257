"""Asynchronous copies between the host and a GPU.

A host that reads a number from a GPU waits until all kernels in the queue are done, and while it then prepares the next
kernels, the GPU is idle. Copies from and to pinned memory, which the GPU reads directly, are queued like kernels. Only
CUDA has such copies; on other devices these functions copy at once.
"""

from __future__ import annotations

import torch
from torch import Tensor


def pinned(tensor: Tensor) -> Tensor:
    """Return a copy of a CPU tensor in pinned memory if this process uses a CUDA GPU, else the tensor itself."""
    return tensor.pin_memory() if torch.cuda.is_initialized() and tensor.device.type == "cpu" else tensor


def upload(tensor: Tensor, device: torch.device | str) -> Tensor:
    """Return the tensor on a device, without waiting for the copy to a CUDA GPU."""
    if torch.device(device).type != "cuda" or tensor.device.type != "cpu":
        return tensor.to(device)
    if not tensor.is_pinned():
        tensor = pinned(tensor)
    # PyTorch's allocator does not reuse the pinned memory before the copy is done.
    return tensor.to(device, non_blocking=True)


class Download:
    """An asynchronous copy of a small tensor to the host."""

    def __init__(self, tensor: Tensor) -> None:
        """Queue the copy after the kernels that compute the tensor."""
        in_background = tensor.device.type == "cuda"
        self._copy = tensor.detach().to("cpu", non_blocking=in_background)
        self._done: torch.cuda.Event | None = None
        if in_background and torch.cuda.is_initialized():
            self._done = torch.cuda.Event()
            self._done.record()

    def read(self) -> Tensor:
        """Wait until the copy is done and return the tensor on the CPU."""
        if self._done is not None:
            self._done.synchronize()
        return self._copy
