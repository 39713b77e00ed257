"""Data-parallel training: processes started by torchrun sum their gradients (all-reduce); one process skips all this.

Every process holds the whole model (or a part of it, see `sharding.py`). Each takes its rows of every batch, the
gradients are added up over the processes, and all make the same update: so the batch, and what is learned, does not
depend on how many there are.
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
PREPARATION = timedelta(hours=2)
"""How long a process waits for the others while the first of them prepares, such as encodes a large corpus."""
UPDATES = timedelta(minutes=30)
"""How long it waits during updates, validations and saving; torchrun ends all if one dies."""
CPU = torch.device("cpu")


class Workers:
    """The processes, from the point of view of one of them."""

    def __init__(self, rank: int = 0, count: int = 1, device: torch.device = CPU, note: str = "") -> None:
        """Rank 0 of 1 is alone; `joined` is the way in for more.

        Args:
            rank: of this process.
            count: of all processes.
            device: where the numbers that are added up have to be.
            note: what users should know of how the processes talk to each other.
        """
        self.rank, self.count, self.device, self.note = rank, count, device, note

    @classmethod
    @contextmanager
    def joined(cls, device: torch.device) -> Iterator[Workers]:
        """Meet the other processes that torchrun has started, if it has, and part from them in the end.

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
            store, rank, count = next(rendezvous("env://", timeout=PREPARATION))
            if count == int(os.environ.get("LOCAL_WORLD_SIZE", "0")):
                # Started again by torchrun, processes would find the addresses of the dead ones in the store.
                store = PrefixStore(f"attempt {os.environ.get('TORCHELASTIC_RESTART_COUNT', '0')}", store)
            dist.init_process_group(
                backend, store=store, rank=rank, world_size=count, timeout=PREPARATION, device_id=nccl_device
            )
        except (RuntimeError, ValueError) as error:
            what = f"the other training processes do not answer ({str(error).splitlines()[0]})"
            raise UserError(what, fix="Start all of them with torchrun, with the same arguments.") from error
        try:
            yield cls(dist.get_rank(), dist.get_world_size(), nccl_device or CPU, note)
            dist.barrier()  # who left first would close connections that others still listen to
        except RuntimeError as error:
            if not (isinstance(error, dist.DistError) or "gloo" in str(error)):
                raise
            if isinstance(error, dist.DistBackendError):
                # NCCL, which reports a process that has died and two processes on one GPU alike, in its last line.
                reason = str(error).rstrip().rpartition("\n")[2]
                fix = "If one of them has died, its own output says why; the same command with --resume goes on."
                raise UserError(f"the training processes cannot communicate ({reason})", fix=fix) from error
            fix = "What ended it stands above or in its own output; the same command with --resume goes on."
            raise UserError("another training process has died", fix=fix) from error
        finally:
            dist.destroy_process_group()

    def __str__(self) -> str:
        """Say how many there are, if there are several."""
        return f", {self.count} processes" if self.count > 1 else ""

    @property
    def leads(self) -> bool:
        """Whether this is the one process that writes, shows and decides."""
        return self.rank == 0

    def share(self, items: Sequence[Item]) -> Sequence[Item]:
        """Return this process's share of a list."""
        return items[self.rank :: self.count]

    def wait(self) -> None:
        """Go on when all have come here."""
        if self.count > 1:
            dist.barrier()

    @contextmanager
    def updating(self) -> Iterator[None]:
        """Within it, a process that the others don't hear of is given up sooner."""
        if self.count == 1:
            yield
            return
        _set_pg_timeout(UPDATES)
        yield
        _set_pg_timeout(PREPARATION)  # the first may have more to do after the training

    def sum(self, *numbers: float) -> list[float]:
        """Add each number up over the processes; all get the sums."""
        if self.count == 1:
            return list(numbers)
        sums = torch.tensor(numbers, dtype=torch.float64, device=self.device)
        dist.all_reduce(sums)
        return sums.tolist()

    def sum_tensor(self, numbers: Tensor) -> Tensor:
        """Add a tensor up over the processes, in place, and return it; a GPU is not waited for."""
        if self.count > 1:
            dist.all_reduce(numbers)
        return numbers

    def gather(self, thing: Any) -> list[Any]:
        """Return what each process has, by rank."""
        if self.count == 1:
            return [thing]
        things: list[Any] = [None] * self.count
        dist.all_gather_object(things, thing)
        return things

    def interleave(self, items: Sequence[Item]) -> list[Item]:
        """Put the shares of all processes together again, in the order that `share` took them apart."""
        shares = self.gather(list(items))
        whole: list[Item] = [None] * sum(map(len, shares))  # type: ignore[list-item]
        for rank, share in enumerate(shares):
            whole[rank :: self.count] = share
        return whole


def _backend(device: torch.device) -> tuple[str, str]:
    """Return what processes on such devices talk to each other by, and what users should know of it.

    Raises:
        UserError: there is nothing for such a device.
    """
    if device.type == "mps":
        what = "several processes can't train on one Apple GPU"
        raise UserError(what, fix="Train with one process, or with --device cpu.")
    if device.type != "cuda":
        return "gloo", ""
    if dist.is_nccl_available():
        return "nccl", ""
    return "gloo", "this PyTorch has no NCCL, so gradients are added up by gloo, through the CPU, which is slower"
