"""The cores, memory and processor of this machine, whether it has PyTorch, and settings of the process.

This module does not import PyTorch, which is slow, and which the runtime installation lacks: that one translates,
serves and aligns without it.
"""

from __future__ import annotations

import ctypes
import math
import os
import platform
import sys
import threading
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from itertools import chain
from pathlib import Path

from translucid.ground.errors import UserError, missing_package

_threads: int | None = None
"""The number of threads that the user allows."""


def cores() -> int:
    """Return the number of CPU cores that this process may use, by its affinity and the quota of its container."""
    return _threads or min(_visible_cores(), _core_quota())


def limit_threads(count: int) -> None:
    """Use this many threads instead of all cores; call it before PyTorch is loaded."""
    global _threads
    _threads = count
    os.environ["OMP_NUM_THREADS"] = str(count)  # PyTorch's


def limit_threads_to_quota() -> None:
    """Let PyTorch start as many threads as the container's quota has cores; call it before PyTorch is loaded.

    By default it starts one for each core of the machine, which then wait for each other while the quota is used up.
    A value that the user has set stays.
    """
    if cores() < _visible_cores():
        os.environ.setdefault("OMP_NUM_THREADS", str(cores()))


def _visible_cores() -> int:
    if hasattr(os, "sched_getaffinity"):  # Linux
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def processes() -> int:
    """Return the number of processes to start for work on all cores; on Windows, a pool waits for 61 at most."""
    return min(cores(), 61) if sys.platform == "win32" else cores()


def physical_memory() -> int:
    """Return the bytes of memory of this machine, or of its container if that has less; 0 if unknown."""
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 0
    limits = chain.from_iterable(_cgroup_values("memory", "memory.max", "memory.limit_in_bytes"))
    return min([memory, *limits])


CGROUPS = Path("/sys/fs/cgroup")
"""Where Linux shows the limits of containers and services, in its first or second version of control groups."""
OWN_CGROUPS = Path("/proc/self/cgroup")
"""The control groups of this process."""


def _core_quota() -> int:
    """Return the number of cores whose time the container of this process may use, rounded up."""
    quotas = [sys.maxsize]
    for values in _cgroup_values("cpu", "cpu.max", "cpu.cfs_quota_us", "cpu.cfs_period_us"):
        if len(values) == 2 and min(values) > 0:
            microseconds, period = values
            quotas.append(max(1, math.ceil(microseconds / period)))
    return min(quotas)


def _cgroup_values(controller: str, file: str, *former_files: str) -> Iterator[list[int]]:
    """Yield the numbers of a limit in each control group of this process, from the innermost to the outermost.

    Args:
        controller: `cpu` or `memory`.
        file: the file of version 2.
        former_files: the files of version 1, one for each number.
    """
    try:
        groups = [line.split(":", 2) for line in OWN_CGROUPS.read_text().splitlines()]
    except OSError:  # not Linux
        return
    for _, controllers, path in groups:
        if controllers and controller not in controllers.split(","):
            continue
        root = CGROUPS / controllers
        names = former_files if controllers else (file,)
        # Within a container, the path may be that of the host, which is not visible.
        innermost = root / path.strip("/")
        for folder in (innermost, *innermost.parents):
            words = chain.from_iterable(_words_of(folder / name) for name in names)
            yield [int(word) for word in words if word.isdecimal()]
            if folder == root:
                break


def _words_of(file: Path) -> list[str]:
    try:
        return file.read_text().split()
    except OSError:
        return []


def refuse_more_than_memory(size: int, file: Path, fix: str = "", *, verb: str = "has") -> None:
    """Compare the size of a file, or of its unpacked content, in bytes with the memory of this machine.

    A sparse file may have any size and take no space on the disk.

    Raises:
        UserError: the size exceeds the memory.
    """
    memory = physical_memory()
    if memory and size > memory:
        raise UserError(f"{verb} {size:,} bytes, more than this machine's memory", file=file, fix=fix)


def processor() -> str:
    """Return the model name of the processor, or `unknown`."""
    for line in _cpuinfo().splitlines():
        key, _, value = line.partition(":")
        if key.strip() == "model name" and value.strip():
            return value.strip()
    return platform.processor() or "unknown"


def amd() -> bool:
    """Whether the processor is one of AMD's."""
    return "AuthenticAMD" in (_cpuinfo() or platform.processor())


def avx512() -> bool:
    """Whether the processor is known to have the common parts of AVX-512; False outside Linux."""
    return {"avx512f", "avx512cd", "avx512vl", "avx512dq", "avx512bw"} <= set(_cpuinfo().split())


def instruction_set() -> str:
    """Return the widest vector instructions of the processor, and the limit that the user has set; "" if unknown."""
    flags = set(_cpuinfo().split())
    name = ""
    if avx512() and "avx512_bf16" in flags:
        name = "AVX-512 with bfloat16"
    elif avx512():
        name = "AVX-512"
    elif "avx2" in flags:
        name = "AVX2"
    limits = [f"{variable}={os.environ[variable]}" for variable in _LIMITS if variable in os.environ]
    return ", ".join(filter(None, [name, *limits]))


_LIMITS = "ATEN_CPU_CAPABILITY", "ONEDNN_MAX_CPU_ISA", "MKL_ENABLE_INSTRUCTIONS", "CT2_FORCE_CPU_ISA"
"""Variables by which a user limits the instructions that PyTorch, oneDNN, MKL and CTranslate2 use."""


@cache
def _cpuinfo() -> str:
    """Return Linux's description of the first cores."""
    try:
        with Path("/proc/cpuinfo").open(errors="replace") as file:
            return file.read(8192)  # enough for the first core; a large machine has hundreds of them
    except OSError:  # not Linux
        return ""


@cache
def has_pytorch() -> bool:
    """Whether PyTorch is installed; it is not imported."""
    return find_spec("torch") is not None


def require_pytorch(what: str) -> None:
    """Check that PyTorch is installed, for something that needs it.

    Raises:
        UserError: it is not.
    """
    if not has_pytorch():
        raise missing_package(what, "PyTorch", "train")


SPIN_COUNT = "30000"
"""The number of rounds that a waiting thread spins before it sleeps."""


def wait_asleep() -> None:
    """Let PyTorch's threads sleep soon while they wait for each other, in processes of the command `translucid`.

    By default they spin. If another program uses a core, a spinning thread can keep the thread that it waits for from
    running: a recurrent model, whose operations are tiny, then trains at a quarter of the speed. On an idle machine,
    waking up takes longer than most waits last, so the threads of GNU's OpenMP, which PyTorch uses on Linux, spin for a
    third of a millisecond first (docs/benchmarks.md). Call this before PyTorch is loaded. Values that the user has set
    stay.
    """
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ["OMP_WAIT_POLICY"] = "passive"
        os.environ.setdefault("GOMP_SPINCOUNT", SPIN_COUNT)


def keep_freed_memory() -> None:
    """Keep freed memory in the process.

    By default, glibc returns every large block to the system when it is freed, and the next step requests it again,
    with a page fault for every page.
    """
    if platform.libc_ver()[0] == "glibc":
        trim_threshold, mmap_threshold = -1, -3  # M_TRIM_THRESHOLD and M_MMAP_THRESHOLD of malloc.h
        libc = ctypes.CDLL(None)
        libc.mallopt(trim_threshold, 2**31 - 1)
        libc.mallopt(mmap_threshold, 2**30)


def release_freed_memory() -> None:
    """Return to the system now the freed memory that `keep_freed_memory` keeps."""
    if platform.libc_ver()[0] == "glibc":
        ctypes.CDLL(None).malloc_trim(0)


def lower_priority(by: int = 5) -> None:
    """Give this thread, and the threads and processes that it starts, a higher nice value than the process has.

    On Linux only.
    """
    # On other systems a priority belongs to the whole process, which would slow down all its threads.
    if sys.platform == "linux":
        own = os.getpriority(os.PRIO_PROCESS, os.getpid())
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), min(own + by, 19))
