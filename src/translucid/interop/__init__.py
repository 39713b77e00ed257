"""Import and export of other toolkits' models."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from translucid.ground.errors import UserError

DESCRIPTIONS = ".yaml", ".yml", ".json"
"""The suffixes of a description of a PyTorch model."""
_PYTORCH = ".pt", ".pth", ".ckpt", ".safetensors", ".zip", *DESCRIPTIONS


def kind_of(path: Path) -> Literal["ctranslate2", "huggingface", "marian", "pytorch"]:
    """Recognize the kind of a folder or a file.

    Raises:
        UserError: the kind is unknown.
    """
    if not path.exists():
        raise UserError("is not there", file=path, fix="Give a folder, or an .npz file of Marian.")
    if (path / "model.bin").exists():
        return "ctranslate2"
    if (path / "config.json").exists():
        return "huggingface"
    if path.suffix in (".npz", ".bin") or any([*path.glob("*.npz"), *path.glob("model.*.bin")]):
        return "marian"
    if path.suffix in _PYTORCH or any((path / f"model{suffix}").exists() for suffix in DESCRIPTIONS):
        return "pytorch"
    fix = (
        "Hugging Face's have config.json, vocabularies and weights; CTranslate2's model.bin; Marian's are .npz files; "
        "PyTorch's have a description model.yaml."
    )
    raise UserError("holds no model that can be imported", file=path, fix=fix)
