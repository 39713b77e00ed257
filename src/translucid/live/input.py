"""Text that arrives on a stream or from a file of subtitles, with the times at which it is heard."""

from __future__ import annotations

import re
import time
from codecs import getincrementaldecoder
from collections.abc import Callable, Iterator
from io import BufferedIOBase
from pathlib import Path
from typing import NamedTuple

from bitext.documents.subtitles.cue_maker import timed_words
from bitext.reading import read_at_most

CHUNK = 1 << 16
"""The most bytes that are read at once; fewer if no more have arrived."""
LARGEST = 1 << 26
"""The most bytes of a file of subtitles."""
SUBTITLES = (".vtt", ".srt")
_STAMP = re.compile(r"(\d{1,9}(?:\.\d{0,9})?)\t")
_MAY_BE_STAMP = re.compile(r"\d{0,9}|\d{1,9}\.\d{0,9}")
_UNREADABLE = re.compile("[\udc80-\udcff]")


class Heard(NamedTuple):
    """A part of the text."""

    text: str
    seconds: float | None = None
    """The time that the input gives, if it does."""
    ends: bool = False
    """Whether the sentence ends after it, whatever its words are."""


class TextStream:
    """Lines of text as they arrive; a line may begin with `seconds TAB`."""

    def __init__(self, stream: BufferedIOBase, *, lines_end: bool = False) -> None:
        """Read a stream; `lines_end`: whether each line ends a sentence, not only a blank one."""
        self.stream, self.lines_end = stream, lines_end
        self.unreadable: list[int] = []
        """The numbers of the lines that are not UTF-8, from 1."""
        self._line = 1
        self._begun: str | None = ""  # the beginning of a line that may still be that of a time
        self._seconds: float | None = None
        self._blank = True

    def __iter__(self) -> Iterator[Heard]:
        """Yield the parts of the text. Bytes that are not UTF-8 are read as �."""
        decoder = getincrementaldecoder("utf-8")("surrogateescape")
        while data := self.stream.read1(CHUNK):
            yield from self._parts(decoder.decode(data))
        yield from self._parts(decoder.decode(b"", final=True))
        if self._begun:
            yield Heard(self._begun, None)

    def _parts(self, text: str) -> Iterator[Heard]:
        for part in re.findall(r"[^\n]*\n|[^\n]+", text):
            yield from self._part(part)

    def _part(self, text: str) -> Iterator[Heard]:
        """Yield what a part of one line says, and its end."""
        if _UNREADABLE.search(text):
            text = _UNREADABLE.sub("�", text)
            if self.unreadable[-1:] != [self._line]:
                self.unreadable.append(self._line)
        is_end = text.endswith("\n")
        if self._begun is not None:
            text, self._begun = self._begun + text, None
            if stamp := _STAMP.match(text):
                self._seconds = float(stamp[1])
                text = text[stamp.end() :]
            elif _MAY_BE_STAMP.fullmatch(text):
                self._begun = text
                return
        self._blank = self._blank and not text.strip()
        ends = is_end and (self.lines_end or (self._blank and self._seconds is None))
        yield Heard(text, self._seconds, ends)
        if is_end:
            self._line, self._begun, self._seconds, self._blank = self._line + 1, "", None, True


def subtitle_words(file: Path) -> Iterator[Heard]:
    """Yield the words of a file of subtitles, with their times.

    Raises:
        UserError: the file can't be read, or is invalid.
    """
    for word in timed_words(file.name, read_at_most(file, LARGEST)):
        yield Heard(f"{word.text} ", word.seconds)


def played(parts: Iterator[Heard], clock: Callable[[], float]) -> Iterator[Heard]:
    """Yield parts at the times that they have."""
    for part in parts:
        if part.seconds is not None and (wait := part.seconds - clock()) > 0:
            time.sleep(wait)
        yield part
