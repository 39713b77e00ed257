"""The limits of all documents: their size, their parts, and the memory and processor time that they may take.

A small document can be made to need much: by a long name that every text repeats, or by parts that are compared with
each other. The limits of this module hold for every format; a document that exceeds one is refused in one line.
"""

from __future__ import annotations

import mmap
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from bitext.cancellation import call_around_steps
from bitext.errors import UserError

LARGEST = 64 * 1024 * 1024
"""The largest number of bytes of a document, and of the unpacked content of a zip file."""
MOST_SEGMENTS = 250_000
"""The largest number of segments of a document."""
MOST_PARTS = 200_000
"""The largest number of tags and texts between tags in a segment."""
MOST_COLUMNS = 16_384
"""The largest number of columns of a table: that of Excel."""
MOST_CELLS = 1_000_000
"""The largest number of cells of a table, including those that translations add to short rows."""
LONGEST_PLACE = 200
"""The largest number of characters of the place of a segment; longer ones lose their middle."""
LONGEST_NOTE = 2_000
"""The largest number of characters of the note of a segment; longer ones lose their middle."""
FREE_BYTES = 1 << 20
"""The size of a document up to which the following limits are the same; they grow in proportion with larger ones."""
CHARACTERS = 32 << 20
"""The characters of all segments with their places, notes and tags, many of which may be repetitions."""
MEMORY = 256 << 20
"""The bytes of memory for reading or for writing a document."""
SECONDS = 10.0
"""The seconds of the processor for reading or for writing a document."""
_CHECK_SECONDS = 0.01
"""The time between two measurements of the memory: each costs a hundredth of a millisecond."""
_max_segments: ContextVar[int] = ContextVar("max_segments", default=MOST_SEGMENTS)
_max_characters: ContextVar[int] = ContextVar("max_characters", default=sys.maxsize)


class TooManyParts(Exception):  # noqa: N818  # The caller that knows the file's name turns it into a `UserError`.
    """A text has more than `MOST_PARTS` parts."""


@contextmanager
def limit_segments(limit: int) -> Iterator[None]:
    """Limit the number of segments of documents that are read in this context; reading stops once it is exceeded."""
    token = _max_segments.set(min(limit, MOST_SEGMENTS))
    try:
        yield
    finally:
        _max_segments.reset(token)


def max_segments() -> int:
    """Return the largest number of segments that a document may have in this context."""
    return _max_segments.get()


def max_characters() -> int:
    """Return the largest number of characters of all segments of a document in this context."""
    return _max_characters.get()


def shortened(text: str, limit: int) -> str:
    """Return a text without its middle if it has more than `limit` characters.

    >>> shortened("a very long name!B7", 11)
    'a ver…me!B7'
    """
    if len(text) <= limit:
        return text
    half = (limit - 1) // 2
    return f"{text[:half]}…{text[len(text) - half :]}"


@contextmanager
def limit_work(name: str, size: int) -> Iterator[None]:
    """Limit the characters, the memory and the processor time for reading or writing a document in this context.

    Memory and time are measured between steps (`cancellation.py`), those of other threads during a step
    included. The memory is only limited where the system states it (Linux).

    Args:
        name: the file name for messages.
        size: the number of bytes of the document.

    Raises:
        UserError: the document needs more.
    """
    budget = _Budget(name, max(1.0, size / FREE_BYTES))
    token = _max_characters.set(int(budget.factor * CHARACTERS))
    try:
        with call_around_steps(budget.stop, budget.go_on):
            yield
    except MemoryError:
        raise UserError("needs more memory than there is", file=name, fix="Split it.") from None
    finally:
        _max_characters.reset(token)


class _Budget:
    """The memory and the processor time of one document; only the time between `go_on` and `stop` counts."""

    def __init__(self, name: str, factor: float) -> None:
        self.name, self.factor = name, factor
        self.grown = 0
        self.started = time.thread_time()
        self.memory = _memory()
        self.checked = time.monotonic()

    def stop(self) -> None:
        """Count the memory and the time since the last call, and refuse the document if they are too much."""
        now = time.monotonic()
        if now < self.checked + _CHECK_SECONDS:
            return
        self.checked = now
        memory = _memory()
        self.grown += memory - self.memory
        self.memory = memory
        if self.grown > self.factor * MEMORY:
            raise self._error(f"needs more than {self.factor * MEMORY / (1 << 20):.0f} MiB of memory")
        if time.thread_time() - self.started > self.factor * SECONDS:
            raise self._error(f"needs more than {self.factor * SECONDS:.0f} seconds of the processor")

    def go_on(self) -> None:
        """Leave out the memory of other work that ran meanwhile."""
        now = time.monotonic()
        if now > self.checked + _CHECK_SECONDS:
            self.checked, self.memory = now, _memory()

    def _error(self, what: str) -> UserError:
        return UserError(what, file=self.name, fix="Split it, or leave out what is repeated in it.")


def _memory() -> int:
    """Return the bytes of memory of this process; 0 where the system does not state them."""
    try:
        return int(Path("/proc/self/statm").read_bytes().split()[1]) * mmap.PAGESIZE
    except OSError:
        return 0
