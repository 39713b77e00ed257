"""Atomic writes: a file or an output folder is complete or absent.

Devices and pipes that a user names are written directly.
"""

from __future__ import annotations

import glob
import os
import re
import shutil
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BufferedWriter, FileIO, UnsupportedOperation
from pathlib import Path
from typing import BinaryIO

from translucid.ground.errors import UserError

_DESCRIPTORS = {"-": 1, "/dev/stdout": 1, "/dev/stderr": 2}
"""File descriptors of streams that are already open, by name; names such as /dev/fd/1 contain theirs."""
_NOT_WRITABLE = {stat.S_IFDIR: "a folder", stat.S_IFBLK: "a block device", stat.S_IFSOCK: "a socket"}


def sync_folder(folder: Path) -> None:
    """Make renamings in a folder survive a power cut, where the system can promise that."""
    if os.name == "posix":  # Windows can't open a folder
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file so that a crash at any moment leaves either the old content or the new.

    Raises:
        UserError: the disk is full, or the folder can't be written to.
    """
    with atomic_file(path) as file:
        file.write(content)


@contextmanager
def atomic_file(path: Path) -> Iterator[BinaryIO]:
    """Open a file that replaces `path` when the context ends, for content that is written in parts.

    A crash at any moment leaves either the old content or the new.

    Raises:
        UserError: the disk is full, or the folder can't be written to.
    """
    try:
        with _replacement(path) as file:
            yield file
    except OSError as error:
        fix = "What was saved before is untouched; make room or choose another folder."
        raise UserError(f"can't be written ({error.strerror})", file=path, fix=fix) from error


@contextmanager
def _replacement(path: Path) -> Iterator[BinaryIO]:
    # A temporary file in the same folder, because only a renaming within a file system is atomic.
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    temporary.unlink(missing_ok=True)
    try:
        with temporary.open("xb") as file:  # "x": never through a link that somebody else has put there
            yield file
            file.flush()
            os.fsync(file.fileno())  # otherwise the name may survive a power cut without the content
        replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def remove_half_written(path: Path) -> None:
    """Remove the temporary files of killed processes that were writing a file; only the holder of its lock may."""
    for temporary in path.parent.glob(f".{glob.escape(path.name)}.*.tmp"):
        # A glob has no pattern for digits only, and `.a.b.tmp` may be a file of the user.
        if re.fullmatch(r"\.\d+\.tmp", temporary.name[1 + len(path.name) :]):
            temporary.unlink(missing_ok=True)


def replace(temporary: Path, path: Path) -> None:
    """Rename a file to the name of another; retry for a second if Windows refuses because the other is open.

    Raises:
        OSError: the file can't be renamed.
    """
    deadline = time.monotonic() + 1.0
    while True:
        try:
            temporary.replace(path)
            return
        except PermissionError:
            if sys.platform != "win32" or time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def write_output(path: Path, content: bytes) -> None:
    """Write a file or stream that the user has named, as `output` does."""
    with output(path) as stream:
        stream.write(content)


@contextmanager
def output(path: Path) -> Iterator[BinaryIO]:
    """Open a file or stream that the user has named for writing.

    A file appears, or is replaced, only when everything is written. Standard output by any of its names, pipes and
    character devices are written to directly.

    Raises:
        UserError: the file can't be written.
    """
    with explain_write_errors(path):
        if is_stream(path):
            with open_stream(path) as stream:
                yield stream
        else:
            with _replacement(resolve_symlinks(path)) as file:
                yield file


@contextmanager
def explain_write_errors(path: Path) -> Iterator[None]:
    """Turn an `OSError` while writing a file that the user has named into a `UserError`.

    Raises:
        UserError: the file can't be written.
        BrokenPipeError: the reader of standard output has ended, as `head` does.
    """
    try:
        yield
    except OSError as error:
        if isinstance(error, BrokenPipeError) and _descriptor(path) == 1:
            raise
        fix = "Check the path, or make room."
        name = "standard output" if str(path) == "-" else path  # `UserError` calls a lone `-` standard input
        raise UserError(f"can't be written ({error.strerror})", file=name, fix=fix) from error


def is_stream(path: Path) -> bool:
    """Return whether a path is written to directly, not replaced: `-`, /dev/stdout, a pipe, a character device.

    Raises:
        UserError: the path is a folder, a block device or a socket, or its kind can't be determined.
    """
    if _descriptor(path) is not None:
        return True
    with explain_write_errors(path):
        try:
            kind = stat.S_IFMT(path.stat().st_mode)
        except FileNotFoundError:
            return False
    if kind in _NOT_WRITABLE:
        raise UserError(f"is {_NOT_WRITABLE[kind]}, not a file", file=path, fix="Choose another name.")
    return kind != stat.S_IFREG


def open_stream(path: Path) -> BinaryIO:
    """Open a path that `is_stream`; opening a pipe waits for its reader.

    Raises:
        OSError: the path can't be written to.
    """
    descriptor = _descriptor(path)
    if descriptor is None:
        return BufferedWriter(_UnseekableFile(path, "w"))
    return BufferedWriter(_UnseekableFile(os.dup(descriptor), "w"))  # a copy, so that closing it leaves ours open


class _UnseekableFile(FileIO):
    """A stream without positions: a character device claims to be seekable, but does not go back."""

    def seekable(self) -> bool:
        return False

    def tell(self) -> int:
        raise UnsupportedOperation("tell")


def resolve_symlinks(path: Path) -> Path:
    """Return the file to be replaced: the target of a link, so that the link stays a link."""
    return path.resolve() if path.is_symlink() else path


def _descriptor(path: Path) -> int | None:
    """Return the file descriptor that a path names, if any; opening it by name would truncate a redirected file."""
    name = path.as_posix()  # on Windows, too, where some shells know such names
    if match := re.fullmatch(r"/(?:dev|proc/self)/fd/(\d+)", name):
        return int(match[1])
    return _DESCRIPTORS.get(name)


def refuse_overwrite(out: Path, overwrite: bool, marker: str, kind: str) -> None:
    """Check, before any work, that a folder may be written.

    Args:
        out: the folder.
        overwrite: whether it may be replaced if it is of the same kind.
        marker: the name of a file that every folder of this kind has.
        kind: the kind of folder, for the message.

    Raises:
        UserError: the folder exists and may not be replaced, or its parent does not exist.
    """
    if out.exists() and not overwrite:
        raise UserError("is there already", file=out, fix="Replace it with `overwrite=True`.")
    if out.exists() and not (out / marker).exists():
        raise UserError(f"is not {kind}, so it is not replaced", file=out, fix="Choose another folder.")
    if not out.parent.is_dir():
        raise UserError("can't be written (there is no such folder)", file=out, fix="Check the path.")


def refuse_unusable_name(name: str) -> None:
    """Check that a name that the user chooses can be the name of a file, on Windows too.

    Raises:
        UserError: it can't.
    """
    # On Windows `con.txt` is the device CON as well, and names lose points and spaces at their end.
    reserved = re.fullmatch(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", name, re.IGNORECASE | re.DOTALL)
    if not name or reserved or name[-1] in " ." or set(name) & set('<>:"/\\|?*') or not name.isprintable():
        raise UserError(f"{name!r} can't be the name of a file", fix="Use letters, digits, hyphens and underscores.")


@contextmanager
def atomic_folder(out: Path) -> Iterator[Path]:
    """Yield an empty folder to write into; at the end it is renamed to `out`, and replaces a folder of that name.

    If there is an exception, nothing changes. A link to a folder stays a link.

    Raises:
        UserError: the folder can't be written.
    """
    out = resolve_symlinks(out)
    temporary, old = out.with_name(f".{out.name}.tmp"), _old_path(out)
    try:
        if old.exists() and not out.exists():  # a process was killed between the renamings of `replace_folder`
            old.rename(out)
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir()
        yield temporary
        replace_folder(temporary, out)
    except OSError as error:
        raise UserError(f"can't be written ({error.strerror})", file=out, fix="Choose another folder.") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


@contextmanager
def export_folder(out: Path, overwrite: bool, marker: str, kind: str) -> Iterator[Path]:
    """Yield a folder that becomes `out` as with `atomic_folder`, after the checks of `refuse_overwrite`."""
    refuse_overwrite(out, overwrite, marker, kind)
    with atomic_folder(out) as folder:
        yield folder


def replace_folder(new: Path, out: Path) -> None:
    """Replace a folder by another.

    This takes two renamings, and the old folder is removed last: Windows neither moves nor removes a folder while one
    of its files is open, and refuses the first renaming, when nothing is lost.

    Raises:
        OSError: the folder can't be replaced; both folders are as they were.
    """
    old = _old_path(out)
    shutil.rmtree(old, ignore_errors=True)
    if out.exists():
        out.rename(old)
    try:
        new.rename(out)
    except OSError:
        if old.exists():
            old.rename(out)
        raise
    shutil.rmtree(old, ignore_errors=True)


def remove_folder(folder: Path) -> None:
    """Remove a folder, or leave it complete where Windows refuses because one of its files is open."""
    old = _old_path(folder)
    shutil.rmtree(old, ignore_errors=True)  # a removal that was interrupted
    with suppress(OSError):
        folder.rename(old)
    shutil.rmtree(old, ignore_errors=True)


def _old_path(folder: Path) -> Path:
    """Return the temporary name of a folder that is being replaced or removed."""
    return folder.with_name(f".{folder.name}.old")
