"""Opening converted models with CTranslate2, on a CPU or a GPU, and caching them.

They are stored in the user's cache: opening one needs no PyTorch, which takes longer to load than most texts take to
translate. They are not stored in the run folder, which may come from an untrusted source.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TypeVar

import ctranslate2

from translucid.engines.ctranslate2.conventions import Quantization
from translucid.ground.cache import find_kept, keep
from translucid.ground.errors import UserError

KEPT = 8
"""The number of models in the cache; the one that was used least recently is removed."""

Opened = TypeVar("Opened")


def gpu_of(device: str) -> int | None:
    """Return the number of the GPU that a device such as `cuda` or `cuda:1` names; None for the CPU."""
    kind, _, number = device.partition(":")
    return int(number or 0) if kind == "cuda" else None


def half_precision(device: str, quantization: Quantization) -> str:
    """Return the type in which CTranslate2 computes with weights of this type: float16 on a GPU that has it.

    `default` is the type of the weights, and float32 for what int8 leaves out.
    """
    gpu = gpu_of(device)
    if gpu is None:
        return "default"
    wanted = "float16" if quantization == "float32" else "int8_float16"
    return wanted if wanted in ctranslate2.get_supported_compute_types("cuda", gpu) else "default"


def open_translator(folder: Path, device: str, threads: int, compute_type: str) -> ctranslate2.Translator:
    """Open a converted model; `threads` work on a CPU, each on its own batches."""
    gpu = gpu_of(device)
    # CTranslate2 sets OpenMP's number of threads in the thread that opens it. In this one, PyTorch would be limited to
    # one thread from then on.
    with ThreadPoolExecutor(1) as aside:
        return aside.submit(
            ctranslate2.Translator,
            str(folder),
            "cpu" if gpu is None else "cuda",
            device_index=gpu or 0,
            compute_type=compute_type,
            # A GPU computes one batch after another; more threads would only keep more batches in its memory.
            inter_threads=threads if gpu is None else 1,
            intra_threads=1,
        ).result()


def open_converted(made_from: str, convert: Callable[[Path], None], opened: Callable[[Path], Opened]) -> Opened:
    """Open the converted model with this fingerprint from the cache, or convert it first.

    Args:
        made_from: the hexadecimal fingerprint of everything that the model was converted from.
        convert: writes a converted model into a folder.
        opened: opens the model in a folder, which may be deleted afterwards.

    Raises:
        UserError: the model can't be converted.
    """
    kept = find_kept("ctranslate2", made_from)
    if kept:
        with suppress(OSError, ValueError, RuntimeError, UserError):  # a damaged model is converted again
            return opened(kept)
    with tempfile.TemporaryDirectory(prefix="translucid-") as name:
        made = Path(name) / "model"
        convert(made)
        with suppress(OSError):  # without space or a home folder, the model is not kept
            keep("ctranslate2", made_from, partial(shutil.copytree, made), KEPT)
        return opened(made)
