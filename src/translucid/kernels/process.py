"""Settings of the whole process: the command `translucid` changes them, a program that imports the package does not."""

from __future__ import annotations

import os

from translucid.kernels.devices import round_to_tf32, tune_cpu
from translucid.kernels.machine import amd, avx512, keep_freed_memory

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
