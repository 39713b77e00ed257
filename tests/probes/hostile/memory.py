"""A limit for the memory of a process, so that an absurd request fails instead of filling the machine."""

from __future__ import annotations

import contextlib
import resource
from collections.abc import Iterator
from pathlib import Path

CEILING = 2 << 30
"""The default limit: bytes above the memory that the process has at the start."""


@contextlib.contextmanager
def memory_ceiling(extra: int = CEILING) -> Iterator[None]:
    """Limit this process to this many bytes more than it has now; without /proc there is no limit."""
    status = Path("/proc/self/statm")
    if not status.exists():
        yield
        return
    now = int(status.read_text().split()[0]) * resource.getpagesize()
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (now + extra, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
