"""Data-parallel training: processes started by torchrun sum their gradients (all-reduce); one process skips all this.

Every process holds the whole model, or a shard of it (`sharding.py`). Each computes the gradients of its rows of a
batch; the gradients are summed over the processes, and all make the same update. So neither the batch nor the result
depends on the number of processes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor
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
                fix = "If one of them has died, its own output says why; repeat the command with --resume."
                raise UserError(f"the training processes cannot communicate ({reason})", fix=fix) from error
            fix = "The reason is above or in its own output; repeat the command with --resume."
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
        raise UserError(what, fix="Train with one process, or with --device cpu.")
    if device.type != "cuda":
        return "gloo", ""
    if dist.is_nccl_available():
        return "nccl", ""
    return "gloo", "this PyTorch has no NCCL, so gradients are added up by gloo, through the CPU, which is slower"
