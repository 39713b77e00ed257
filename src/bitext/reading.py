"""Safe reading of untrusted files: checks before a file is opened, a size limit, and checksums."""

from __future__ import annotations

import hashlib
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bitext.errors import UserError


def refuse_unsafe(file: Path, folder: Path, max_bytes: int | None = None) -> None:
    """Check, without opening it, that a path is a regular file, that it is in the folder, and how large it is.

    A link may point to another file in the folder, and the folder may itself be a link. A missing file is accepted.

    Args:
        file: a path in `folder`.
        folder: the only folder that may be read from.
        max_bytes: the most bytes that the file may have; no limit by default.

    Raises:
        UserError: the path is a pipe, a device or a folder, a link that leads out of the folder, or a file too large.
    """
    try:
        status = file.stat()
        inside = file.resolve(strict=True).is_relative_to(folder.resolve(strict=True))
    except FileNotFoundError:
        return
    except OSError as error:
        raise UserError(f"can't be read ({error.strerror})", file=file, fix="Check the path.") from error
    if not inside:
        raise UserError("is a link that leads out of its folder", file=file, fix="Copy the file there if you trust it.")
    if not stat.S_ISREG(status.st_mode):
        raise UserError("is not a file", file=file, fix="It is a folder, a pipe or a device: remove it.")
    if max_bytes is not None and status.st_size > max_bytes:
        raise UserError(
            f"has {status.st_size:,} bytes, more than {max_bytes:,}", file=file, fix="It can't be one of ours."
        )


def read_at_most(file: Path, max_bytes: int) -> bytes:
    """Read a whole file of at most this many bytes.

    Raises:
        UserError: the file has more bytes.
        OSError: the file can't be read.
    """
    content = bytearray()
    with file.open("rb") as stream:
        # In parts of 1 MiB up to the limit: the size that `stat` reports is 0 for files in /proc, and files may grow.
        while chunk := stream.read(1 << 20):
            content += chunk
            if len(content) > max_bytes:
                raise UserError(f"has more than {max_bytes:,} bytes", file=file, fix="Is this the right file?")
    return bytes(content)


def digest_if_any(file: Path) -> str | None:
    """Return the SHA-256 of a file; None if there is no such file."""
    if not file.exists():
        return None
    return digest(file)


def digest(file: Path) -> str:
    """Return the SHA-256 of a file, hexadecimal.

    Raises:
        UserError: the file can't be read.
    """
    with reading(file), file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


@contextmanager
def reading(file: object) -> Iterator[None]:
    """Turn an `OSError` while reading a file into a `UserError`.

    Raises:
        UserError: the file can't be read.
    """
    try:
        yield
    except OSError as error:
        raise UserError(f"can't be read ({error.strerror})", file=file, fix="Check the path.") from error
