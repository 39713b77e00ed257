"""Several processes that train one model together, started by torchrun; for one process alone all this is nothing.

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
from torch import Tensor, nn
from torch.distributed.distributed_c10d import PrefixStore
from torch.distributed.rendezvous import rendezvous

from translucid.ground.errors import UserError

Item = TypeVar("Item")
PATIENCE = timedelta(hours=2)
"""How long a process waits for the others, as while the first encodes a large corpus; torchrun ends all if one dies."""


class Workers:
    """The processes, from the point of view of one of them."""

    def __init__(self, rank: int = 0, count: int = 1) -> None:
        """Rank 0 of 1 is alone; `joined` is the way in for more."""
        self.rank, self.count = rank, count

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
        backend = "nccl" if device.type == "cuda" else "gloo"
        try:
            store, rank, count = next(rendezvous("env://", timeout=PATIENCE))
            if count == int(os.environ.get("LOCAL_WORLD_SIZE", "0")):
                # Started again by torchrun, processes would find the addresses of the dead ones in the store.
                store = PrefixStore(f"attempt {os.environ.get('TORCHELASTIC_RESTART_COUNT', '0')}", store)
            dist.init_process_group(backend, store=store, rank=rank, world_size=count, timeout=PATIENCE)
        except (RuntimeError, ValueError) as error:
            raise UserError(
                f"the other training processes do not answer ({str(error).splitlines()[0]})",
                fix="Start all of them with torchrun, with the same arguments.",
            ) from error
        try:
            yield cls(dist.get_rank(), dist.get_world_size())
            dist.barrier()  # who left first would close connections that others still listen to
        except RuntimeError as error:
            if not (isinstance(error, dist.DistError) or "gloo" in str(error)):
                raise
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

    def sum(self, *numbers: float) -> list[float]:
        """Add each number up over the processes; all get the sums."""
        if self.count == 1:
            return list(numbers)
        device = "cuda" if dist.get_backend() == "nccl" else "cpu"
        sums = torch.tensor(numbers, dtype=torch.float64, device=device)
        dist.all_reduce(sums)
        return sums.tolist()

    def sum_tensor(self, numbers: Tensor) -> Tensor:
        """Add a tensor up over the processes, in place, and return it; a GPU is not waited for."""
        if self.count > 1:
            dist.all_reduce(numbers)
        return numbers

    def sum_gradients(self, parameters: Sequence[nn.Parameter]) -> None:
        """Add the gradients up over the processes, in one go; a process without any adds nothing."""
        if self.count == 1:
            return
        flat = torch.cat([(torch.zeros_like(p) if p.grad is None else p.grad).flatten() for p in parameters])
        dist.all_reduce(flat)
        first = 0
        for parameter in parameters:
            parameter.grad = flat[first : first + parameter.numel()].view_as(parameter)
            first += parameter.numel()

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
