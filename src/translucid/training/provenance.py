"""Where the weights of a run come from: the command, our version, the machine, the data."""

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
    """Return what is known when a training begins or goes on; nothing of the user, the host or the environment.

    Args:
        files: the SHA-256 of each file of pairs.
        device: where it is trained.
        step: updates made before.
        processes: that train together.
        command: what was given to `translucid`; None where it was called from Python, whose own command line may
            name the user.
    """
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "step": step,
        "command": None if command is None else ["translucid", *command],
        "translucid": __version__,
        "commit": _commit(),
        "versions": {"python": platform.python_version()}
        | {name: metadata.version(name) for name in ("torch", "numpy", "sentencepiece", "ctranslate2")},
        "machine": {
            "system": f"{platform.system()} {platform.machine()}",
            "processor": processor(),
            "cores": cores(),
            "memory_gib": round(physical_memory() / 2**30, 1),
            "device": device,
            "processes": processes,
        },
        "data": [
            {"file": file, "bytes": Path(file).stat().st_size, "sha256": sha256} for file, sha256 in files.items()
        ],
    }


def device_name(device: torch.device) -> str:
    """Return where it is trained, with the name of a CUDA GPU: `cuda:0 (NVIDIA H100)`."""
    return f"{device} ({torch.cuda.get_device_name(device)})" if device.type == "cuda" else str(device)


def _commit() -> str | None:
    """Return the commit of our code, `+changes` behind it if it was changed since; None if this is no checkout."""
    root = Path(__file__).resolve().parents[3]
    if not (root / ".git").exists():
        return None
    try:
        commit, changes = (
            subprocess.run(
                ["git", "-C", str(root), *what], capture_output=True, text=True, check=True, timeout=10
            ).stdout
            for what in (["rev-parse", "HEAD"], ["status", "--porcelain", "--untracked-files=no"])
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return commit.strip() + ("+changes" if changes.strip() else "")
