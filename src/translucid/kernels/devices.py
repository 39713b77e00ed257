"""The choice of a device, its memory, and the settings that make a CPU or a GPU fast.

The command `translucid` changes settings of the whole process (`configure_process`); a program that imports the package
does not.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from importlib import metadata
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from translucid.ground.errors import UserError
from translucid.kernels.machine import amd, avx512, has_pytorch, keep_freed_memory, require_pytorch

if TYPE_CHECKING:
    import torch


def choose_device(name: str = "auto") -> torch.device:
    """Return the device of that name; `auto` is CUDA, else Apple's MPS, else the CPU.

    `cuda` is the GPU of this process. If torchrun has started several processes on this machine, each uses the GPU
    with its local rank.

    Raises:
        UserError: this machine or this build of PyTorch has no such device, or there is no PyTorch.
    """
    require_pytorch(f'`device="{name}"`')
    import torch

    gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    gpu_names = [f"cuda:{index}" for index in range(gpus)]
    available = ["cpu"]
    if gpus:
        available.append("cuda")
    if torch.backends.mps.is_available():
        available.append("mps")
    if name == "auto":
        name = available[1] if len(available) > 1 else "cpu"  # the first GPU in the list
    if name == "cuda" and gpus:
        rank = int(os.environ.get("LOCAL_RANK", "0"))
        if rank >= gpus:
            raise UserError(
                f"process {rank} of this machine has no GPU of its own: there are {gpus}",
                fix=f'Start torchrun with --nproc-per-node={gpus}, or train with `device="cpu"`.',
            )
        return torch.device("cuda", rank)
    if name not in [*available, *gpu_names]:
        names = ", ".join([*available, *gpu_names])
        raise UserError(f"there is no device {name!r} here", fix=f"Available: auto, {names}.")
    return torch.device(name)


def certainly_cpu(name: str) -> bool:
    """Whether a device name certainly means the CPU; checked without loading PyTorch, so False if in doubt.

    Without PyTorch, `auto` is the CPU.
    """
    return name == "cpu" or (name == "auto" and (not has_pytorch() or _no_gpu()))


def _no_gpu() -> bool:
    if metadata.version("torch").endswith("+cpu"):
        return True
    # The device files of NVIDIA's GPUs and small boards, of AMD's GPUs, and of Windows' GPUs within WSL.
    patterns = "nvidia*", "nvhost*", "kfd", "dxg"
    device_files = chain.from_iterable(map(Path("/dev").glob, patterns))
    return sys.platform == "linux" and not any(device_files)


def device_of_worker(name: str, worker: int) -> str:
    """Return the device of one of several workers on this machine: `auto` and `cuda` distribute them over its GPUs."""
    if certainly_cpu(name):
        return "cpu"
    import torch

    if name in ("auto", "cuda") and torch.cuda.is_available():
        return f"cuda:{worker % torch.cuda.device_count()}"
    return name


def same_sums_on_any_threads() -> None:
    """Make matrix products on a CPU independent, to the last digit, of the number of threads.

    This is a setting of Intel's MKL, PyTorch's library on x86, and costs no measurable time. MKL reads it at the first
    product of a process. A value that the user has set stays.
    """
    os.environ.setdefault("MKL_CBWR", "AUTO,STRICT")


CACHED_PRODUCTS = 32
"""The number of compiled products that oneDNN caches. By default it caches 1,024 of about 200 KiB each, although two
batches of text rarely have the same shape."""


def tune_cpu() -> None:
    """Set up the whole process for work on a CPU; for commands and training, not for a program that imports Translucid.

    Freed memory is kept for the next step. oneDNN caches few compiled products, unless it has run before or the
    environment sets another number.
    """
    import torch

    # Denormal numbers are slow, and Adam's averages for rare words decay into them; 0 is as good.
    torch.set_flush_denormal(True)
    keep_freed_memory()
    # The caches of oneDNN and of PyTorch's layer on top of it.
    for name in ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY"):
        os.environ.setdefault(name, str(CACHED_PRODUCTS))


def round_to_tf32(enabled: bool) -> None:
    """Choose whether products, convolutions and recurrent layers of float32 on CUDA GPUs round their factors to TF32.

    TF32 has 10 binary digits instead of 23, and an H100 multiplies such numbers about eight times as fast. CPUs keep
    their precision, unlike with `torch.set_float32_matmul_precision`, which lets some CPUs round too.
    """
    import torch

    if not torch.cuda.is_available():
        return
    precision = "tf32" if enabled else "ieee"
    backends: Any = torch.backends  # PyTorch's stubs lack these attributes
    for operation in (backends.cuda.matmul, backends.cudnn.conv, backends.cudnn.rnn):
        operation.fp32_precision = precision


@contextmanager
def fixed_order(enabled: bool) -> Iterator[None]:
    """Make GPUs add in a fixed order, if enabled; PyTorch warns of operations that have no deterministic form."""
    import torch

    if not enabled:  # the function below imports PyTorch's compiler, which takes a second
        yield
        return
    name = "CUBLAS_WORKSPACE_CONFIG"  # cuBLAS is deterministic only with this setting
    is_unset = name not in os.environ
    previous = torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()
    os.environ.setdefault(name, ":4096:8")
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(previous[0], warn_only=previous[1])
        if is_unset:
            del os.environ[name]


def preserve_random_state(device: torch.device | str) -> AbstractContextManager[None]:
    """Restore the random states of the CPU and of this GPU at the end; the states of other GPUs are not read."""
    import torch

    return torch.random.fork_rng([device] if torch.device(device).type == "cuda" else [])


COPIES = 5
"""Numbers in memory for each trainable weight: the weight, its gradient, two moments and its running average."""


def is_memory_full(error: BaseException) -> bool:
    """Whether an exception says that a GPU is out of memory; this does not import PyTorch."""
    torch = sys.modules.get("torch")
    if torch is None:
        return False
    if isinstance(error, torch.OutOfMemoryError):
        return True
    # MPS and the CUDA libraries that allocate memory themselves raise a RuntimeError with one of these messages.
    message = str(error)
    causes = "out of memory", "CUBLAS_STATUS_ALLOC_FAILED", "CUDNN_STATUS_ALLOC_FAILED"
    return isinstance(error, RuntimeError) and any(cause in message for cause in causes)


def memory_for_training(trainable: int, frozen: int) -> int:
    """Return the bytes that training needs for the weights alone, given the numbers of trainable and frozen weights."""
    # A frozen weight has no gradient and no moments, but the averaged model has a copy of it. 4 bytes each.
    return 4 * (COPIES * trainable + 2 * frozen)


def gpu_memory(device: torch.device) -> int | None:
    """Return the total memory of a CUDA GPU in bytes; None for another device."""
    if device.type != "cuda":
        return None
    import torch

    return torch.cuda.mem_get_info(device)[1]


INSTRUCTIONS = "CT2_FORCE_CPU_ISA"
"""The variable that chooses CTranslate2's instructions."""
_configured = False
_chose_instructions = False


def configure_process() -> None:
    """Allow settings for speed in the whole process, as the command `translucid` and its workers do.

    Freed memory is kept, denormal numbers become 0 when a model is loaded into PyTorch, and CTranslate2 uses its
    kernels for AVX-512 on AMD's processors. Values that the user has set stay. Other programs that work on a CPU for a
    long time can call this too.
    """
    global _configured, _chose_instructions
    _configured = True
    keep_freed_memory()
    # Not on Intel's processors, some of which lower their clock for AVX-512: there, nobody has measured it.
    if amd() and avx512() and INSTRUCTIONS not in os.environ:
        os.environ[INSTRUCTIONS] = "AVX512"
        _chose_instructions = True


def forget_instructions() -> bool:
    """Let CTranslate2 choose its instructions again, as it refuses ours; return False if they were not our choice."""
    global _chose_instructions
    was_ours = _chose_instructions
    if was_ours:
        os.environ.pop(INSTRUCTIONS, None)
    _chose_instructions = False
    return was_ours


def tune_pytorch(*, exact: bool = False) -> None:
    """Set up PyTorch in this thread and the threads that it starts, if `configure_process` has been called.

    `exact`: whether a CUDA GPU computes products of float32 with all digits. Otherwise it rounds factors to TF32, the
    10 binary digits of its fast units.
    """
    if _configured:
        tune_cpu()
        round_to_tf32(not exact)
