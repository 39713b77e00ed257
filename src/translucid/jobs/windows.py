"""A text cut in windows, which are translated independently of each other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from itertools import islice
from typing import BinaryIO

from translucid.api.translator import WINDOW

_CHUNK = 1 << 20


@dataclass(frozen=True)
class Place:
    """How far a text has been read, and what it was up to there."""

    lines: int = 0
    bytes: int = 0
    sha256: str = sha256().hexdigest()
    """Of these bytes."""


@dataclass(frozen=True)
class Window:
    """Some lines of a text."""

    lines: list[bytes]
    """Without their ends."""
    before: Place
    after: Place
    whole: bool
    """Whether it stays as it is when the text grows: it has all lines that it can have, and the last one has ended."""


class Reader:
    """Cuts a stream in windows. Lines end at a line feed, with or without a carriage return, and nowhere else."""

    def __init__(self, stream: BinaryIO, size: int = WINDOW, *, wrapped: bool = False) -> None:
        """`size`: lines in a window; if the text is `wrapped`, a window ends with a paragraph, or has twice as many."""
        self.stream, self.size, self.wrapped = stream, size, wrapped
        self.place = Place()
        self.digest = sha256()

    def skip_to(self, place: Place) -> bool:
        """Go from the beginning to a place; returns whether the text up to there is the one that was read then."""
        left = place.bytes
        while left and (chunk := self.stream.read(min(left, _CHUNK))):
            self.digest.update(chunk)
            left -= len(chunk)
        self.place = place
        return not left and self.digest.hexdigest() == place.sha256

    def windows(self) -> Iterator[Window]:
        """Yield what is left of the text."""
        while raw := list(islice(self.stream, self.size)):
            while self.wrapped and self.size <= len(raw) < 2 * self.size and raw[-1].strip():
                if not (line := self.stream.readline()):
                    break
                raw.append(line)
            before = self.place
            for line in raw:
                self.digest.update(line)
            read = sum(map(len, raw))
            self.place = Place(before.lines + len(raw), before.bytes + read, self.digest.hexdigest())
            lines = [line.removesuffix(b"\n").removesuffix(b"\r") for line in raw]
            yield Window(lines, before, self.place, self._full(raw) and raw[-1].endswith(b"\n"))

    def _full(self, raw: list[bytes]) -> bool:
        """Whether no further line belongs to a window."""
        if self.wrapped and raw[-1].strip():
            return len(raw) == 2 * self.size
        return len(raw) >= self.size
