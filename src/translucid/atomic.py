"""Files that are whole or not there."""

from __future__ import annotations

import os
from pathlib import Path

from translucid.errors import UserError


def sync_folder(folder: Path) -> None:
    """Let what was renamed in a folder stay renamed after a power cut, where the system can promise that."""
    if os.name == "posix":
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
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        temporary.unlink(missing_ok=True)
        with temporary.open("xb") as file:  # never through a link that somebody has laid there
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        fix = "What was saved before is untouched; make room or choose another folder."
        raise UserError(f"can't be written ({error.strerror})", file=path, fix=fix) from error
