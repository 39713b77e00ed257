"""Atomic writes: a file is complete or absent. Devices and pipes that a user names are written directly."""

from __future__ import annotations

import glob
import os
import re
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedWriter, FileIO, UnsupportedOperation
from pathlib import Path
from typing import BinaryIO

from translucid.ground.errors import UserError

_DESCRIPTORS = {"-": 1, "/dev/stdout": 1, "/dev/stderr": 2}
"""Names of what is open already, besides /dev/fd/1."""
_OTHERS = {stat.S_IFDIR: "a folder", stat.S_IFBLK: "a block device", stat.S_IFSOCK: "a socket"}


def sync_folder(folder: Path) -> None:
    """Let what was renamed in a folder stay renamed after a power cut, where the system can promise that."""
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file of ours so that a crash at any moment leaves either the old content or the new.

    Raises:
        UserError: the disk is full, or the folder can't be written to.
    """
    try:
        with _replacing(path) as file:
            file.write(content)
    except OSError as error:
        fix = "What was saved before is untouched; make room or choose another folder."
        raise UserError(f"can't be written ({error.strerror})", file=path, fix=fix) from error


@contextmanager
def _replacing(path: Path) -> Iterator[BinaryIO]:
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    temporary.unlink(missing_ok=True)
    try:
        with temporary.open("xb") as file:  # never through a link that somebody has laid there
            yield file
            file.flush()
            os.fsync(file.fileno())
        replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def remove_half_written(path: Path) -> None:
    """Remove what processes that were killed had begun to write of a file; only whoever has locked it may do so."""
    for half in path.parent.glob(f".{glob.escape(path.name)}.*.tmp"):
        if re.fullmatch(r"\.\d+\.tmp", half.name[1 + len(path.name) :]):
            half.unlink(missing_ok=True)


def replace(temporary: Path, path: Path) -> None:
    """Put a file in the place of another; try for a second if Windows refuses, as while a viewer reads the other.

    Raises:
        OSError: it can't be.
    """
    until = time.monotonic() + 1.0
    while True:
        try:
            temporary.replace(path)
            return
        except PermissionError:
            if sys.platform != "win32" or time.monotonic() > until:
                raise
            time.sleep(0.05)


def write_output(path: Path, content: bytes) -> None:
    """Write what a user has named; see `output`."""
    with output(path) as stream:
        stream.write(content)


@contextmanager
def output(path: Path) -> Iterator[BinaryIO]:
    """Give a stream to what a user has named.

    A file appears, or is replaced, when all is written, whole or not at all. Standard output by its names, pipes and
    character devices are written to and stay what they are.

    Raises:
        UserError: it can't be written.
    """
    with explained(path):
        if is_stream(path):
            with open_stream(path) as stream:
                yield stream
        else:
            with _replacing(resolve_symlinks(path)) as file:
                yield file


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Within it, say of what a user has named that it can't be written.

    Raises:
        UserError: it can't.
        BrokenPipeError: whoever read standard output has left, as `head` does.
    """
    try:
        yield
    except OSError as error:
        if isinstance(error, BrokenPipeError) and _descriptor(path) == 1:
            raise
        fix = "Check the path, or make room."
        place = "standard output" if str(path) == "-" else path  # a lone `-` would be named standard input
        raise UserError(f"can't be written ({error.strerror})", file=place, fix=fix) from error


def is_stream(path: Path) -> bool:
    """Whether a name is of something that is written to as it is: `-`, /dev/stdout, a pipe, a character device.

    Raises:
        UserError: it is a folder, a block device or a socket, or it can't be looked at.
    """
    if _descriptor(path) is not None:
        return True
    with explained(path):
        try:
            kind = stat.S_IFMT(path.stat().st_mode)
        except FileNotFoundError:
            return False
    if kind in _OTHERS:
        raise UserError(f"is {_OTHERS[kind]}, not a file", file=path, fix="Choose another name.")
    return kind != stat.S_IFREG


def open_stream(path: Path) -> BinaryIO:
    """Open what `is_stream`; a pipe waits for its reader.

    Raises:
        OSError: it can't be written to.
    """
    number = _descriptor(path)
    return BufferedWriter(_OneWay(path if number is None else os.dup(number), "w"))


class _OneWay(FileIO):
    """Is written from its beginning to its end; a device says that it can be gone back in, and forgets where."""

    def seekable(self) -> bool:
        return False

    def tell(self) -> int:
        raise UnsupportedOperation("tell")


def resolve_symlinks(path: Path) -> Path:
    """Return the file that is to be replaced: what a link points to, so that it stays a link."""
    return path.resolve() if path.is_symlink() else path


def _descriptor(path: Path) -> int | None:
    """Return the number of what is open already; to open such a name anew would empty the file that it stands for."""
    name = path.as_posix()  # on Windows, too, where some shells know such names
    found = re.fullmatch(r"/(?:dev|proc/self)/fd/(\d+)", name)
    return int(found[1]) if found else _DESCRIPTORS.get(name)
