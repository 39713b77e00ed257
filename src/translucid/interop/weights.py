"""Read the tensors of another model's folder, in safetensors or PyTorch's format; nothing is unpickled."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import TYPE_CHECKING

from translucid.ground.errors import UserError
from translucid.ground.reading import refuse_strange
from translucid.interop.imported import all_are, read_json, whole_of
from translucid.kernels.machine import refuse_more_than_memory
from translucid.runs.tensor_file import LONGEST_HEADER

if TYPE_CHECKING:
    from torch import Tensor

_FIX = "Get the file again."


def read_weights(folder: Path) -> dict[str, Tensor]:
    """Read all tensors of a Hugging Face folder, in float32.

    Raises:
        UserError: there are no tensors, or a file is damaged, too large, or would have to be unpickled.
    """
    for name in ("model.safetensors", "pytorch_model.bin"):
        file, index = folder / name, folder / f"{name}.index.json"
        if file.exists():
            return _read(file)
        if index.exists():
            return _read_parts(index)
    raise UserError("has no weights", file=folder, fix="It needs model.safetensors or pytorch_model.bin.")


def _read_parts(index: Path) -> dict[str, Tensor]:
    """Read the files that an index names."""
    parts = read_json(index)
    names = parts.get("weight_map") if isinstance(parts, dict) else None
    if not isinstance(names, dict) or not all_are(str, names.values()):
        raise UserError("does not say in which files the weights are", file=index, fix=_FIX)
    tensors: dict[str, Tensor] = {}
    for part in sorted({*names.values()}):
        if Path(part).name != part:  # a stranger's index must not read other folders
            raise UserError(f"names {part!r}, which is not in this folder", file=index, fix=_FIX)
        tensors |= _read(index.parent / part)
    return tensors


def _read(file: Path) -> dict[str, Tensor]:
    import torch
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    if not file.exists():
        raise UserError("is missing", file=file, fix=_FIX)
    refuse_strange(file, whole_of(file))
    refuse_more_than_memory(file.stat().st_size, file)
    try:
        if file.suffix == ".safetensors":
            # safetensors would allocate what the header's length says, however large.
            with file.open("rb") as start:
                if int.from_bytes(start.read(8), "little") > LONGEST_HEADER:
                    raise UserError("is damaged, or not safetensors", file=file, fix=_FIX)
            found = load_file(file)
        else:
            found = torch.load(file, map_location="cpu", weights_only=True)
    except (SafetensorError, OSError, EOFError, json.JSONDecodeError) as error:
        raise UserError(f"is damaged or cut short ({error})", file=file, fix=_FIX) from error
    except (pickle.UnpicklingError, RuntimeError, ValueError, TypeError, KeyError) as error:
        what = "holds more than weights, or is damaged"
        raise UserError(what, file=file, fix="Use the model's safetensors.") from error
    if not isinstance(found, dict) or not all(isinstance(tensor, torch.Tensor) for tensor in found.values()):
        raise UserError("holds more than weights", file=file, fix="Use the model's safetensors.")
    # Tensors of whole numbers, such as the numbers of positions, are no weights.
    return {str(name): tensor.float() for name, tensor in found.items() if tensor.is_floating_point()}
