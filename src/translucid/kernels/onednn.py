"""The choice between PyTorch's two libraries for large products of float32 matrices on a CPU.

Intel's MKL, PyTorch's default, is slow on AMD's processors: on a Zen 5 with AVX-512 it reaches 90 GFLOP/s per core,
oneDNN 200. Both sum the same products in float32, in another order. PyTorch uses oneDNN for float32 only if it may
round factors to bfloat16, so we choose it only on processors where it does not round, which a test product shows. For
small products in float32, such as those within attention, oneDNN is slower.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import cache
from threading import Lock
from typing import Any

import torch
from torch import Tensor

from translucid.kernels.dispatch import uses_reference
from translucid.kernels.machine import amd

_MATMUL: Any = torch.backends.mkldnn.matmul  # type: ignore[attr-defined]
_lock = Lock()
_inside = 0
_before = ""


@contextmanager
def fast_products() -> Iterator[None]:
    """Compute large products of float32 matrices on a CPU with the faster library."""
    with _onednn() if onednn_is_better() and not uses_reference("linear") else nullcontext():
        yield


@contextmanager
def _onednn() -> Iterator[None]:
    """Allow oneDNN for float32 products in the whole process, so other threads may gain or lose some speed."""
    global _inside, _before
    # Threads may leave in any order: the first to enter saves the setting and the last to leave restores it.
    with _lock:
        if not _inside:
            _before = _MATMUL.fp32_precision
        _inside += 1
        _MATMUL.fp32_precision = "bf16"
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if not _inside:
                _MATMUL.fp32_precision = _before


@cache
def onednn_is_better() -> bool:
    """Whether this is an AMD processor with AVX-512 on which oneDNN does not round although it may."""
    if not torch.backends.mkldnn.is_available() or torch.backends.cpu.get_cpu_capability() != "AVX512" or not amd():
        return False
    generator = torch.Generator().manual_seed(1)  # leaves the random state of the process unchanged
    a, b = torch.randn(2, 512, 512, generator=generator)
    error = (_with_onednn(a, b) - a.double() @ b.double()).abs().max()
    return bool(error < 1e-3)  # rounding to bfloat16 would cause an error of about 0.3


def _with_onednn(a: Tensor, b: Tensor) -> Tensor:
    with _onednn():
        return a @ b
