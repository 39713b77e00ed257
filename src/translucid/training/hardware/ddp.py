"""Distributed data-parallel training (DDP): processes started by torchrun sum their gradients (all-reduce).

A single process skips all this. Every process holds the whole model, or a shard of it (`sharding.py`). Each computes
the gradients of its rows of a batch; the gradients are summed over the processes, and all make the same update. So
neither the batch nor the result depends on the number of processes.

Gradients are summed in buckets, while the backward pass still computes others. DistributedDataParallel of PyTorch does
so too (Li et al. 2020, arXiv 2006.15704, section 3.2). It is not used here, because it wraps `forward` of a module, but
a loss calls several methods of a model.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.distributed_c10d import PrefixStore, _set_pg_timeout
from torch.distributed.rendezvous import rendezvous

from translucid.ground.errors import UserError

Item = TypeVar("Item")
PREPARATION_TIMEOUT = timedelta(hours=2)
"""The time that a process waits for the others while the first one prepares, for instance encodes a large corpus."""
UPDATE_TIMEOUT = timedelta(minutes=30)
"""The time that it waits during updates, validations and saving; torchrun ends all processes if one dies."""
CPU = torch.device("cpu")


def is_first_process() -> bool:
    """Return whether this is the first process of torchrun, or the only one, before the processes are connected."""
    return os.environ.get("RANK", "0") == "0"


class Workers:
    """The processes, from the point of view of one of them."""

    def __init__(self, rank: int = 0, count: int = 1, device: torch.device = CPU, note: str = "") -> None:
        """Describe a process; the default is a single process, and `joined` connects several.

        Args:
            rank: the rank of this process.
            count: the number of processes.
            device: the device of numbers that are summed over the processes.
            note: a note for users on the communication of the processes.
        """
        self.rank, self.count, self.device, self.note = rank, count, device, note

    @classmethod
    @contextmanager
    def joined(cls, device: torch.device) -> Iterator[Workers]:
        """Connect to the other processes that torchrun has started, if any, and disconnect at the end of the context.

        Raises:
            UserError: they do not answer.
        """
        if int(os.environ.get("WORLD_SIZE", "1")) == 1:
            yield cls()
            return
        backend, note = _backend(device)
        if device.type == "cuda":
            torch.cuda.set_device(device)  # or else objects are gathered, and kernels started, on the first GPU
        nccl_device = device if backend == "nccl" else None
        try:
            store, rank, count = next(rendezvous("env://", timeout=PREPARATION_TIMEOUT))
            if count == int(os.environ.get("LOCAL_WORLD_SIZE", "0")):
                # Started again by torchrun, processes would find the addresses of the dead ones in the store.
                store = PrefixStore(f"attempt {os.environ.get('TORCHELASTIC_RESTART_COUNT', '0')}", store)
            dist.init_process_group(
                backend, store=store, rank=rank, world_size=count, timeout=PREPARATION_TIMEOUT, device_id=nccl_device
            )
        except (RuntimeError, ValueError) as error:
            what = f"the other training processes do not answer ({str(error).splitlines()[0]})"
            raise UserError(what, fix="Start all of them with torchrun, with the same arguments.") from error
        try:
            yield cls(dist.get_rank(), dist.get_world_size(), nccl_device or CPU, note)
            dist.barrier()  # the first process to leave would close connections that others still use
        except RuntimeError as error:
            if not (isinstance(error, dist.DistError) or "gloo" in str(error)):
                raise
            if isinstance(error, dist.DistBackendError):
                # NCCL, which reports a process that has died and two processes on one GPU alike, in its last line.
                reason = str(error).rstrip().rpartition("\n")[2]
                fix = "If one of them has died, its own output says why; repeat the command with `resume=True`."
                raise UserError(f"the training processes cannot communicate ({reason})", fix=fix) from error
            fix = "The reason is above or in its own output; repeat the command with `resume=True`."
            raise UserError("another training process has died", fix=fix) from error
        finally:
            dist.destroy_process_group()

    def __str__(self) -> str:
        """Return the number of processes for a message, if there are several."""
        return f", {self.count} processes" if self.count > 1 else ""

    @property
    def leads(self) -> bool:
        """Whether this is the first process, which writes files, shows progress and decides."""
        return self.rank == 0

    def share(self, items: Sequence[Item]) -> Sequence[Item]:
        """Return this process's share of a list."""
        return items[self.rank :: self.count]

    def wait(self) -> None:
        """Wait until all processes have called this."""
        if self.count > 1:
            dist.barrier()

    @contextmanager
    def updating(self) -> Iterator[None]:
        """Wait for a shorter time for a process that does not answer, within the context."""
        if self.count == 1:
            yield
            return
        _set_pg_timeout(UPDATE_TIMEOUT)
        yield
        _set_pg_timeout(PREPARATION_TIMEOUT)  # the first process may have more to do after the training

    def sum(self, *numbers: float) -> list[float]:
        """Sum each number over the processes; all get the sums."""
        if self.count == 1:
            return list(numbers)
        sums = torch.tensor(numbers, dtype=torch.float64, device=self.device)
        dist.all_reduce(sums)
        return sums.tolist()

    def sum_tensor(self, numbers: Tensor) -> Tensor:
        """Sum a tensor over the processes in place, and return it, without waiting for a GPU."""
        if self.count > 1:
            dist.all_reduce(numbers)
        return numbers

    def gather(self, value: Any) -> list[Any]:
        """Return the value of each process, by rank."""
        if self.count == 1:
            return [value]
        values: list[Any] = [None] * self.count
        dist.all_gather_object(values, value)
        return values

    def interleave(self, items: Sequence[Item]) -> list[Item]:
        """Join the shares of all processes, in the order before `share`."""
        shares = self.gather(list(items))
        interleaved: list[Item] = [None] * sum(map(len, shares))  # type: ignore[list-item]
        for rank, share in enumerate(shares):
            interleaved[rank :: self.count] = share
        return interleaved


def _backend(device: torch.device) -> tuple[str, str]:
    """Return the backend by which processes on such devices communicate, and a note for users, which may be empty.

    Raises:
        UserError: there is no backend for such a device.
    """
    if device.type == "mps":
        what = "several processes can't train on one Apple GPU"
        raise UserError(what, fix='Train with one process, or with `device="cpu"`.')
    if device.type != "cuda":
        return "gloo", ""
    if dist.is_nccl_available():
        return "nccl", ""
    return "gloo", "this PyTorch has no NCCL, so gradients are added up by gloo, through the CPU, which is slower"


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
