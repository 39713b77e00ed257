"""Settings of a whole process, which our own command changes and a program that merely imports us keeps."""

from __future__ import annotations

import os

from translucid.kernels.devices import round_to_tf32, tune_cpu
from translucid.kernels.machine import amd, avx512, keep_freed_memory

_ours = False


def configure_process() -> None:
    """Say that this process is our own command, or a worker of it, which may be set up for speed as a whole.

    Freed memory is kept, denormal numbers are 0 as soon as a model is loaded into PyTorch, and CTranslate2 takes its
    kernels for AVX-512 where they are faster: on AMD's processors; on Intel's, some of which slow down for them, they
    have not been measured. What the environment says goes before. A program of another kind that works at length on a
    CPU may ask for it too.
    """
    global _ours
    _ours = True
    keep_freed_memory()
    if amd() and avx512():
        os.environ.setdefault("CT2_FORCE_CPU_ISA", "AVX512")


def tune_ours(*, exact: bool = False) -> None:
    """Set up PyTorch in this thread, and in those that it starts, if the process is ours.

    `exact`: whether a CUDA GPU makes products of float32 with all their digits. If not, it rounds factors to TF32, the
    10 binary digits that its fast units take.
    """
    if _ours:
        tune_cpu()
        round_to_tf32(not exact)
