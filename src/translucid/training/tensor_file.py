"""Tensors on disk: safetensors with a checksum, written atomically, never unpickled."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from translucid.atomic import write_atomically
from translucid.errors import UserError


def save_tensors(path: Path, tensors: dict[str, Tensor], metadata: dict[str, Any]) -> None:
    """Write tensors with JSON metadata and a SHA-256 of both."""
    tensors = {name: tensor.detach().to("cpu").contiguous() for name, tensor in tensors.items()}
    text = json.dumps(metadata, sort_keys=True)
    write_atomically(path, save(tensors, {"translucid": text, "sha256": _checksum(tensors, text)}))


def load_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read what `save_tensors` wrote.

    Raises:
        UserError: the file is missing, cut short, damaged, or not ours.
    """
    fix = "Take the file from a backup, or train again."
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dict
        text, checksum = metadata["translucid"], metadata["sha256"]
    except FileNotFoundError as error:
        raise UserError("is missing", file=path, fix=fix) from error
    except (SafetensorError, OSError) as error:
        raise UserError(f"is damaged or cut short ({error})", file=path, fix=fix) from error
    except KeyError as error:
        raise UserError("was not written by translucid", file=path, fix=fix) from error
    if _checksum(tensors, text) != checksum:
        raise UserError("is damaged: its content does not match its checksum", file=path, fix=fix)
    content: dict[str, Any] = json.loads(text)
    return tensors, content


def _checksum(tensors: dict[str, Tensor], text: str) -> str:
    digest = hashlib.sha256(text.encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.flatten().view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()
