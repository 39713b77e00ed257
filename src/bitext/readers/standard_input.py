"""Standard input as a corpus named `-`, stored in a temporary file because corpora are read more than once."""

from __future__ import annotations

import atexit
import shutil
import sys
import tempfile
from collections.abc import Iterable
from functools import cache
from itertools import chain
from pathlib import Path

from bitext.errors import UserError

NAME = "-"
"""The name of standard input among the files of a corpus."""


@cache
def standard_input() -> Path:
    """Read standard input to its end, once, into a file that is removed when the process ends.

    Raises:
        UserError: standard input is closed.
    """
    if sys.stdin is None:
        raise UserError("is closed", file=NAME, fix="Give a file.")
    # A folder, because Windows can't open a temporary file a second time while it is open.
    folder = tempfile.TemporaryDirectory(prefix="translucid-")
    atexit.register(folder.cleanup)
    file = Path(folder.name) / "standard-input"
    with file.open("wb") as stream:
        shutil.copyfileobj(sys.stdin.buffer, stream)
    return file


def ending(first_line: str) -> str:
    """Return the ending for lines of this kind: `.jsonl` for an object, `.tsv` for a line with a tab, else `.txt`."""
    if first_line.lstrip().startswith("{"):
        return ".jsonl"
    return ".tsv" if "\t" in first_line else ".txt"


def refuse_twice(*groups: Iterable[str] | None) -> None:
    """Check that standard input is given for one corpus at most.

    Raises:
        UserError: it is given for several.
    """
    files = chain.from_iterable(group or () for group in groups)
    if list(map(str, files)).count(NAME) > 1:
        raise UserError("can be one corpus and not several", file=NAME, fix="Give files for the others.")
