"""Settings of a whole process, which our own command changes and a program that merely imports us keeps."""

from __future__ import annotations

from translucid.kernels.devices import tune_cpu
from translucid.kernels.machine import keep_freed_memory

_ours = False


def take_over() -> None:
    """Say that this process is our own command, or a worker of it, which may be set up for speed as a whole.

    Freed memory is kept from now on, and denormal numbers are 0 as soon as a model is loaded into PyTorch. A program of
    another kind that trains at length on a CPU may ask for it too.
    """
    global _ours
    _ours = True
    keep_freed_memory()


def tune_ours() -> None:
    """Set up PyTorch in this thread, and in those that it starts, if the process is ours."""
    if _ours:
        tune_cpu()
