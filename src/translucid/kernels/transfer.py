"""Copies between the host and a GPU that neither waits for.

A host that asks a GPU for a number waits until all kernels in its queue are done, and while the host then prepares the
next kernels, the GPU has nothing to do. Copies from and to pinned memory, which the GPU reads by itself, are queued
like kernels. Only CUDA has such copies; elsewhere these functions copy at once.
"""

from __future__ import annotations

import torch
from torch import Tensor


def pinned(tensor: Tensor) -> Tensor:
    """Return a tensor of the host in pinned memory if this process works on a CUDA GPU, else the tensor itself."""
    return tensor.pin_memory() if torch.cuda.is_initialized() and tensor.device.type == "cpu" else tensor


def upload(tensor: Tensor, device: torch.device | str) -> Tensor:
    """Return a tensor on a device; one that is there already as it is."""
    if torch.device(device).type != "cuda" or tensor.device.type != "cpu":
        return tensor.to(device)
    # Pinned memory is not given back before the copy is done: PyTorch's allocator sees to that.
    return (tensor if tensor.is_pinned() else pinned(tensor)).to(device, non_blocking=True)


class Download:
    """A small tensor on its way to the host."""

    def __init__(self, tensor: Tensor) -> None:
        """Queue the copy behind the kernels that compute the tensor."""
        in_background = tensor.device.type == "cuda"
        self._copy = tensor.detach().to("cpu", non_blocking=in_background)
        self._done: torch.cuda.Event | None = None
        if in_background and torch.cuda.is_initialized():
            self._done = torch.cuda.Event()
            self._done.record()

    def read(self) -> Tensor:
        """Return the tensor on the CPU, as soon as the copy is done."""
        if self._done is not None:
            self._done.synchronize()
        return self._copy
