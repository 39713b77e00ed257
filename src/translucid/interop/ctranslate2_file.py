"""Read `model.bin` of CTranslate2: named arrays, and aliases of some of them.

The file is little-endian: version of the format; name and revision of the specification; the number of variables and,
for each, name, dimensions, type, number of bytes and content; the number of aliases and, for each, its name and that of
a variable. A text is preceded by its length, and ends with a zero byte, which is counted. The file may be untrusted:
every number is checked against its size. `Variables` are the arrays in float32; each is used once.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitext.reading import reading, refuse_unsafe
from translucid.ground.errors import UserError
from translucid.kernels.machine import refuse_more_than_memory

VERSION = 6
"""The version of the format, since CTranslate2 3.0."""
_TYPES = [np.dtype(name) for name in ("float32", "int8", "int16", "int32", "float16", "uint16")]
"""The types of arrays by their numbers; the last one stands for bfloat16, which NumPy does not have."""
BFLOAT16 = _TYPES[5]
_MOST_DIMENSIONS = 3
_FIX = "Models of other kinds can be imported."
_IGNORED = ("alignment_layer", "alignment_heads", "embeddings_merge")
"""Name endings of values that change no logit."""
_NEUTRAL = {"alibi", "alibi_use_positive_positions", "scale_alibi", "multi_query_attention"}
"""Name endings of flags that change nothing when they are 0."""


class DamagedError(Exception):
    """The file is damaged."""


@dataclass
class ModelFile:
    """The content of a `model.bin`."""

    specification: str
    """The kind of the model."""
    revision: int
    """The revision of the specification."""
    variables: dict[str, NDArray[Any]] = field(default_factory=dict)
    """The arrays by name, aliases too; they are read from the file on first use."""


def read_model_file(file: Path) -> ModelFile:
    """Read a `model.bin`.

    Raises:
        UserError: the file is damaged, truncated, of another version, or larger than this machine's memory.
    """
    refuse_unsafe(file, file.parent)
    with reading(file):
        size = file.stat().st_size
        refuse_more_than_memory(size, file)
        content = np.memmap(file, np.uint8, "r") if size else np.zeros(0, np.uint8)
    reader = _Reader(content)
    try:
        (version,) = reader.numbers("I")
        if version != VERSION:
            fix = f"Convert it again with CTranslate2 3.0 or newer: its format is {VERSION}."
            raise UserError(f"is a model.bin of the format {version}, or none", file=file, fix=fix)
        model_file = ModelFile(reader.text(), reader.numbers("I")[0])
        for _ in range(reader.numbers("I")[0]):
            name = reader.text()
            if name in model_file.variables:
                raise DamagedError(f"has {name[:80]!r} twice")
            model_file.variables[name] = reader.array()
        for _ in range(reader.numbers("I")[0]):
            alias, name = reader.text(), reader.text()
            if alias in model_file.variables or name not in model_file.variables:
                raise DamagedError(f"has no {name[:80]!r} for {alias[:80]!r}, or both")
            model_file.variables[alias] = model_file.variables[name]
            scale = f"{name}_scale"
            if scale in model_file.variables:  # the scale of a quantised array has no alias
                model_file.variables.setdefault(f"{alias}_scale", model_file.variables[scale])
        if reader.remaining:
            raise DamagedError(f"has {reader.remaining:,} bytes too many")
    except DamagedError as error:
        raise UserError(f"is damaged: it {error}", file=file, fix="Get the file again.") from error
    return model_file


class _Reader:
    """Reads values from the content of a file, one after the other."""

    def __init__(self, content: NDArray[np.uint8]) -> None:
        self.content, self.offset = content, 0

    @property
    def remaining(self) -> int:
        """The number of bytes that have not been read."""
        return len(self.content) - self.offset

    def take(self, size: int) -> NDArray[np.uint8]:
        """Read `size` bytes."""
        if size > self.remaining:
            raise DamagedError("is cut short")
        self.offset += size
        return self.content[self.offset - size : self.offset]

    def numbers(self, kinds: str) -> tuple[int, ...]:
        """Read numbers of these kinds, in the notation of `struct`."""
        layout = "<" + kinds
        return struct.unpack(layout, self.take(struct.calcsize(layout)).tobytes())

    def text(self) -> str:
        """Read a text, after its length."""
        content = self.take(self.numbers("H")[0]).tobytes()
        if not content.endswith(b"\0"):
            raise DamagedError("has a name without an end")
        try:
            return content[:-1].decode()
        except UnicodeDecodeError:
            raise DamagedError("has a name that is not UTF-8") from None

    def array(self) -> NDArray[Any]:
        """Read an array, after its dimensions and its type."""
        (dimensions,) = self.numbers("B")
        if dimensions > _MOST_DIMENSIONS:
            raise DamagedError(f"has a variable of {dimensions} dimensions")
        shape = self.numbers("I" * dimensions)
        number, size = self.numbers("BI")
        if number >= len(_TYPES) or 0 in shape or math.prod(shape) * _TYPES[number].itemsize != size:
            raise DamagedError("has a variable whose size is not that of its type and dimensions")
        return self.take(size).view(_TYPES[number]).reshape(shape)


class Variables:
    """The arrays of a `model.bin`, and the names of those that were not used yet."""

    def __init__(self, arrays: Mapping[str, NDArray[Any]], file: Path) -> None:
        """Take arrays by name, and the file for messages."""
        self._arrays, self._unused, self.file = arrays, {*arrays}, file

    def scalar(self, name: str, default: float | None = None) -> float:
        """Return a single number.

        Raises:
            UserError: there is no such number and no default, or the array is no number.
        """
        if name not in self._arrays:
            if default is None:
                raise UserError(f"has no {name}", file=self.file, fix="Is it a translator?")
            return default
        self._unused.discard(name)
        array = self._arrays[name]
        value = float(_plain(array).flat[0]) if array.size == 1 else math.nan
        if not math.isfinite(value):
            raise UserError(f"{name} is not a number", file=self.file, fix="Get the file again.")
        return value

    def has(self, name: str) -> bool:
        """Whether there is such an array."""
        return name in self._arrays

    def is_flag(self, name: str) -> bool:
        """Whether a number is a flag."""
        return self._arrays[name].dtype == np.int8

    def array(self, name: str, dimensions: int) -> NDArray[np.float32]:
        """Return an array, divided by its scale if it was quantised.

        int8 has a scale for each row, int16 one for all: the stored number is the value times the scale.

        Raises:
            UserError: there is no such array, or it has other dimensions or no scale.
        """
        if name not in self._arrays:
            raise UserError(f"has no {name}", file=self.file, fix="Is it a translator?")
        self._unused -= {name, f"{name}_scale"}
        array = self._arrays[name]
        if array.ndim != dimensions:
            raise UserError(f"{name} has {array.ndim} dimensions, not {dimensions}", file=self.file, fix=_FIX)
        if array.dtype.kind == "i":
            scale = self._arrays.get(f"{name}_scale")
            if scale is None or scale.dtype != np.float32 or scale.size not in (1, len(array)):
                raise UserError(f"{name} has no scale", file=self.file, fix="Get the file again.")
            with np.errstate(all="ignore"):  # a damaged scale of 0 is reported below, as the numbers are not finite
                values = array.astype(np.float32) / scale.reshape(-1, *(1,) * (dimensions - 1))
        else:
            values = _plain(array)
        if not np.isfinite(values).all():
            raise UserError(f"{name} has weights that are no numbers", file=self.file, fix="Get the file again.")
        return values

    def bias(self, name: str, size: int) -> NDArray[np.float32]:
        """Return a vector of `size` numbers; zeros if there is none."""
        if name not in self._arrays:
            return np.zeros(size, np.float32)
        return self.array(name, 1)

    def layers(self, side: str) -> int:
        """Return the number of blocks of a side without a gap; any others are found by `refuse_unused`."""
        number = 0
        while f"{side}/layer_{number}/ffn/linear_0/weight" in self._arrays:
            number += 1
        return number

    def refuse_unused(self) -> None:
        """Check that all arrays were used.

        Raises:
            UserError: an array that matters was not used.
        """
        for name in sorted(self._unused):
            suffix = name.rpartition("/")[2]
            if suffix in _IGNORED or (suffix in _NEUTRAL and not self.scalar(name)):
                continue
            raise UserError(f"has {name[:100]}, which is not supported", file=self.file, fix=_FIX)


def _plain(array: NDArray[Any]) -> NDArray[np.float32]:
    """Return numbers as float32, whose upper half are the bits of a bfloat16."""
    if array.dtype == BFLOAT16:
        return (array.astype(np.uint32) << 16).view(np.float32)
    return array.astype(np.float32)


def joined_arrays(
    variables: Variables, names: Iterable[tuple[str, list[str]]], width: int
) -> dict[str, NDArray[np.float32]]:
    """Return the weights of linear layers and norms by our names.

    Args:
        variables: the arrays.
        names: CTranslate2's name of each layer, with ours, whose rows are joined in it.
        width: the number of rows of the first of two joined layers.

    Raises:
        UserError: an array is missing.
    """
    arrays: dict[str, NDArray[np.float32]] = {}
    for layer_name, our_names in names:
        if layer_name.endswith("layer_norm"):
            weight, bias = variables.array(f"{layer_name}/gamma", 1), variables.array(f"{layer_name}/beta", 1)
        else:
            weight = variables.array(f"{layer_name}/weight", 2)
            bias = variables.bias(f"{layer_name}/bias", len(weight))
        ends = [width] * (len(our_names) - 1)
        for name, rows, numbers in zip(our_names, np.split(weight, ends), np.split(bias, ends), strict=True):
            arrays[f"{name}.weight"], arrays[f"{name}.bias"] = rows, numbers
    return arrays
