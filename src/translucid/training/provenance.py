"""The provenance of the weights of a run: the command, the versions, the machine and the data."""

from __future__ import annotations

import platform
import subprocess
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import torch

from translucid import __version__
from translucid.kernels.machine import cores, physical_memory, processor


def provenance(
    files: Mapping[str, str], device: str, step: int, processes: int, command: Sequence[str] | None
) -> dict[str, Any]:
    """Return the provenance of a training that begins or is resumed, without the user, the host or the environment.

    Args:
        files: the SHA-256 of each file of pairs.
        device: the device of the training.
        step: the number of updates before.
        processes: the number of processes that train together.
        command: the arguments of the command `translucid`; None for a call from Python, whose command line may contain
            the name of the user.
    """
    packages = ("torch", "numpy", "sentencepiece", "ctranslate2")
    versions = {
        "python": platform.python_version(),
        **dict(zip(packages, map(metadata.version, packages), strict=True)),
    }
    data = []
    for file, sha256 in files.items():
        data.append({"file": file, "bytes": Path(file).stat().st_size, "sha256": sha256})
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "step": step,
        "command": None if command is None else ["translucid", *command],
        "translucid": __version__,
        "commit": _commit(),
        "versions": versions,
        "machine": {
            "system": f"{platform.system()} {platform.machine()}",
            "processor": processor(),
            "cores": cores(),
            "memory_gib": round(physical_memory() / 2**30, 1),
            "device": device,
            "processes": processes,
        },
        "data": data,
    }


def device_name(device: torch.device) -> str:
    """Return the name of a device, with the model of a CUDA GPU: `cuda:0 (NVIDIA H100)`."""
    return f"{device} ({torch.cuda.get_device_name(device)})" if device.type == "cuda" else str(device)


def _commit() -> str | None:
    """Return the commit of this code, with `+changes` if files differ from it; None outside a git checkout."""
    root = Path(__file__).resolve().parents[3]
    if not (root / ".git").exists():
        return None
    try:
        commit = _git(root, "rev-parse", "HEAD")
        changes = _git(root, "status", "--porcelain", "--untracked-files=no")
    except (OSError, subprocess.SubprocessError):
        return None
    return f"{commit}+changes" if changes else commit


def _git(root: Path, *arguments: str) -> str:
    command = ["git", "-C", str(root), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout.strip()
