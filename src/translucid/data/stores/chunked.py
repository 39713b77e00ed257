"""Flat arrays on disk, of any size: mapped into memory, with checksums, and resumed after a crash.

The file `index.jsonl` in the same folder has three kinds of lines: the identity of the content; each chunk with its
checksums, written when the chunk is safely on disk; and the totals, written at the end.
"""

from __future__ import annotations

import json
import os
import shutil
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from translucid.ground.atomic import write_atomically
from translucid.ground.errors import UserError

INDEX = "index.jsonl"
_FIX = "`resume=True` builds it again."

Chunks = list[dict[str, Any]]
"""The rows of the chunks: the facts of `append`, `counts` of elements and `crc32` of each file, and the `width`."""


class ChunkedFiles:
    """A folder with flat arrays, which may be incomplete."""

    def __init__(self, folder: Path, names: Sequence[str], types: Callable[[int], list[np.dtype[Any]]]) -> None:
        """Describe the files; read and write nothing yet.

        Args:
            folder: the folder, which need not exist.
            names: the names of the files, one for each array.
            types: a function from the `width`, the bytes of an element of the first file, to the types of all files.
        """
        self.folder, self.names, self.types = folder, names, types

    def open(self, identity: str) -> tuple[list[NDArray[Any]], Chunks, dict[str, Any]] | None:
        """Return the memory-mapped arrays, the chunks and the totals; None if incomplete or of another identity.

        Raises:
            UserError: a file is missing, or does not match its checksum.
        """
        header, chunks, totals = self._index()
        if header != {"identity": identity} or totals is None:
            return None
        types = self.types(chunks[0]["width"])
        arrays = []
        for i, (name, kind) in enumerate(zip(self.names, types, strict=True)):
            array = self._map(name, kind)
            start = 0
            for chunk in chunks:
                end = start + chunk["counts"][i]
                if len(array) < end or zlib.crc32(array[start:end].data) != chunk["crc32"][i]:
                    raise UserError("is damaged or cut short", file=self.folder / name, fix=_FIX)
                start = end
            arrays.append(array[:start])
        return arrays, chunks, totals

    def begin(self, identity: str) -> Chunks:
        """Prepare to append: keep and return the complete chunks of this identity, delete everything else.

        Raises:
            UserError: the folder can't be written to.
        """
        header, chunks, totals = self._index()
        if header != {"identity": identity} or totals is not None or not self._truncate(chunks):
            self.remove()
            try:
                self.folder.mkdir(parents=True)
            except OSError as error:
                what = f"can't be made ({error.strerror})"
                raise UserError(what, file=self.folder, fix="Choose another folder.") from error
            chunks = []
        write_atomically(self.folder / INDEX, "".join(map(_line, [{"identity": identity}, *chunks])).encode())
        return chunks

    def append(self, arrays: Sequence[NDArray[Any]], facts: dict[str, Any]) -> None:
        """Write a chunk and then, when it is safely on disk, its row of the index.

        Raises:
            UserError: the disk is full.
        """
        for name, array in zip(self.names, arrays, strict=True):
            self._append(name, array.data)
        counts = [array.size for array in arrays]
        checksums = [zlib.crc32(array.data) for array in arrays]
        row = {**facts, "width": arrays[0].itemsize, "counts": counts, "crc32": checksums}
        self._append(INDEX, _line(row).encode())

    def end(self, totals: dict[str, Any]) -> None:
        """Mark the files as complete; `totals` contains at least a list of `sizes`."""
        self._append(INDEX, _line(totals).encode())

    def remove(self) -> None:
        """Delete the folder, if it exists."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _index(self) -> tuple[dict[str, Any] | None, Chunks, dict[str, Any] | None]:
        """Return the header, the chunks and, if the files are complete, the totals."""
        rows: list[dict[str, Any]] = []
        try:
            # What follows the last line feed was cut off by a crash.
            for line in (self.folder / INDEX).read_text(encoding="utf-8").split("\n")[:-1]:
                rows.append(_row(line))
        except (OSError, ValueError, TypeError, KeyError):
            pass  # cut off or damaged here: the rows before are intact
        if not rows:
            return None, [], None
        chunks = [row for row in rows if "crc32" in row]
        totals = rows[-1] if "sizes" in rows[-1] else None
        return rows[0], chunks, totals

    def _truncate(self, chunks: Chunks) -> bool:
        """Truncate the files to the chunks that are complete; return whether this was possible."""
        if not chunks:
            return False
        types = self.types(chunks[0]["width"])
        try:
            for i, (name, kind) in enumerate(zip(self.names, types, strict=True)):
                size = kind.itemsize * sum(chunk["counts"][i] for chunk in chunks)
                file = self.folder / name
                if file.stat().st_size < size:
                    return False
                os.truncate(file, size)
        except (OSError, IndexError):
            return False
        return True

    def _append(self, name: str, content: bytes | memoryview) -> None:
        """Write at the end of a file, so that it is safely on disk.

        Raises:
            UserError: the disk is full.
        """
        try:
            with (self.folder / name).open("ab") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            fix = "Make room, and give the same command again."
            raise UserError(f"can't be written ({error.strerror})", file=self.folder, fix=fix) from error

    def _map(self, name: str, kind: np.dtype[Any]) -> NDArray[Any]:
        file = self.folder / name
        try:
            if not file.stat().st_size:  # an empty file can't be mapped
                return np.empty(0, kind)
            return np.asarray(np.memmap(file, kind, mode="r"))
        except (OSError, ValueError) as error:
            raise UserError("is missing or cut short", file=file, fix=_FIX) from error


def checksum(chunks: Chunks) -> str:
    """Return one checksum of all chunks, in hexadecimal digits."""
    return f"{_crc32_of_json([chunk['crc32'] for chunk in chunks]):08x}"


def _crc32_of_json(value: object) -> int:
    return zlib.crc32(json.dumps(value).encode())


def _line(row: dict[str, Any]) -> str:
    """Return a line of the index: the row with its checksum."""
    return json.dumps({**row, "check": _crc32_of_json(row)}) + "\n"


def _row(line: str) -> dict[str, Any]:
    """Return the row of a line of the index.

    Raises:
        ValueError: it is damaged; also TypeError and KeyError.
    """
    row: dict[str, Any] = json.loads(line)
    check = row.pop("check")
    if _crc32_of_json(row) != check:
        raise ValueError("the checksum differs")
    return row
