"""Tensors on disk: safetensors with a checksum, written atomically, never unpickled; and their loading into a model.

Names, shapes and the options of the training are checked before weights are loaded.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from translucid.ground.atomic import atomic_file
from translucid.ground.errors import UserError
from translucid.kernels.machine import refuse_more_than_memory

if TYPE_CHECKING:
    from torch import Tensor

    from translucid.models.model_shape import ModelShape
    from translucid.models.protocol import Model

LONGEST_HEADER = 1 << 24
"""The maximum size in bytes of names, shapes and metadata: enough for the checkpoint of a hundred thousand tensors."""
_MISFIT = "The file does not belong to the config.yaml beside it."
_FIX = "Take the file from a backup, or train again."
_RENAMED = {"decoder.said.": "decoder.hidden_projection.", "decoder.seen.": "decoder.context_projection."}
"""The current name of each module that had another name, so that existing files load."""
_DTYPES = {
    "float64": "F64",
    "float32": "F32",
    "float16": "F16",
    "bfloat16": "BF16",
    "int64": "I64",
    "int32": "I32",
    "int16": "I16",
    "int8": "I8",
    "uint8": "U8",
    "bool": "BOOL",
    "complex64": "C64",
    "float8_e4m3fn": "F8_E4M3",
}
"""The names of PyTorch's types in a safetensors file."""


def save_tensors(path: Path, tensors: dict[str, Tensor], metadata: dict[str, Any]) -> None:
    """Write tensors with JSON metadata and a SHA-256 of both.

    The functions of safetensors either hold all bytes in memory, twice, or replace the file themselves.
    """
    tensors = {name: tensor.detach().to("cpu").contiguous() for name, tensor in tensors.items()}
    text = json.dumps(metadata, sort_keys=True)
    # The readers expect the largest types first, so that all numbers are aligned.
    names = sorted(tensors, key=lambda name: (-tensors[name].dtype.itemsize, name))
    header: dict[str, Any] = {"__metadata__": {"translucid": text, "sha256": _checksum(tensors, text)}}
    end = 0
    for name in names:
        tensor = tensors[name]
        start, end = end, end + tensor.nbytes
        dtype = _DTYPES[str(tensor.dtype).removeprefix("torch.")]
        header[name] = {"dtype": dtype, "shape": list(tensor.shape), "data_offsets": [start, end]}
    head = json.dumps(header).encode()
    head += b" " * (-len(head) % 8)
    with atomic_file(path) as file:
        file.write(len(head).to_bytes(8, "little") + head)
        for name in names:
            file.write(_bytes(tensors[name]).data)


def load_tensors(path: Path, *, finite: bool = True) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read a file that `save_tensors` wrote; with `finite`, refuse infinite values and those that are not numbers.

    Raises:
        UserError: the file is missing, cut short, damaged, or not ours.
    """
    with _opened(path, "pt") as (file, facts):
        # Copies, because safetensors returns views of the file, which may still be changed after the check.
        tensors = {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118 - not a dict
        _refuse_damage(tensors, file.metadata(), path)
    if finite:
        refuse_not_finite(tensors, path)
    return {_current_name(name): tensor for name, tensor in tensors.items()}, facts


def load_arrays(path: Path) -> tuple[dict[str, NDArray[np.float32]], dict[str, Any]]:
    """Read weights that `save_tensors` wrote as NumPy arrays of float32; this does not import PyTorch.

    Raises:
        UserError: the file is missing, cut short, damaged, or not ours, or has weights that are not finite numbers.
    """
    with _opened(path, "np") as (file, facts):
        arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dict
        _refuse_damage(arrays, file.metadata(), path)
    weights: dict[str, NDArray[np.float32]] = {}
    for name, array in arrays.items():
        if not np.issubdtype(array.dtype, np.floating):
            raise UserError(f"does not fit the model: {name} is {array.dtype}", file=path, fix=_MISFIT)
        if not np.isfinite(array).all():
            raise _not_finite(name, path)
        weights[_current_name(name)] = array.astype(np.float32, copy=False)
    return weights, facts


def read_header(path: Path) -> tuple[dict[str, tuple[int, ...]], dict[str, Any]]:
    """Read only the shapes of the tensors and the metadata, in little memory but without verifying the checksum.

    This does not import PyTorch.

    Raises:
        UserError: the file is missing, cut short, or not ours.
    """
    with _opened(path, "np") as (file, facts):
        shape_of = {}
        for name in file.keys():  # noqa: SIM118 - not a dict
            shape_of[_current_name(name)] = tuple(file.get_slice(name).get_shape())
        return shape_of, facts


def _current_name(name: str) -> str:
    """Return the current name of a tensor, which may be a weight or, in a checkpoint, a state of the optimizer."""
    for former, current in _RENAMED.items():
        name = name.replace(former, current)
    return name


def refuse_not_finite(tensors: Mapping[str, Tensor], file: Path) -> None:
    """Check that all weights are finite.

    Raises:
        UserError: one is infinite or not a number.
    """
    for name, tensor in tensors.items():
        if not tensor.is_floating_point():
            continue
        if tensor.dtype.itemsize == 1:  # PyTorch has no `isfinite` for numbers of 8 bits
            tensor = tensor.float()
        if not tensor.isfinite().all():
            raise _not_finite(name, file)


def _not_finite(name: str, file: Path) -> UserError:
    return UserError(f"has weights that are not finite numbers: {name}", file=file, fix="Get the file again.")


@contextmanager
def _opened(path: Path, framework: str) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Open a file with safetensors; return its handle and our metadata."""
    try:
        # A safetensors file begins with the length of its header, in eight bytes.
        with path.open("rb") as start:
            header = int.from_bytes(start.read(8), "little")
        refuse_more_than_memory(path.stat().st_size, path, _FIX)
        if header > LONGEST_HEADER:
            raise UserError(f"is damaged or not ours: it begins with {header:,} bytes of names", file=path, fix=_FIX)
        with safe_open(path, framework=framework) as file:
            yield file, _facts(file.metadata() or {}, path)
    except FileNotFoundError as error:
        raise UserError("is missing", file=path, fix=_FIX) from error
    except MemoryError as error:
        raise UserError("needs more memory than there is", file=path, fix="Use a machine with more.") from error
    except (SafetensorError, OSError) as error:
        raise UserError(f"is damaged or cut short ({error})", file=path, fix=_FIX) from error
    except (ValueError, TypeError, RuntimeError) as error:  # such as a type of number that PyTorch does not have
        raise UserError(f"is damaged or not ours ({error})", file=path, fix=_FIX) from error


def _facts(metadata: dict[str, str], path: Path) -> dict[str, Any]:
    try:
        facts = json.loads(metadata["translucid"])
    except (KeyError, ValueError, RecursionError) as error:
        raise UserError("was not written by translucid", file=path, fix=_FIX) from error
    if "sha256" not in metadata or not isinstance(facts, dict):
        raise UserError("was not written by translucid", file=path, fix=_FIX)
    return facts


def _refuse_damage(tensors: Mapping[str, Any], metadata: Mapping[str, str], path: Path) -> None:
    """Compare the content of a file with its checksum."""
    if _checksum(tensors, metadata["translucid"]) != metadata["sha256"]:
        raise UserError("is damaged: its content does not match its checksum", file=path, fix=_FIX)


def _checksum(tensors: Mapping[str, Any], text: str) -> str:
    """Return a checksum of tensors of PyTorch or NumPy, which is the same for both."""
    digest = hashlib.sha256(text.encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        if isinstance(tensor, np.ndarray):
            dtype, content = f"torch.{tensor.dtype}", tensor.reshape(-1).view(np.uint8)
        else:
            dtype, content = str(tensor.dtype), _bytes(tensor)
        digest.update(f"{name} {dtype} {tuple(tensor.shape)}".encode())
        digest.update(content.data)
    return digest.hexdigest()


def _bytes(tensor: Tensor) -> NDArray[np.uint8]:
    """Return the bytes of a contiguous tensor on the CPU, without a copy."""
    import torch

    content: NDArray[np.uint8] = tensor.flatten().view(torch.uint8).numpy()
    return content


def unshared(model: Model) -> dict[str, Tensor]:
    """Return the weights by name; shared weights have only their first name."""
    return {name: parameter.data for name, parameter in model.named_parameters()}


def shapes(tensors: Mapping[str, Tensor]) -> dict[str, tuple[int, ...]]:
    """Return the shapes of tensors by name."""
    return {name: tensor.shape for name, tensor in tensors.items()}


def weight_shapes(model: Model) -> dict[str, tuple[int, ...]]:
    """Return the shape of each weight of a model by name; shared weights have only their first name."""
    return shapes(unshared(model))


def load_weights(model: Model, tensors: dict[str, Tensor], file: Path) -> None:
    """Copy weights by name into a model.

    Raises:
        UserError: names are missing or unknown, or a shape differs.
    """
    _refuse_strange(model, tensors, file)
    for name, tensor in unshared(model).items():
        tensor.copy_(tensors[name])


def fill(model: Model, tensors: dict[str, Tensor], file: Path) -> None:
    """Put tensors into a model on the meta device as its weights, by name, in float32; shared weights stay shared.

    Raises:
        UserError: names are missing or unknown, or a shape differs.
    """
    from torch import float32, nn

    _refuse_strange(model, tensors, file)
    filled = {id(empty): nn.Parameter(tensors[name].to(float32)) for name, empty in model.named_parameters()}
    for module in model.modules():
        # A list, because the loop changes what it iterates over.
        for name, empty in list(module.named_parameters(recurse=False, remove_duplicate=False)):
            setattr(module, name, filled[id(empty)])


def _refuse_strange(model: Model, tensors: dict[str, Tensor], file: Path) -> None:
    refuse_misfits(weight_shapes(model), shapes(tensors), file)
    for name, tensor in tensors.items():
        if not tensor.is_floating_point():
            raise UserError(f"does not fit the model: {name} is {tensor.dtype}", file=file, fix=_MISFIT)
    refuse_not_finite(tensors, file)


def refuse_misfits(expected: Mapping[str, tuple[int, ...]], actual: Mapping[str, tuple[int, ...]], file: Path) -> None:
    """Compare the shapes of weights by name.

    Raises:
        UserError: names are missing or unknown, or a shape differs.
    """
    problems = [f"{name} is missing" for name in sorted(expected.keys() - actual.keys())]
    problems += [f"{name} is unknown" for name in sorted(actual.keys() - expected.keys())]
    if problems:
        raise UserError(f"does not fit the model: {', '.join(problems[:3])}", file=file, fix=_MISFIT)
    for name, shape in expected.items():
        if shape != actual[name]:
            what = f"does not fit the model: {name} is {list(actual[name])}, not {list(shape)}"
            raise UserError(what, file=file, fix=_MISFIT)


def refuse_other_options(trained: Any, options: ModelShape, file: Path) -> None:
    """Compare the options of a model with those of its training; not all, such as the number of heads, change shapes.

    Args:
        trained: the options that the file of the weights contains; older files contain none.
        options: the options of the configuration.
        file: the file of the configuration.

    Raises:
        UserError: an option differs.
    """
    trained_options = trained if isinstance(trained, dict) else {}
    for name, value in options.model_dump(mode="json").items():
        if name in trained_options and trained_options[name] != value:
            what = f"says model.{name}={value}, but the weights were trained with {trained_options[name]}"
            raise UserError(what, file=file, fix="Put back what was there.")
