"""The binary files of the fork of Marian that Firefox runs: models with 8-bit weights, and lexical shortlists.

A model file has a version, the headers of all items, their names, their shapes, and their contents, which begin at
multiples of 256 bytes. All numbers are little-endian.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

_FLOAT32, _INT8, _INTGEMM8 = 0x0404, 0x0101, 0x4101
"""Numbers of types. The last one, matrices of 8 bits, has another number in Marian 1.12."""
_VERSION, _HEADER = 1, struct.Struct("<QQQQ")
_ALIGNED = 256
_MAGIC = 0xF11A48D5013417F5
"""The first number of a binary shortlist."""


class Item(NamedTuple):
    """A named array of a model file."""

    name: str
    type: int
    shape: tuple[int, ...]
    content: bytes

    @classmethod
    def of_floats(cls, name: str, array: NDArray[np.float32]) -> Item:
        """Return an item with numbers of 32 bits."""
        return cls(name, _FLOAT32, array.shape, array.astype("<f4").tobytes())

    @classmethod
    def of_text(cls, name: str, text: bytes) -> Item:
        """Return an item with a text, which must end with NUL."""
        return cls(name, _INT8, (len(text),), text)

    @classmethod
    def of_matrix(cls, name: str, matrix: NDArray[np.float32], *, transposed: bool) -> Item:
        """Return an item with a matrix of 8 bits, followed by the factor that multiplied it, 127 / max |w|.

        `transposed`: whether the rows of the content are the columns of the matrix, as for all but embeddings.
        """
        numbers, factor = quantised(matrix)
        content = numbers.T if transposed else numbers
        return cls(name, _INTGEMM8, matrix.shape, content.tobytes() + struct.pack("<f", factor))


def quantised(matrix: NDArray[np.float32]) -> tuple[NDArray[np.int8], np.float32]:
    """Return a matrix in 8 bits, round(f w), and its factor f = 127 / max |w|."""
    largest = np.abs(matrix).max()
    factor = np.float32(127) / (largest or np.float32(1))
    return np.rint(matrix * factor).clip(-127, 127).astype(np.int8), factor


def model_file(items: Sequence[Item]) -> bytes:
    """Return the content of a model file."""
    contents = [item.content + bytes(-len(item.content) % _ALIGNED) for item in items]
    parts = [struct.pack("<QQ", _VERSION, len(items))]
    for item, content in zip(items, contents, strict=True):
        name_length = len(item.name.encode()) + 1
        parts.append(_HEADER.pack(name_length, item.type, len(item.shape), len(content)))
    parts += [item.name.encode() + b"\0" for item in items]
    parts += [struct.pack(f"<{len(item.shape)}i", *item.shape) for item in items]
    header = b"".join(parts)
    padding = -(len(header) + 8) % _ALIGNED
    return b"".join([header, struct.pack("<Q", padding), bytes(padding), *contents])


def read_model_file(content: bytes) -> dict[str, NDArray[Any]]:
    """Return the arrays of a model file by their names; matrices of 8 bits become float32.

    Raises:
        ValueError: the file is damaged, or has another format.
    """
    try:
        version, count = struct.unpack_from("<QQ", content)
        if version != _VERSION or count > len(content) // _HEADER.size:
            raise ValueError("it has another format")
        headers = [_HEADER.unpack_from(content, 16 + _HEADER.size * i) for i in range(count)]
        offset, names, shapes = 16 + _HEADER.size * count, [], []
        for length, *_ in headers:
            names.append(content[offset : offset + length].rstrip(b"\0").decode())
            offset += length
        for _, _, dimensions, _ in headers:
            shapes.append(struct.unpack_from(f"<{dimensions}i", content, offset))
            offset += 4 * dimensions
        offset += 8 + struct.unpack_from("<Q", content, offset)[0]
        arrays = {}
        for name, shape, (_, kind, _, length) in zip(names, shapes, headers, strict=True):
            arrays[name] = _array(name, kind, shape, content[offset : offset + length])
            offset += length
    except struct.error as error:
        raise ValueError("it is cut short") from error
    return arrays


def _array(name: str, kind: int, shape: tuple[int, ...], content: bytes) -> NDArray[Any]:
    """Return the array of an item."""
    if min(shape, default=0) < 1:
        raise ValueError(f"{name} has the shape {shape}")
    size = math.prod(shape)
    if kind in (_FLOAT32, _INT8):
        return np.frombuffer(content, "<f4" if kind == _FLOAT32 else "i1", size).reshape(shape)
    if kind != _INTGEMM8:
        raise ValueError(f"{name} has the type {kind:#x}, which only Marian itself reads")
    numbers = np.frombuffer(content, np.int8, size)
    (factor,) = struct.unpack_from("<f", content, size)
    stored = numbers.reshape(shape) if "Wemb" in name else numbers.reshape(shape[::-1]).T
    return stored.astype(np.float32) / np.float32(factor)


def shortlist_file(size: int, always: Iterable[int], by_source: Mapping[int, Iterable[int]], end: int) -> bytes:
    """Return the content of a binary shortlist.

    The format has no list of pieces that are always candidates, only a number of first rows. The end token, which every
    source has, brings them instead.

    Args:
        size: the number of pieces of the source vocabulary.
        always: rows of target pieces that are candidates for every sentence.
        by_source: rows of the target pieces that a source piece adds, by its row.
        end: the row of the end token.
    """
    offsets, rows = [0], []
    for source in range(size):
        targets = {*by_source.get(source, ())}
        if source == end:
            targets |= {*always}
        rows += sorted(targets)
        offsets.append(len(rows))
    # first rows that are always candidates, the largest number of rows that a source piece adds
    counts = struct.pack("<QQQQ", 0, int(np.diff(offsets).max()), len(offsets), len(rows))
    body = counts + struct.pack(f"<{len(offsets)}Q", *offsets) + struct.pack(f"<{len(rows)}I", *rows)
    return struct.pack("<QQ", _MAGIC, _checksum(body)) + body


def _checksum(body: bytes) -> int:
    """Return Marian's checksum of the whole numbers of 64 bits, without an incomplete one at the end."""
    checksum = 0
    for (number,) in struct.iter_unpack("<Q", body[: len(body) // 8 * 8]):
        mixed = number + 0x9E3779B9 + (checksum << 6) + (checksum >> 2)
        checksum = (checksum ^ mixed) & 0xFFFF_FFFF_FFFF_FFFF
    return checksum
