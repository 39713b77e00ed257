"""Read `model.bin` of CTranslate2: named arrays, and aliases of some of them.

The file is little-endian: version of the format; name and revision of the specification; the number of variables and,
for each, name, dimensions, type, number of bytes and content; the number of aliases and, for each, its name and that of
a variable. A text has its length in front and a zero byte behind, which is counted. The file may come from a stranger:
every number is checked against its size.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from translucid.ground.errors import UserError
from translucid.ground.reading import reading, refuse_strange
from translucid.kernels.machine import refuse_more_than_memory

if TYPE_CHECKING:
    from numpy.typing import NDArray

VERSION = 6
"""The version of the format, since CTranslate2 3.0."""
_TYPES = [np.dtype(name) for name in ("float32", "int8", "int16", "int32", "float16", "uint16")]
"""The types of arrays by their numbers; the last one stands for bfloat16, which NumPy does not have."""
BFLOAT16 = _TYPES[5]
_MOST_DIMENSIONS = 3


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
    refuse_strange(file, file.parent)
    with reading(file):
        size = file.stat().st_size
        refuse_more_than_memory(size, file)
        content = np.memmap(file, np.uint8, "r") if size else np.zeros(0, np.uint8)
    place = _Place(content)
    try:
        (version,) = place.numbers("I")
        if version != VERSION:
            fix = f"Convert it again with CTranslate2 3.0 or newer: its format is {VERSION}."
            raise UserError(f"is a model.bin of the format {version}, or none", file=file, fix=fix)
        found = ModelFile(place.text(), place.numbers("I")[0])
        for _ in range(place.numbers("I")[0]):
            name = place.text()
            if name in found.variables:
                raise DamagedError(f"has {name[:80]!r} twice")
            found.variables[name] = place.array()
        for _ in range(place.numbers("I")[0]):
            alias, name = place.text(), place.text()
            if alias in found.variables or name not in found.variables:
                raise DamagedError(f"has no {name[:80]!r} for {alias[:80]!r}, or both")
            found.variables[alias] = found.variables[name]
            scale = f"{name}_scale"
            if scale in found.variables:  # the scale of a quantised array has no alias
                found.variables.setdefault(f"{alias}_scale", found.variables[scale])
        if place.left:
            raise DamagedError(f"has {place.left:,} bytes too many")
    except DamagedError as error:
        raise UserError(f"is damaged: it {error}", file=file, fix="Get the file again.") from error
    return found


class _Place:
    """A position in the file, from which values are read."""

    def __init__(self, content: NDArray[np.uint8]) -> None:
        self.content, self.at = content, 0

    @property
    def left(self) -> int:
        """The number of bytes behind the position."""
        return len(self.content) - self.at

    def take(self, size: int) -> NDArray[np.uint8]:
        """Read so many bytes."""
        if size > self.left:
            raise DamagedError("is cut short")
        self.at += size
        return self.content[self.at - size : self.at]

    def numbers(self, kinds: str) -> tuple[int, ...]:
        """Read numbers of these kinds, in the notation of `struct`."""
        layout = "<" + kinds
        return struct.unpack(layout, self.take(struct.calcsize(layout)).tobytes())

    def text(self) -> str:
        """Read a text, after its length."""
        written = self.take(self.numbers("H")[0]).tobytes()
        if not written.endswith(b"\0"):
            raise DamagedError("has a name without an end")
        try:
            return written[:-1].decode()
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
