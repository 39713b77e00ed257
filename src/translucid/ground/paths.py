"""Output folders that the user names: each appears when it is complete, or not at all."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from translucid.ground.atomic import resolve_symlinks
from translucid.ground.errors import UserError


def refuse_to_lose(out: Path, overwrite: bool, mark: str, what: str) -> None:
    """Check, before any work, that a folder may be written.

    Args:
        out: the folder.
        overwrite: whether it may be replaced if it is of the same kind.
        mark: the name of a file that every folder of this kind has.
        what: the kind of folder, for the message.

    Raises:
        UserError: the folder exists and may not be replaced, or its parent does not exist.
    """
    if out.exists() and not overwrite:
        raise UserError("is there already", file=out, fix="Replace it with --overwrite.")
    if out.exists() and not (out / mark).exists():
        raise UserError(f"is not {what}, so it is not replaced", file=out, fix="Choose another folder.")
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
def whole_folder(out: Path) -> Iterator[Path]:
    """Yield an empty folder to write into; at the end it is renamed to `out`, and replaces a folder of that name.

    An exception leaves everything as it was. A link to a folder stays a link.

    Raises:
        UserError: the folder can't be written.
    """
    out = resolve_symlinks(out)
    half, replaced = out.with_name(f".{out.name}.tmp"), _aside(out)
    try:
        if replaced.exists() and not out.exists():  # a process was killed between the renamings of `replace_folder`
            replaced.rename(out)
        shutil.rmtree(half, ignore_errors=True)
        half.mkdir()
        yield half
        replace_folder(half, out)
    except OSError as error:
        raise UserError(f"can't be written ({error.strerror})", file=out, fix="Choose another folder.") from error
    finally:
        shutil.rmtree(half, ignore_errors=True)


def replace_folder(new: Path, out: Path) -> None:
    """Replace a folder by another.

    This takes two renamings, and the old folder is removed last: Windows neither moves nor removes a folder while one
    of its files is open, and refuses the first renaming, when nothing is lost.

    Raises:
        OSError: the folder can't be replaced; both folders are as they were.
    """
    replaced = _aside(out)
    shutil.rmtree(replaced, ignore_errors=True)
    if out.exists():
        out.rename(replaced)
    try:
        new.rename(out)
    except OSError:
        if replaced.exists():
            replaced.rename(out)
        raise
    shutil.rmtree(replaced, ignore_errors=True)


def remove_folder(folder: Path) -> None:
    """Remove a folder, or leave it complete where Windows refuses because one of its files is open."""
    removed = _aside(folder)
    shutil.rmtree(removed, ignore_errors=True)  # a removal that was interrupted
    with suppress(OSError):
        folder.rename(removed)
    shutil.rmtree(removed, ignore_errors=True)


def _aside(folder: Path) -> Path:
    """Return the temporary name of a folder that is being replaced or removed."""
    return folder.with_name(f".{folder.name}.old")
