"""Where to compute: a GPU when there is one, and the settings that make a CPU or a GPU quick."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from translucid.ground.errors import UserError
from translucid.kernels.machine import keep_freed_memory

if TYPE_CHECKING:
    import torch


def choose_device(name: str = "auto") -> torch.device:
    """Return the device of that name; `auto` is CUDA, else Apple's MPS, else the CPU.

    `cuda` is the GPU of this process: that of its number on this machine where torchrun has started several.

    Raises:
        UserError: this machine or this build of PyTorch has no such device.
    """
    import torch

    gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    available = {"cpu": True, "cuda": gpus > 0, "mps": torch.backends.mps.is_available()}
    if name == "auto":
        name = next(kind for kind in ("cuda", "mps", "cpu") if available[kind])
    if name == "cuda" and gpus:
        own = int(os.environ.get("LOCAL_RANK", "0"))
        if own >= gpus:
            raise UserError(
                f"process {own} of this machine has no GPU of its own: there are {gpus}",
                fix=f"Start torchrun with --nproc-per-node={gpus}, or train with --device cpu.",
            )
        return torch.device("cuda", own)
    names = {"cpu", "mps", *(f"cuda:{index}" for index in range(gpus))}
    if name not in names or not available[name.partition(":")[0]]:
        known = [kind for kind, here in available.items() if here] + [f"cuda:{index}" for index in range(gpus)]
        raise UserError(f"there is no device {name!r} here", fix=f"Available: auto, {', '.join(known)}.")
    return torch.device(name)


def certainly_cpu(name: str) -> bool:
    """Whether a name means the CPU, as far as can be told without loading PyTorch: if in doubt, it may not."""
    return name == "cpu" or (name == "auto" and _no_gpu())


def _no_gpu() -> bool:
    if metadata.version("torch").endswith("+cpu"):
        return True
    gpus = "nvidia*", "nvhost*", "kfd", "dxg"  # Nvidia's, its small boards', AMD's, Windows' from within Linux
    return sys.platform == "linux" and not any(next(Path("/dev").glob(name), None) for name in gpus)


def device_of_worker(name: str, worker: int) -> str:
    """Return the device of one of several workers on this machine: `auto` and `cuda` are dealt out over its GPUs."""
    if certainly_cpu(name):
        return "cpu"
    import torch

    if name in ("auto", "cuda") and torch.cuda.is_available():
        return f"cuda:{worker % torch.cuda.device_count()}"
    return name


def same_sums_on_any_threads() -> None:
    """Let matrix products on a CPU not depend, in their last digits, on how many threads make them.

    So Intel's library promises it, which PyTorch has on x86; it costs no time that could be measured. It is asked for
    before the first product of a process, and what the environment says goes before.
    """
    os.environ.setdefault("MKL_CBWR", "AUTO,STRICT")


KEPT = 32
"""Products of different shapes that oneDNN stays prepared for; by itself it keeps 1,024, some 200 KiB each, though
batches of text hardly ever have a shape twice."""


def tune_cpu() -> None:
    """Set up this whole process for our work on a CPU; for commands and training, not for a program that imports us.

    Freed memory is kept for the next step, and so are few of oneDNN's prepared products, if it has made none yet and
    the environment says nothing else. Numbers too small to matter are taken as 0: denormal ones, which Adam's averages
    of rarely seen words decay into, are slow.
    """
    import torch

    torch.set_flush_denormal(True)
    keep_freed_memory()
    for name in ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY"):  # its own, and that of PyTorch's layer on it
        os.environ.setdefault(name, str(KEPT))


def round_to_tf32(wanted: bool) -> None:
    """Let matrix products, convolutions and recurrent layers of float32 on CUDA GPUs round their factors, or not.

    TF32 has 10 binary digits of 23, and an H100 multiplies such numbers about eight times as fast. CPUs are not
    concerned: `torch.set_float32_matmul_precision` would also let some of them round.
    """
    import torch

    if not torch.cuda.is_available():
        return
    precision = "tf32" if wanted else "ieee"
    backends: Any = torch.backends  # whose parts have no types
    for operation in (backends.cuda.matmul, backends.cudnn.conv, backends.cudnn.rnn):
        operation.fp32_precision = precision


@contextmanager
def fixed_order(wanted: bool) -> Iterator[None]:
    """Within it, if wanted, GPUs add in a fixed order; PyTorch warns of operations that have no such form."""
    import torch

    name = "CUBLAS_WORKSPACE_CONFIG"  # which cuBLAS asks for
    missing = wanted and name not in os.environ
    before = torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()
    if wanted:
        os.environ.setdefault(name, ":4096:8")
        torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before[0], warn_only=before[1])
        if missing:
            del os.environ[name]


def own_random_state(device: torch.device | str) -> AbstractContextManager[None]:
    """Within it, random numbers are drawn on the CPU and a GPU without a trace; other GPUs are not asked for theirs."""
    import torch

    return torch.random.fork_rng([device] if torch.device(device).type == "cuda" else [])
