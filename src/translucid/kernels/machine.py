"""What this machine has; without PyTorch, so that it is quick to import."""

from __future__ import annotations

import ctypes
import os
import platform
import sys
import threading
from functools import cache
from pathlib import Path

from translucid.ground.errors import UserError


def cores() -> int:
    """Return how many CPU cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def processes() -> int:
    """Return how many processes to start for work that all cores share; on Windows, a pool waits for 61 at most."""
    return min(cores(), 61) if sys.platform == "win32" else cores()


def physical_memory() -> int:
    """Return the bytes of memory that this machine has, or 0 where that can't be told."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 0


def refuse_more_than_memory(size: int, file: Path, fix: str = "", *, verb: str = "has") -> None:
    """Compare the bytes that a file has, or unpacks to, with the memory of this machine.

    A file full of holes may have any number and take no room on the disk.

    Raises:
        UserError: they are more.
    """
    memory = physical_memory()
    if memory and size > memory:
        raise UserError(f"{verb} {size:,} bytes, more than this machine's memory", file=file, fix=fix)


def processor() -> str:
    """Return what the processor calls itself, as far as can be told."""
    lines = (line.partition(":") for line in _cpuinfo().splitlines())
    named = (value.strip() for key, _, value in lines if key.strip() == "model name")
    return next(named, "") or platform.processor() or "unknown"


def amd() -> bool:
    """Whether the processor is one of AMD's."""
    return "AuthenticAMD" in (_cpuinfo() or platform.processor())


def avx512() -> bool:
    """Whether the processor surely has the parts of AVX-512 that are in general use; on Linux only."""
    return {"avx512f", "avx512cd", "avx512vl", "avx512dq", "avx512bw"} <= set(_cpuinfo().split())


def bfloat16() -> bool:
    """Whether the processor surely multiplies bfloat16 by instructions of its own; on Linux only."""
    return avx512() and "avx512_bf16" in _cpuinfo().split()


@cache
def _cpuinfo() -> str:
    """Return what Linux says of the first core, and of some more."""
    try:
        with Path("/proc/cpuinfo").open(errors="replace") as file:
            return file.read(8192)
    except OSError:  # not Linux
        return ""


SPIN = "30000"
"""Turns of a thread that waits, before it sleeps."""


def wait_asleep() -> None:
    """Let PyTorch's threads soon sleep when they wait for each other, for processes of our own command.

    By default they spin. Where another program takes a core, a thread that spins keeps the one that it waits for from
    running: a recurrent model, whose operations are tiny, trains at a quarter of the speed then. Where none does, to be
    woken takes longer than most waits last, so GNU's threads, those of PyTorch on Linux, spin for a third of a
    millisecond first (docs/speed.md). It must be asked for before PyTorch is loaded, and what the environment says
    goes before.
    """
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ["OMP_WAIT_POLICY"] = "passive"
        os.environ.setdefault("GOMP_SPINCOUNT", SPIN)


def keep_freed_memory() -> None:
    """Keep what is freed for the next time.

    glibc gives every large block back to the system when it is freed and asks for it again a moment later: page
    faults for nothing.
    """
    if platform.libc_ver()[0] == "glibc":
        trim_threshold, mmap_threshold = -1, -3
        libc = ctypes.CDLL(None)
        libc.mallopt(trim_threshold, 2**31 - 1)
        libc.mallopt(mmap_threshold, 2**30)


def give_memory_back() -> None:
    """Give what is freed back to the system after all, where `keep_freed_memory` keeps it."""
    if platform.libc_ver()[0] == "glibc":
        ctypes.CDLL(None).malloc_trim(0)


def lower_priority() -> None:
    """Let this thread, and those that it starts, work when no other has something to do; on Linux only.

    There, and only there, a priority is a thread's own.
    """
    if sys.platform == "linux":
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 5)
