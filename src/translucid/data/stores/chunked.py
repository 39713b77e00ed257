"""Flat arrays on disk, of any size: mapped into memory, checksummed, continued after a crash.

`index.jsonl` beside them says what they are made of; a line for each chunk, with its checksums, written when the chunk
is safely on disk; and the totals, when all is there.
"""

from __future__ import annotations

import json
import os
import shutil
import zlib
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from translucid.ground.atomic import write_atomically
from translucid.ground.errors import UserError

INDEX = "index.jsonl"
_AGAIN = "It is made again by --resume."

Chunks = list[dict[str, Any]]
"""Facts of each chunk: those given to `append`, `counts` of elements and `crc32` of each file, and the `width`."""


class ChunkedFiles:
    """A folder with flat arrays, or with the beginning of them."""

    def __init__(self, folder: Path, names: Sequence[str], types: Callable[[int], list[np.dtype[Any]]]) -> None:
        """Nothing is read or made yet.

        Args:
            folder: need not exist yet.
            names: of the files, one an array.
            types: of their elements; given the `width` in bytes of those of the first file.
        """
        self.folder, self.names, self.types = folder, names, types

    def open(self, identity: str) -> tuple[list[NDArray[Any]], Chunks, dict[str, Any]] | None:
        """Return the arrays, mapped into memory, chunks and totals; None if they are not whole, or of another identity.

        Raises:
            UserError: a file is missing, or does not match its checksum.
        """
        header, chunks, totals = self._index()
        if header != {"identity": identity} or totals is None:
            return None
        types = self.types(chunks[0]["width"])
        arrays = [self._mapped(name, kind) for name, kind in zip(self.names, types, strict=True)]
        for i, (name, array) in enumerate(zip(self.names, arrays, strict=True)):
            start = 0
            for chunk in chunks:
                end = start + chunk["counts"][i]
                if len(array) < end or zlib.crc32(array[start:end].data) != chunk["crc32"][i]:
                    raise UserError("is damaged or cut short", file=self.folder / name, fix=_AGAIN)
                start = end
            arrays[i] = array[:start]
        return arrays, chunks, totals

    def begin(self, identity: str) -> Chunks:
        """Make ready to append: keep whole chunks of this identity, throw away all else; return those that are there.

        Raises:
            UserError: the folder can't be written to.
        """
        header, done, totals = self._index()
        if header != {"identity": identity} or totals is not None or not self._cut(done):
            self.remove()
            self._made()
            done = []
        write_atomically(self.folder / INDEX, "".join(map(_line, [{"identity": identity}, *done])).encode())
        return done

    def append(self, arrays: Sequence[NDArray[Any]], facts: dict[str, Any]) -> None:
        """Write a chunk, and say in the index that it is there once it is.

        Raises:
            UserError: the disk is full.
        """
        try:
            with ExitStack() as stack:
                for name, array in zip(self.names, arrays, strict=True):
                    file = stack.enter_context((self.folder / name).open("ab"))
                    file.write(array.data)
                    file.flush()
                    os.fsync(file.fileno())
        except OSError as error:
            self._failed(error)
        self._write_index(
            {
                **facts,
                "width": arrays[0].itemsize,
                "counts": [array.size for array in arrays],
                "crc32": [zlib.crc32(array.data) for array in arrays],
            }
        )

    def end(self, totals: dict[str, Any]) -> None:
        """Say that all is there; `totals` holds a list of `sizes` at least."""
        self._write_index(totals)

    def remove(self) -> None:
        """Throw the folder away, if it is there."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _index(self) -> tuple[dict[str, Any] | None, Chunks, dict[str, Any] | None]:
        """Return the header, the chunks and, if all is there, the totals."""
        rows: list[dict[str, Any]] = []
        try:
            for line in (self.folder / INDEX).read_text(encoding="utf-8").split("\n")[:-1]:
                rows.append(_row(line))
        except (OSError, ValueError, TypeError, KeyError):
            pass  # cut off or damaged: what stands before it is good
        totals = rows[-1] if rows and "sizes" in rows[-1] else None
        return rows[0] if rows else None, [row for row in rows if "crc32" in row], totals

    def _cut(self, done: Chunks) -> bool:
        """Cut the files back to the chunks that are complete; False if that can't be done."""
        try:
            for i, (name, kind) in enumerate(zip(self.names, self.types(done[0]["width"]), strict=True)):
                size = kind.itemsize * sum(chunk["counts"][i] for chunk in done)
                file = self.folder / name
                if file.stat().st_size < size:
                    return False
                os.truncate(file, size)
        except (OSError, IndexError):
            return False
        return True

    def _made(self) -> None:
        try:
            self.folder.mkdir(parents=True)
        except OSError as error:
            raise UserError(
                f"can't be made ({error.strerror})", file=self.folder, fix="Choose another --out."
            ) from error

    def _write_index(self, row: dict[str, Any]) -> None:
        try:
            with (self.folder / INDEX).open("a", encoding="utf-8") as file:
                file.write(_line(row))
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            self._failed(error)

    def _failed(self, error: OSError) -> None:
        fix = "Make room, and give the same command again."
        raise UserError(f"can't be written ({error.strerror})", file=self.folder, fix=fix) from error

    def _mapped(self, name: str, kind: np.dtype[Any]) -> NDArray[Any]:
        file = self.folder / name
        try:
            return np.asarray(np.memmap(file, kind, mode="r"))
        except (OSError, ValueError) as error:
            raise UserError("is missing or cut short", file=file, fix=_AGAIN) from error


def checksum(chunks: Chunks) -> str:
    """Return one checksum of all chunks, in hexadecimal digits."""
    return f"{zlib.crc32(json.dumps([chunk['crc32'] for chunk in chunks]).encode()):08x}"


def _line(row: dict[str, Any]) -> str:
    """Return a line of the index, with a checksum of its own."""
    return json.dumps({**row, "check": zlib.crc32(json.dumps(row).encode())}) + "\n"


def _row(line: str) -> dict[str, Any]:
    row: dict[str, Any] = json.loads(line)
    check = row.pop("check")
    if zlib.crc32(json.dumps(row).encode()) != check:
        raise ValueError("the checksum is another")
    return row
