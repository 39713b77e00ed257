"""The files of reviews, whose ending determines the format."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import PurePath
from typing import NamedTuple

from bitext.documents.document import LARGEST, limit_work
from bitext.errors import UserError
from bitext.review import docx_table, xliff_file
from bitext.review.review import Review


class _Format(NamedTuple):
    written: Callable[[Review], bytes]
    read: Callable[[str, bytes], Review]


_XLIFF = _Format(xliff_file.xliff_of, xliff_file.read_xliff)
_FORMATS = {".docx": _Format(docx_table.docx_of, docx_table.read_docx), ".xlf": _XLIFF, ".xliff": _XLIFF}
ENDINGS = tuple(_FORMATS)
"""The endings of files for review."""


def _format(name: str) -> _Format:
    chosen = _FORMATS.get(PurePath(name).suffix.lower())
    if chosen is None:
        raise UserError("is no file for review", file=name, fix=f"Supported: {' '.join(_FORMATS)}.")
    return chosen


def written_review(name: str, review: Review) -> bytes:
    """Return rows as a file of the format that its name says.

    Raises:
        UserError: there is no such format.
    """
    return _format(name).written(review)


def read_review(name: str, content: bytes) -> Review:
    """Read rows.

    Args:
        name: the file name; its ending determines the format.
        content: the bytes of the file.

    Raises:
        UserError: the file is invalid or harmful, or was not written by `written_review`.
    """
    reader = _format(name)
    if len(content) > LARGEST:
        raise UserError(f"has more than {LARGEST >> 20} MiB", file=name, fix="Split it.")
    with limit_work(name, len(content)):
        return reader.read(name, content)
