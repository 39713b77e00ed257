"""Standard input as a corpus, named `-`: it is kept in a temporary file, as corpora are read more than once."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from translucid.ground.errors import UserError

NAME = "-"
"""What stands for standard input among the files of a corpus."""
_PACKED = b"\x1f\x8b"
"""How gzip begins."""


@cache
def _kept() -> tempfile.TemporaryDirectory[str]:
    """Read standard input to its end, once; the folder goes when the process ends."""
    if sys.stdin is None:
        raise UserError("is closed", file=NAME, fix="Give a file.")
    # A folder, as Windows opens no temporary file a second time while it is open.
    folder = tempfile.TemporaryDirectory(prefix="translucid-")
    with _file(folder).open("wb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
    return folder


def standard_input() -> Path:
    """Return the file that has what came on standard input.

    Raises:
        UserError: it is closed.
    """
    return _file(_kept())


def _file(folder: tempfile.TemporaryDirectory[str]) -> Path:
    return Path(folder.name) / "standard-input"


def is_packed(file: Path) -> bool:
    """Whether a file begins as gzip does."""
    with file.open("rb") as stream:
        return stream.read(len(_PACKED)) == _PACKED


def ending(first_line: str) -> str:
    """Return the ending that a file of such lines has: `.jsonl` if the first is an object, `.tsv` if it has a tab."""
    if first_line.lstrip().startswith("{"):
        return ".jsonl"
    return ".tsv" if "\t" in first_line else ".txt"


def refuse_twice(*groups: Iterable[str] | None) -> None:
    """Check that standard input stands for one corpus at most.

    Raises:
        UserError: it stands for several.
    """
    if sum(str(file) == NAME for group in groups for file in group or ()) > 1:
        raise UserError("can be one corpus and not several", file=NAME, fix="Give files for the others.")
