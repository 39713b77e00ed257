"""A line of a corpus that is not a sentence pair; the reader's caller decides what happens to it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple


class BadLine(NamedTuple):
    """A line that is not a sentence pair."""

    file: str
    line: int
    """The number of the line, counted from 1."""
    what: str
    """What is wrong with the line."""
    text: str
    """The beginning of the line; bytes that are not UTF-8 are written as \\xff."""


OnBad = Callable[[BadLine], None] | None
"""A function that is called with each bad line, which is then skipped; if it is None, the first one is an error."""
