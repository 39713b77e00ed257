"""What updates spend their time on, and how close they are to the machine's limit (`train --profile`).

`Trainer` and the loss name the part of an update that begins (`part`). While an update is profiled, each beginning
is an instant of the host and, on a CUDA GPU, an event in its queue. Events are read after the last profiled update, so
profiling adds no synchronization. One update before them is not timed: its matrix products are counted.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from itertools import pairwise
from typing import Any, NamedTuple

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from translucid.kernels.dispatch import reference_mode
from translucid.kernels.onednn import fast_products

PARTS = "data", "forward", "loss", "backward", "optimizer", "captured", "other"
"""`loss`: the output projection, softmax and, in chunks, their gradients. `captured`: a whole update in a CUDA graph.
`other`: the running average, the figures, the display."""
WARM_UP = 5
"""The updates before the profiled ones. The products of the last of them are counted."""
UPDATES = 20
"""The number of updates that are timed."""
SIZE_ON_CPU, SIZE_ON_GPU = 2048, 8192
"""Rows and columns of the matrices that measure the limit."""
TRIES = 5
_current: UpdateProfile | None = None


def part(name: str) -> AbstractContextManager[None]:
    """Return a context whose time belongs to this part of an update, if the update is profiled."""
    if torch.compiler.is_compiling() or _current is None:
        return nullcontext()
    return _current.part(name)


class _Instant(NamedTuple):
    """The beginning of a part."""

    part: str
    seconds: float
    """The time of the host."""
    event: torch.cuda.Event | None
    """The place in the queue of a CUDA GPU."""


class UpdateProfile:
    """The times of some updates by part, and the matrix products of one."""

    def __init__(self, device: torch.device, *, bfloat16: bool, counts: bool, show: Callable[[str], None]) -> None:
        """Prepare the profile of a training that begins or is resumed.

        Args:
            device: the device of the training.
            bfloat16: whether large products are in bfloat16.
            counts: whether to count products, which is for a training in one process.
            show: a function for one line to the user.
        """
        self.device, self.bfloat16, self.counts, self.show = device, bfloat16, counts, show
        self.seconds: dict[str, dict[str, float]] = {"host": defaultdict(float), "GPU": defaultdict(float)}
        """The seconds of all profiled updates by clock and part."""
        self.tokens = 0
        """The target tokens of the profiled updates."""
        self.products_per_token: float | None = None
        """Operations of matrix products, a multiplication and an addition each, per target token."""
        self._updates = 0
        self._instants: list[_Instant] = []
        self._part = "other"

    @contextmanager
    def update(self) -> Iterator[None]:
        """Profile an update, if it is one of those that are profiled."""
        global _current
        self._updates += 1
        if not WARM_UP < self._updates <= WARM_UP + UPDATES:
            yield
            return
        _current = self
        self._begin("other")
        try:
            yield
        finally:
            self._begin("")  # not in an update
            _current = None
        if self._updates == WARM_UP + UPDATES:
            self.finish()

    def counted(self, tokens: int, *, compiled: bool) -> AbstractContextManager[None]:
        """Return a context for the computations of an update with this many target tokens.

        `compiled`: whether the loss is compiled, as that of a Transformer may be.
        """
        if _current:
            self.tokens += tokens
        return self._counting(tokens, compiled) if self.counts and self._updates == WARM_UP else nullcontext()

    @contextmanager
    def _counting(self, tokens: int, compiled: bool) -> Iterator[None]:
        # Compiled functions hide their products, and are not used in a reference mode. No Transformer has this kernel.
        with reference_mode("additive") if compiled else nullcontext(), CountedProducts() as products:
            yield
        if products.complete:
            self.products_per_token = products.operations / tokens

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Let the time belong to this part until the context ends."""
        outer = self._part
        self._begin(name)
        try:
            yield
        finally:
            self._begin(outer)

    def _begin(self, name: str) -> None:
        event = None
        if self.device.type == "cuda":
            event = torch.cuda.Event(enable_timing=True)
            event.record()
        self._part = name
        self._instants.append(_Instant(name, time.perf_counter(), event))

    def finish(self) -> None:
        """Show the table; this does nothing if it has been shown, or no update has been profiled."""
        if not self._instants:
            return
        instants, self._instants = self._instants, []
        if last := instants[-1].event:
            last.synchronize()
        for start, end in pairwise(instants):
            if start.part:
                self.seconds["host"][start.part] += end.seconds - start.seconds
                if start.event and end.event:
                    self.seconds["GPU"][start.part] += start.event.elapsed_time(end.event) / 1000
        for line in self._lines(self._updates - WARM_UP):
            self.show(line)

    def _lines(self, updates: int) -> Iterator[str]:
        """Yield the lines of the table of this many profiled updates."""
        # The queue of a GPU has no gaps between events: while it waits for the host, the part that it waits for lasts.
        clock = "GPU" if self.seconds["GPU"] else "host"
        seconds = sum(self.seconds[clock].values())
        yield f"{updates} updates of {self.tokens / updates:,.0f} target tokens, {self.tokens / seconds:,.0f} tokens/s"
        yield f"  {'part':<10}{clock + ' ms':>10}" + (f"{'host ms':>10}" if clock == "GPU" else "") + f"{'share':>8}"
        for name in PARTS:
            if name in self.seconds[clock]:
                spent = self.seconds[clock][name]
                host = f"{1000 * self.seconds['host'][name] / updates:>10,.1f}" if clock == "GPU" else ""
                yield f"  {name:<10}{1000 * spent / updates:>10,.1f}{host}{spent / seconds:>8.0%}"
        if self.products_per_token is None:
            return
        speed = self.products_per_token * self.tokens / seconds
        limit = product_limit(self.device, bfloat16=self.bfloat16)
        dtype = "bfloat16" if self.bfloat16 else "float32"
        yield (
            f"matrix products: {speed / 1e9:,.0f} GFLOP/s, {speed / limit:.0%} of the {limit / 1e9:,.0f} "
            f"that a large product in {dtype} reaches here"
        )


def product_limit(device: torch.device, *, bfloat16: bool) -> float:
    """Return the operations per second of a product of large square matrices, the fastest of some tries.

    On a CPU, it uses as many threads as the training.
    """
    size = SIZE_ON_GPU if device.type == "cuda" else SIZE_ON_CPU
    factor = torch.ones(size, size, dtype=torch.bfloat16 if bfloat16 else torch.float32, device=device)
    fastest = float("inf")
    with fast_products():
        for attempt in range(1 + TRIES):
            started = time.perf_counter()
            # A number of the result waits for a GPU.
            torch.mm(factor, factor)[0, 0].item()
            if attempt:  # the first one sets the libraries up
                fastest = min(fastest, time.perf_counter() - started)
    return 2 * size**3 / fastest


class CountedProducts(TorchDispatchMode):
    """Counts the operations of all matrix products, by the formulas of PyTorch's counter."""

    def __init__(self) -> None:
        """Start at 0."""
        from torch.utils.flop_counter import flop_registry  # imported here because it takes a second

        super().__init__()  # type: ignore[no-untyped-call]
        self.operations = 0
        self.complete = True
        """Whether all products were counted; those of fused recurrent layers can't be."""
        aten = torch.ops.aten
        self._formulas: dict[Any, Any] = dict(flop_registry)
        for backward in ("", "_backward"):  # the CPU has the same formulas
            on_gpu = getattr(aten, f"_scaled_dot_product_flash_attention{backward}")
            on_cpu = getattr(aten, f"_scaled_dot_product_flash_attention_for_cpu{backward}")
            self._formulas[on_cpu] = flop_registry[on_gpu]

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = function(*args, **(kwargs or {}))
        operation = function.overloadpacket
        if formula := self._formulas.get(operation):
            self.operations += formula(*args, **(kwargs or {}), out_val=result)
        elif any(name in str(operation) for name in ("rnn", "lstm", "gru")):
            self.complete = False
        return result
