"""Which of PyTorch's two libraries makes a large product of float32 matrices on a CPU.

Intel's MKL, which PyTorch takes by itself, holds itself back on AMD's processors: on a Zen 5 with AVX-512 it comes to
90 GFLOP/s a core, oneDNN to 200. Both sum the same products in float32, in another order. oneDNN takes part only when
it is allowed to round factors to bfloat16, so it is asked only where it makes no use of that, which a test product
shows. Small products, such as those within attention, it does not do well in float32.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import cache
from threading import Lock
from typing import Any

import torch
from torch import Tensor

from translucid.kernels.dispatch import is_plain
from translucid.kernels.machine import amd

_MATMUL: Any = torch.backends.mkldnn.matmul  # type: ignore[attr-defined]
_lock = Lock()
_inside = 0
_before = ""


@contextmanager
def fast_products() -> Iterator[None]:
    """Within it, large products of float32 matrices on a CPU are made by the faster library."""
    with _onednn() if onednn_is_better() and not is_plain("linear") else nullcontext():
        yield


@contextmanager
def _onednn() -> Iterator[None]:
    """Let oneDNN take part in float32 products: of the whole process, so other threads may lose or gain some speed.

    The first to enter notes how it was, and the last to leave puts that back, whatever the order of the threads.
    """
    global _inside, _before
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
    """Whether this is an AMD processor with AVX-512 on which oneDNN, allowed to round, does not."""
    if not torch.backends.mkldnn.is_available() or torch.backends.cpu.get_cpu_capability() != "AVX512" or not amd():
        return False
    drawn = torch.Generator().manual_seed(1)
    a, b = (torch.randn(512, 512, generator=drawn) for _ in range(2))
    return bool((_with_onednn(a, b) - a.double() @ b.double()).abs().max() < 1e-3)  # bfloat16 would be off by about 0.3


def _with_onednn(a: Tensor, b: Tensor) -> Tensor:
    with _onednn():
        return a @ b
