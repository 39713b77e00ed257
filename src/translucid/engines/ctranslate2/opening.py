"""Opening converted models with CTranslate2, on a CPU or a GPU."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import ctranslate2

from translucid.engines.ctranslate2.conventions import Quantization
from translucid.ground.errors import UserError
from translucid.kernels.process import INSTRUCTIONS, forget_instructions


def gpu_of(device: str) -> int | None:
    """Return the number of the GPU that a device such as `cuda` or `cuda:1` names; None for the CPU."""
    kind, _, number = device.partition(":")
    return int(number or 0) if kind == "cuda" else None


def refuse_missing_gpu(device: str) -> None:
    """Check that CTranslate2 has the GPU that a device names.

    Raises:
        UserError: it has not.
    """
    gpu, count = gpu_of(device), ctranslate2.get_cuda_device_count()
    if gpu is not None and gpu >= count:
        raise UserError(f"there is no device {device!r} here", fix=f"CTranslate2 finds {count} GPUs; use --device cpu.")


def half_precision(device: str, quantization: Quantization) -> str:
    """Return the type in which CTranslate2 computes with weights of this type: float16 on a GPU that has it.

    `default` is the type of the weights, and float32 for what int8 leaves out.
    """
    gpu = gpu_of(device)
    if gpu is None:
        return "default"
    half_type = "float16" if quantization == "float32" else "int8_float16"
    return half_type if half_type in ctranslate2.get_supported_compute_types("cuda", gpu) else "default"


def open_translator(folder: Path, device: str, threads: int, compute_type: str) -> ctranslate2.Translator:
    """Open a converted model; `threads` work on a CPU, each on its own batches."""
    gpu = gpu_of(device)
    open_model = partial(
        ctranslate2.Translator,
        str(folder),
        "cpu" if gpu is None else "cuda",
        device_index=gpu or 0,
        compute_type=compute_type,
        # A GPU computes one batch after another; more threads would only keep more batches in its memory.
        inter_threads=threads if gpu is None else 1,
        intra_threads=1,
    )
    # CTranslate2 sets OpenMP's number of threads in the thread that opens it. In the current thread, that would limit
    # PyTorch to one thread from then on.
    with ThreadPoolExecutor(1) as executor:
        try:
            return executor.submit(open_model).result()
        except ValueError as error:
            if forget_instructions():
                return executor.submit(open_model).result()
            if INSTRUCTIONS in os.environ and str(error).startswith("The CPU does not support"):
                what = f"CTranslate2 can't use the instructions of {INSTRUCTIONS}={os.environ[INSTRUCTIONS]}"
                raise UserError(what, fix="Choose others, or unset the variable.") from error
            raise
