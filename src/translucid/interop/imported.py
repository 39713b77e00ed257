"""The parts of another toolkit's model, and safe readers of its JSON files, configuration and weights.

Nothing in its files is unpickled. Other toolkits have separate layers for keys and values; we store one matrix.
"""

from __future__ import annotations

import io
import json
import pickle
import warnings
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn, TypeAlias, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from bitext.reading import read_at_most, reading, refuse_unsafe
from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.decoding.shortlist import Shortlist
from translucid.ground.errors import UserError
from translucid.kernels.machine import refuse_more_than_memory
from translucid.layers.positions import sinusoidal_positions
from translucid.layers.variants import Sinusoids
from translucid.runs.tensor_file import LONGEST_HEADER

LONGEST_JSON = 1 << 26
"""The largest size of a vocabulary, in bytes."""
_FIX = "Get the file again."


@dataclass
class Imported:
    """The parts of a run."""

    kind: str
    """The name of the other model's kind."""
    settings: dict[str, Any]
    """The settings of the configuration, by group."""
    tensors: dict[str, Tensor]
    """The weights by our names; a shared weight is there under each of its names."""
    tokenizer: Tokenizer
    shortlist: Shortlist | None = None
    """The candidates for each sentence, if the model has a list of them."""
    notes: tuple[str, ...] = ()
    """Messages about the import, such as how texts are split into tokens."""
    parameters: int = 0
    """The number of weights of the model, shared ones once."""
    guesses: list[str] = field(default_factory=list)
    """What the files do not say and was assumed, as `key: value`."""


def all_are(kind: type, values: Iterable[object]) -> bool:
    """Whether all values have exactly this type: True is not a whole number."""
    return all(type(value) is kind for value in values)


def read_json(file: Path, max_bytes: int = LONGEST_JSON) -> Any:
    """Read a JSON file of a folder that may be untrusted.

    Raises:
        UserError: the file is missing, too large, outside the folder, or not JSON.
    """
    try:
        return json.loads(read_file(file, max_bytes))
    except (ValueError, RecursionError) as error:  # deeply nested lists exceed Python's stack
        raise UserError("is not JSON, or is damaged", file=file, fix="Get the folder again.") from error


def read_file(file: Path, max_bytes: int) -> bytes:
    """Read a file of a folder that may be untrusted.

    Raises:
        UserError: the file is missing, too large, or outside the folder.
    """
    if not file.exists():
        raise UserError("is missing", file=file, fix="Is the folder complete?")
    refuse_unsafe(file, model_root(file), max_bytes)
    with reading(file):
        return read_at_most(file, max_bytes)


def model_root(file: Path) -> Path:
    """Return the folder of a model, given a file: in Hugging Face's cache, links lead out of the folder `snapshots`."""
    folder = file.parent
    return folder.parent.parent if folder.parent.name == "snapshots" else folder


class Keys:
    """The keys of another model's configuration, checked when they are read."""

    def __init__(self, values: Any, file: Path) -> None:
        """Take the content of a file.

        Raises:
            UserError: the content is not an object with keys and values.
        """
        if not isinstance(values, dict):
            raise UserError("holds no keys and values", file=file, fix="Is this the configuration of a model?")
        self.values, self.file = values, file

    def number(self, key: str, default: int | None = None) -> int:
        """Return a whole number.

        Raises:
            UserError: the key is missing, or has another value.
        """
        value = self.values.get(key, default)
        if isinstance(value, bool) or not isinstance(value, int):
            raise UserError(f"{key} is {value!r:.50}, not a whole number", file=self.file)
        return value

    def text(self, key: str, default: str = "") -> str:
        """Return a text; errors as for `number`."""
        value = self.values.get(key, default)
        if not isinstance(value, str):
            raise UserError(f"{key} is {value!r:.50}, not a text", file=self.file)
        return value

    def flag(self, key: str, default: bool) -> bool:
        """Return a flag; errors as for `number`."""
        value = self.values.get(key, default)
        if not isinstance(value, bool):
            raise UserError(f"{key} is {value!r:.50}, not true or false", file=self.file)
        return value

    def share(self, key: str, default: float, maximum: float) -> float:
        """Return a number, limited to the range from 0 to `maximum`; errors as for `number`."""
        value = self.values.get(key, default)
        if isinstance(value, bool) or not isinstance(value, int | float) or value != value:  # NaN is not itself
            raise UserError(f"{key} is {value!r:.50}, not a number", file=self.file)
        return min(max(float(min(value, 1)), 0.0), maximum)

    def expect(self, supported: Mapping[str, Any]) -> None:
        """Reject a model in which a key has another value than the one that we support; any key may be missing.

        Raises:
            UserError: a key has another value.
        """
        for key, expected in supported.items():
            value = self.values.get(key, expected)
            if value != expected and value is not None:
                self.unsupported(key, value)

    def unsupported(self, key: str, value: Any) -> NoReturn:
        """Reject a model.

        Raises:
            UserError: always.
        """
        raise UserError(
            f"{key}={value!r:.50} is not supported", file=self.file, fix="Models of other kinds can be imported."
        )


def read_weights(folder: Path) -> dict[str, Tensor]:
    """Read all tensors of a Hugging Face folder, in float32.

    Raises:
        UserError: there are no tensors, or a file is damaged, too large, or would have to be unpickled.
    """
    for name in ("model.safetensors", "pytorch_model.bin"):
        file, index = folder / name, folder / f"{name}.index.json"
        if file.exists():
            return _read_tensors(file)
        if index.exists():
            return _read_shards(index)
    raise UserError("has no weights", file=folder, fix="It needs model.safetensors or pytorch_model.bin.")


def _read_shards(index: Path) -> dict[str, Tensor]:
    """Read the files that an index names."""
    content = read_json(index)
    names = content.get("weight_map") if isinstance(content, dict) else None
    if not isinstance(names, dict) or not all_are(str, names.values()):
        raise UserError("does not say in which files the weights are", file=index, fix=_FIX)
    tensors: dict[str, Tensor] = {}
    for name in sorted({*names.values()}):
        if Path(name).name != name:  # an untrusted index must not read other folders
            raise UserError(f"names {name!r}, which is not in this folder", file=index, fix=_FIX)
        tensors |= _read_tensors(index.parent / name)
    return tensors


def read_state_dict(file: Path, key: str | None = None) -> dict[str, Tensor]:
    """Read the tensors of a file in float32: of a state dict, or of a checkpoint that has one under a key.

    Args:
        file: a file of PyTorch or safetensors.
        key: the key; by default, one that is usual.

    Raises:
        UserError: there are no tensors, or the file is damaged, too large, or would have to be unpickled.
    """
    return _read_tensors(file, _STATE_DICTS if key is None else (key,))


_STATE_DICTS = "model_state_dict", "state_dict", "model", "net"
"""The keys of a checkpoint under which a state dict usually is."""


def _read_tensors(file: Path, keys: Sequence[str] = ()) -> dict[str, Tensor]:
    if not file.exists():
        raise UserError("is missing", file=file, fix=_FIX)
    refuse_unsafe(file, model_root(file))
    refuse_more_than_memory(file.stat().st_size, file)
    try:
        if file.suffix == ".safetensors":
            # safetensors would allocate what the header's length says, however large.
            with file.open("rb") as start:
                if int.from_bytes(start.read(8), "little") > LONGEST_HEADER:
                    raise UserError("is damaged, or not safetensors", file=file, fix=_FIX)
            tensors = load_file(file)
        else:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of another version of pickles: the error says what is wrong
                tensors = torch.load(file, map_location="cpu", weights_only=True)
    except (SafetensorError, OSError, EOFError, json.JSONDecodeError) as error:
        raise UserError(f"is damaged or cut short ({error})", file=file, fix=_FIX) from error
    except (pickle.UnpicklingError, RuntimeError, ValueError, TypeError, KeyError) as error:
        what = "holds more than weights, or is damaged"
        raise UserError(what, file=file, fix="Use the model's safetensors.") from error
    if isinstance(tensors, dict):
        values: dict[Any, Any] = tensors
        tensors = next((values[key] for key in keys if isinstance(values.get(key), dict)), values)
    if not isinstance(tensors, dict) or not all(isinstance(tensor, torch.Tensor) for tensor in tensors.values()):
        raise UserError("holds more than weights", file=file, fix="Use the model's safetensors.")
    # Tensors of whole numbers, such as the numbers of positions, are not weights.
    return {str(name): tensor.float() for name, tensor in tensors.items() if tensor.is_floating_point()}


def read_npz(file: Path) -> dict[str, NDArray[Any]]:
    """Read the arrays of an .npz file.

    Raises:
        UserError: the file is damaged, too large, or would have to be unpickled.
    """
    arrays = {}
    try:
        with zipfile.ZipFile(file) as archive:
            members = archive.infolist()
            refuse_more_than_memory(sum(member.file_size for member in members), file, verb="holds")
            for member in members:
                content = io.BytesIO(archive.read(member))
                arrays[member.filename.removesuffix(".npy")] = np.load(content, allow_pickle=False)
    except (OSError, ValueError, EOFError, KeyError, RuntimeError, NotImplementedError, zipfile.BadZipFile) as error:
        raise UserError(f"is damaged, or no .npz file ({error})", file=file, fix=_FIX) from error
    return arrays


def kind_of_positions(table: NDArray[np.float32]) -> dict[str, Any] | None:
    """Return the options of positions that are sinusoids or zeros, given a table [rows, D]; None for others."""
    if not table.any():
        return {"positions": "none"}
    first_rows = table[:256]  # enough to recognize the kind; tables of long models take long to compute
    for kind in get_args(Sinusoids):
        for first_position in _FIRST:
            sinusoids = sinusoidal_positions(len(first_rows), table.shape[1], first=first_position, kind=kind).numpy()
            if np.abs(sinusoids - first_rows).max() < 0.01:
                return {"positions": kind, "first_position": first_position}
    return None


_FIRST = (0, 1, 2)
"""The first positions with which sinusoidal tables may begin."""
SIDES = "encoder", "decoder"
Names: TypeAlias = Iterable[tuple[str, Sequence[str]]]
"""Our name of each linear layer and norm, with the names of the layers whose rows are joined in it."""


def joined(names: Names, load_layer: Callable[[str], tuple[Tensor, Tensor]]) -> dict[str, Tensor]:
    """Return weights by our names; `load_layer` returns weight and bias of one of the other toolkit's layers."""
    our_weights: dict[str, Tensor] = {}
    for name, their_names in names:
        weights, biases = zip(*map(load_layer, their_names), strict=True)
        our_weights[f"{name}.weight"], our_weights[f"{name}.bias"] = torch.cat(weights), torch.cat(biases)
    return our_weights


def separated(names: Names, our_weights: Mapping[str, Tensor]) -> Iterator[tuple[str, Tensor, Tensor]]:
    """Yield the name of each of the other toolkit's layers, its weight and its bias, given weights by our names."""
    for name, their_names in names:
        weights = our_weights[f"{name}.weight"].chunk(len(their_names))
        biases = our_weights[f"{name}.bias"].chunk(len(their_names))
        yield from zip(their_names, weights, biases, strict=True)
