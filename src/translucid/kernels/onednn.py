"""The choice between PyTorch's two libraries for large products of float32 matrices on a CPU.

Intel's MKL, PyTorch's default, is slow on AMD's processors: on a Zen 5 with AVX-512 it reaches 110 GFLOP/s per core,
oneDNN 255. Both sum the same products in float32, in another order. PyTorch uses oneDNN for float32 only if it may
round factors to bfloat16, so we choose it only where it does not round.

These facts decide, so that all processes of a machine, however busy, compute the same bits. Whether bfloat16 is faster
than float32 is measured, since the processor's flags do not show it: environment variables such as ONEDNN_MAX_CPU_ISA,
a virtual machine or an old library can keep a library from instructions that the processor has. For small products in
float32, such as those within attention, oneDNN is slower.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import cache
from threading import Lock
from typing import Any

import torch
from torch import Tensor

from translucid.kernels.dispatch import uses_reference
from translucid.kernels.machine import amd

DOUBTFUL = 0.7, 1.4
"""Ratios of two speeds between which noise may decide, so that more tries follow. The true ratio of bfloat16 to float32
is above 1.8 with instructions for bfloat16, and below 0.4 where a library emulates them."""
TRIES, MOST_TRIES = 7, 70
_MATMUL: Any = torch.backends.mkldnn.matmul  # type: ignore[attr-defined]
_lock = Lock()
_depth = 0
_saved_precision = ""


@contextmanager
def fast_products() -> Iterator[None]:
    """Compute large products of float32 matrices on a CPU with the faster library."""
    with _onednn() if not uses_reference("linear") and onednn_is_better() else nullcontext():
        yield


@contextmanager
def _onednn() -> Iterator[None]:
    """Allow oneDNN for float32 products in the whole process, so other threads may gain or lose some speed."""
    global _depth, _saved_precision
    # Threads may leave in any order: the first to enter saves the setting and the last to leave restores it.
    with _lock:
        if not _depth:
            _saved_precision = _MATMUL.fp32_precision
        _depth += 1
        _MATMUL.fp32_precision = "bf16"
    try:
        yield
    finally:
        with _lock:
            _depth -= 1
            if not _depth:
                _MATMUL.fp32_precision = _saved_precision


@cache
def onednn_is_better() -> bool:
    """Whether this is an AMD processor with AVX-512 on which oneDNN does not round, although it is allowed to."""
    if not torch.backends.mkldnn.is_available() or torch.backends.cpu.get_cpu_capability() != "AVX512" or not amd():
        return False
    a, b = sample_factors()
    error = (_with_onednn(a, b) - a.double() @ b.double()).abs().max()
    return bool(error < 1e-3)  # rounding to bfloat16 would cause an error of about 0.3


@cache
def bfloat16_gain() -> float:
    """Return how many times as fast as float32 this process multiplies bfloat16 on its CPU, measured once.

    It is 0 if the library that sums such products in float32 is missing.
    """
    if not torch.backends.mkldnn.is_available():
        return 0.0
    a, b = sample_factors()
    rounded = b.bfloat16()
    product = _with_onednn if onednn_is_better() else torch.mm
    # A linear layer rounds three factors for its three products, so one rounding belongs to each.
    float32, bfloat16 = fastest(lambda: product(a, b), lambda: a.bfloat16() @ rounded)
    return float32 / bfloat16


def sample_factors() -> tuple[Tensor, Tensor]:
    """Return factors [512, 256] and [256, 512] of a product, which leave the random state of the process unchanged."""
    generator = torch.Generator().manual_seed(1)
    a, b = torch.randn(2, 512, 256, generator=generator, device="cpu")
    return a, b.t()


def fastest(*products: Callable[[], Tensor]) -> list[float]:
    """Return the seconds of the fastest run of each of two products, which take turns on one thread."""
    seconds = [float("inf")] * len(products)
    threads = torch.get_num_threads()
    # On a busy machine, several threads mostly wait for each other, which hides the difference between two products.
    torch.set_num_threads(1)
    try:
        for attempt in range(1 + MOST_TRIES):
            for index, product in enumerate(products):
                started = time.perf_counter()
                product()
                if attempt:  # the first one sets the libraries up
                    seconds[index] = min(seconds[index], time.perf_counter() - started)
            if attempt >= TRIES and not DOUBTFUL[0] < seconds[0] / seconds[1] < DOUBTFUL[1]:
                break
    finally:
        torch.set_num_threads(threads)
    return seconds


def _with_onednn(a: Tensor, b: Tensor) -> Tensor:
    with _onednn():
        return a @ b
