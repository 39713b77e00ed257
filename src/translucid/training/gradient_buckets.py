"""Gradient buckets: processes sum their gradients (all-reduce) while the backward pass still computes others.

PyTorch's DistributedDataParallel does so too (Li et al. 2020, arXiv 2006.15704, section 3.2). It is not used here,
because it wraps a module's `forward`, but a loss calls several methods of a model.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.distributed as dist
from torch import nn

BUCKET = 25 << 20
"""The size of a bucket in bytes, PyTorch's default. Large buckets take few calls; small ones can start early."""


class GradientBuckets:
    """The gradients of all parameters in buckets, each of which is summed over the processes in one call."""

    def __init__(self, parameters: Sequence[nn.Parameter]) -> None:
        """Nothing is summed before `overlap` or `finish`.

        `parameters`: in the order in which a model uses them; all processes must have the same.
        """
        self._buckets = _fill(parameters)
        self._bucket_of: dict[int, int] = {}
        """The number of each parameter's bucket."""
        for number, bucket in enumerate(self._buckets):
            self._bucket_of |= dict.fromkeys(map(id, bucket), number)
        self._incomplete: list[set[int]] | None = None
        """Of each bucket, the parameters whose gradients the backward pass has yet to complete; None outside it."""
        self._next = 0
        """The bucket whose sum starts next. All processes start them in the same order, or they would add up
        different buckets."""
        self._sums: list[dist.Work] = []
        """The sums that have started in this update."""
        for parameter in parameters:
            parameter.register_post_accumulate_grad_hook(self._complete)

    def overlap(self) -> None:
        """Sum each bucket as soon as the next backward pass has completed it; that pass must be an update's last."""
        self._incomplete = []
        for bucket in self._buckets:
            self._incomplete.append({id(parameter) for parameter in bucket if parameter.requires_grad})

    def finish(self) -> None:
        """Sum the buckets that are left, and wait for all: each gradient is then the sum over the processes.

        A bucket is left if a parameter in it got no gradient here, which counts as zeros, or if this process had no
        rows in the last batch.
        """
        self._incomplete = None
        while self._next < len(self._buckets):
            self._start()
        for work in self._sums:
            work.wait()
        self._next, self._sums = 0, []

    def _complete(self, parameter: torch.Tensor) -> None:
        """Note that the gradient of a parameter is complete; PyTorch calls this once per backward pass."""
        if self._incomplete is None:
            return
        # A second gradient would be added to a sum that has started.
        self._incomplete[self._bucket_of[id(parameter)]].remove(id(parameter))
        while self._next < len(self._buckets) and not self._incomplete[self._next]:
            self._start()

    def _start(self) -> None:
        """Start to sum the next bucket; its parameters get views of the sum as gradients."""
        # Layers that are still frozen (training.unfreeze) are so in all processes, and get no gradient.
        parameters = [parameter for parameter in self._buckets[self._next] if parameter.requires_grad]
        self._next += 1
        if not parameters:
            return
        gradients = []
        for parameter in parameters:
            gradient = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
            gradients.append(gradient.flatten())
        flat = torch.cat(gradients)
        self._sums.append(dist.all_reduce(flat, async_op=True))
        for parameter, total in zip(parameters, flat.split(list(map(len, gradients))), strict=True):
            parameter.grad = total.view_as(parameter)


def _fill(parameters: Sequence[nn.Parameter]) -> list[list[nn.Parameter]]:
    """Return the parameters in buckets, the last first, as a backward pass completes them in about this order."""
    buckets: list[list[nn.Parameter]] = []
    free = 0
    for parameter in reversed(parameters):
        size = parameter.numel() * parameter.element_size()
        if size > free or not buckets:
            buckets.append([])
            free = BUCKET
        buckets[-1].append(parameter)
        free -= size
    return buckets
