"""Files, also those that a stranger may have made: what may be opened at all, how much is read, what is in it."""

from __future__ import annotations

import hashlib
import stat
from pathlib import Path

from translucid.ground.errors import UserError


def refuse_strange(file: Path, folder: Path, most: int | None = None) -> None:
    """Check, without opening it, that a file is one, that it is in the folder, and how large it is.

    A link may point to another place in the folder, and the folder may itself be a link. What is missing passes.

    Args:
        file: in `folder`.
        folder: that nothing else than what is in it is to be read of.
        most: bytes it may have; any number if not given.

    Raises:
        UserError: it is a pipe, a device or a folder, it is a link that leads out, or it is too large.
    """
    try:
        facts = file.stat()
        real = file.resolve(strict=True)
        inside = real.is_relative_to(folder.resolve(strict=True))
    except FileNotFoundError:
        return
    except OSError as error:
        raise UserError(f"can't be read ({error.strerror})", file=file, fix="Check the path.") from error
    if not inside:
        fix = "Copy the file there if you trust it."
        raise UserError("is a link that leads out of its folder", file=file, fix=fix)
    if not stat.S_ISREG(facts.st_mode):
        raise UserError("is not a file", file=file, fix="A folder, a pipe or a device stands in its place: remove it.")
    if most is not None and facts.st_size > most:
        raise UserError(f"has {facts.st_size:,} bytes, more than {most:,}", file=file, fix="It can't be one of ours.")


def read_at_most(file: Path, most: int) -> bytes:
    """Read a whole file.

    Raises:
        UserError: it has more bytes than that.
        OSError: it can't be read.
    """
    content = bytearray()
    with file.open("rb") as stream:
        while part := stream.read(1 << 20):
            content += part
            if len(content) > most:
                raise UserError(f"has more than {most:,} bytes", file=file, fix="Is this the right file?")
    return bytes(content)


def digest(file: Path) -> str:
    """Return the SHA-256 of a file, hexadecimal.

    Raises:
        UserError: it can't be read.
    """
    try:
        with file.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise UserError(f"can't be read ({error.strerror})", file=file, fix="Check the path.") from error
