"""Import and export of other toolkits' models."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Literal, TypeAlias

from translucid.ground.errors import UserError

DESCRIPTIONS = ".yaml", ".yml", ".json"
"""The suffixes of a description of a PyTorch model."""
KERAS = ".keras", ".h5"
"""The suffixes of a file of Keras."""
_PYTORCH = ".pt", ".pth", ".ckpt", ".safetensors", ".zip", *KERAS, *DESCRIPTIONS
_KINDS = (
    "Hugging Face's have config.json, vocabularies and weights; CTranslate2's model.bin; Marian's are .npz files; "
    "PyTorch's have a description model.yaml; arabic-name-romanizer, cn2en and g2p-en are unpacked packages."
)

Kind: TypeAlias = Literal["ctranslate2", "huggingface", "romanizer", "cn2en", "g2p", "marian", "pytorch"]
"""A layout of the files of a model."""


def kind_of(path: Path) -> Kind:
    """Recognize the kind of a folder or a file.

    Raises:
        UserError: the kind is unknown.
    """
    if not path.exists():
        raise UserError("is not there", file=path, fix=f"Give the files of a model. {_KINDS}")
    if (path / "model.bin").exists():
        return "ctranslate2"
    if (path / "config.json").exists():
        return "huggingface"
    if (path / "encoder.onnx").exists() and (path / "vocab.json").exists():
        return "romanizer"
    if (path / "model.pth").exists() and (path / "input_lang.pkl").exists():
        return "cn2en"
    if any(map(_is_g2p, [path, *path.glob("*.npz")])):
        return "g2p"
    if path.suffix in (".npz", ".bin") or any([*path.glob("*.npz"), *path.glob("model.*.bin")]):
        return "marian"
    if path.suffix in _PYTORCH or any((path / f"model{suffix}").exists() for suffix in DESCRIPTIONS):
        return "pytorch"
    names = ", ".join(sorted(file.name for file in path.iterdir())) if path.is_dir() else ""
    contents = f" (it has {names:.200})" if names else ""
    raise UserError(f"holds no model that can be imported{contents}", file=path, fix=_KINDS)


def _is_g2p(file: Path) -> bool:
    """Whether a file is the .npz file of g2p-en."""
    try:
        with zipfile.ZipFile(file) as archive:
            return "enc_emb.npy" in archive.namelist()
    except (OSError, zipfile.BadZipFile):
        return False
