"""A ceiling for the memory of a process, under which an absurd request fails instead of filling the machine."""

from __future__ import annotations

import contextlib
import resource
from collections.abc import Iterator
from pathlib import Path

CEILING = 2 << 30
"""Bytes above what the process has when it begins."""


@contextlib.contextmanager
def memory_ceiling(more: int = CEILING) -> Iterator[None]:
    """Let this process ask for so many bytes more than it has now; without /proc there is no ceiling."""
    status = Path("/proc/self/statm")
    if not status.exists():
        yield
        return
    now = int(status.read_text().split()[0]) * resource.getpagesize()
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (now + more, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
