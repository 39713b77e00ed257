"""The windows of a text or of records, which are processed independently of each other.

Each window of a text has the lines that are its context.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import islice
from typing import Any, BinaryIO

from translucid.api.translator import WINDOW
from translucid.data.document_context import MAX_SENTENCES


@dataclass(frozen=True)
class Place:
    """A place in a text, and a checksum of the text before it."""

    lines: int = 0
    bytes: int = 0
    sha256: str = sha256().hexdigest()
    """The checksum of these bytes."""


@dataclass(frozen=True)
class Window:
    """Consecutive lines of a text, or records."""

    lines: Sequence[Any]
    """The lines as bytes, without line feeds and carriage returns; or the records."""
    before: Place
    after: Place
    complete: bool
    """Whether the window would be the same if the text grew: it is full, and its last line has a line feed."""
    earlier: list[bytes] = field(default_factory=list)
    """The lines before the window that may be context of its lines."""


class Reader:
    """Divides a stream into windows. Only line feeds, with or without a carriage return, end lines."""

    def __init__(self, stream: BinaryIO, size: int = WINDOW, *, wrapped: bool = False) -> None:
        """`size`: lines in a window; a window of `wrapped` text ends with a paragraph, or has twice as many lines."""
        self.stream, self.size, self.wrapped = stream, size, wrapped
        self.start = stream.tell() if stream.seekable() else None
        self.place, self.digest = Place(), sha256()
        self.earlier: deque[bytes] = deque(maxlen=MAX_SENTENCES)

    def skip_to(self, place: Place) -> bool:
        """Read from the beginning to a place; return whether the text up to there is the same as before."""
        remaining = place.bytes
        while remaining and (line := self.stream.readline(remaining)):
            self.digest.update(line)
            remaining -= len(line)
            self.earlier.append(_content(line))
        self.place = place
        return not remaining and self.digest.hexdigest() == place.sha256

    def restarted(self) -> Reader | None:
        """Return a reader of the whole text; None if the stream can't be rewound."""
        if self.start is None:
            return None
        self.stream.seek(self.start)
        return Reader(self.stream, self.size, wrapped=self.wrapped)

    def windows(self) -> Iterator[Window]:
        """Yield the windows of the rest of the text."""
        while raw := list(islice(self.stream, self.size)):
            # A paragraph that runs on is translated as a whole, unless it is very long.
            while self.wrapped and self.size <= len(raw) < 2 * self.size and raw[-1].strip():
                if not (line := self.stream.readline()):
                    break
                raw.append(line)
            # The checksum is of all bytes so far: a later run compares it with what it reads.
            before = self.place
            for line in raw:
                self.digest.update(line)
            byte_count = sum(map(len, raw))
            self.place = Place(before.lines + len(raw), before.bytes + byte_count, self.digest.hexdigest())
            lines, earlier = list(map(_content, raw)), list(self.earlier)
            self.earlier.extend(lines)
            yield Window(lines, before, self.place, self._full(raw) and raw[-1].endswith(b"\n"), earlier)

    def _full(self, raw: list[bytes]) -> bool:
        """Return whether no further line belongs to a window."""
        if self.wrapped and raw[-1].strip():
            return len(raw) == 2 * self.size
        return len(raw) >= self.size


class RecordReader:
    """Divides records into windows, as `Reader` does with lines; a checksum is of their representations."""

    def __init__(self, records: Sequence[object], size: int) -> None:
        self.records, self.size = records, size
        self.place, self.digest = Place(), sha256()

    def skip_to(self, place: Place) -> bool:
        """Read up to a place, as `Reader.skip_to` does."""
        self._read(place.lines)
        return self.place == place

    def restarted(self) -> RecordReader:
        """Return a reader of all records."""
        return RecordReader(self.records, self.size)

    def windows(self) -> Iterator[Window]:
        """Yield the windows of the remaining records."""
        while self.place.lines < len(self.records):
            before = self.place
            records = self._read(self.size)
            yield Window(records, before, self.place, complete=len(records) == self.size)

    def _read(self, count: int) -> Sequence[object]:
        records = self.records[self.place.lines : self.place.lines + count]
        for record in records:
            self.digest.update(repr(record).encode())
        self.place = Place(self.place.lines + len(records), sha256=self.digest.hexdigest())
        return records


def _content(line: bytes) -> bytes:
    return line.removesuffix(b"\n").removesuffix(b"\r")


def decoded(lines: Iterable[bytes]) -> tuple[list[str], list[tuple[int, str]]]:
    """Return lines as text, and the numbers of those that are not UTF-8, with the reason."""
    texts, bad = [], []
    for i, line in enumerate(lines):
        texts.append(line.decode("utf-8", errors="replace"))
        if not is_utf8(line):
            bad.append((i, "not UTF-8"))
    return texts, bad


def is_utf8(line: bytes) -> bool:
    """Return whether a line is valid UTF-8, so that decoding and encoding it changes nothing."""
    return line.decode(errors="replace").encode() == line
