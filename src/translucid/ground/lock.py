"""A lock that keeps other processes out of a folder."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from translucid.ground.errors import UserError

LOCK = ".lock"
"""The name of the file in the folder."""


@contextmanager
def locked_folder(folder: Path, work: str) -> Iterator[None]:
    """Make a folder for the option `--out` if there is none, and hold its lock.

    `work`: the name of the work that holds the lock, such as `training`, for messages.

    Raises:
        UserError: another process holds the lock, or the folder can't be written.
    """
    lock = FileLock(folder / LOCK, timeout=0)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock.acquire()
    except Timeout as error:
        fix = "Wait until it ends, or choose another folder."
        raise UserError(f"another {work} is at work in this folder", file=folder, fix=fix) from error
    except OSError as error:
        what = f"can't be written ({error.strerror})"
        raise UserError(what, file=folder, fix="Choose another folder.") from error
    try:
        yield
    finally:
        lock.release()
