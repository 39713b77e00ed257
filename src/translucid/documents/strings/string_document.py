"""The common base of documents of strings: JSON, YAML, .strings, .properties, tables."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from translucid.documents.document import Segment, SegmentList, Target
from translucid.documents.spans import Span, Spans
from translucid.documents.splicing import Edit, TextFile
from translucid.documents.strings.messages import message_spans, message_writer


def unescaped(raw: str, escape: re.Pattern[str], named: Mapping[str, str]) -> str:
    """Decode the escapes of a string.

    Args:
        raw: the string in the file.
        escape: matches an escape, with the four digits of a UTF-16 unit as group 1, or a letter as group 2; with
            neither for an escape without a meaning.
        named: the characters by the letters of their escapes.
    """

    def character(match: re.Match[str]) -> str:
        if match[1]:
            return chr(int(match[1], 16))
        return named.get(match[2], match[2] or "")

    # Characters beyond U+FFFF are written as two units, a surrogate pair, which the encoding joins.
    return escape.sub(character, raw).encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def unicode_escape(character: re.Match[str]) -> str:
    r"""Return the escape `\uXXXX` of a matched character, which must be below U+10000."""
    return f"\\u{ord(character[0]):04x}"


class _String(NamedTuple):
    """A string of a file, its spans and its segments."""

    start: int
    end: int
    text: str
    doubled: bool | None
    """Whether apostrophes are written twice, as for `message_spans`."""
    spans: tuple[Span, ...]
    first: int
    """The number of the first span's segment."""
    write: Callable[[str], str]

    def edit(self, targets: Mapping[int, Target]) -> Edit | None:
        """Return the edit of the file for these translations; None if none is of this string."""
        numbers = range(self.first, self.first + len(self.spans))
        if targets.keys().isdisjoint(numbers):
            return None
        spans = Spans(self.text)
        write_words = message_writer(self.text, doubled=self.doubled)
        for number, span in zip(numbers, self.spans, strict=True):
            spans.add(number, span, write_words)
        return Edit(self.start, self.end, self.write(spans.filled(targets)))


class Strings:
    """A file of strings, whose segments are spans of the decoded strings, not of their escaped form in the file."""

    def __init__(self, file: TextFile) -> None:
        """Start without strings in `file`; `add` adds each."""
        self.file = file
        self.segments = SegmentList(file.name)
        self._strings: list[_String] = []
        self._line, self._at = 1, 0

    def add(
        self,
        start: int,
        end: int,
        text: str,
        write: Callable[[str], str],
        *,
        note: str | None = None,
        existing: str | None = None,
        doubled: bool | None = None,
    ) -> None:
        """Add the next string.

        Args:
            start: the start of the range that a translation replaces in the file.
            end: the end of that range.
            text: the decoded string.
            write: encodes a string for the file.
            note: a note for translators.
            existing: the existing translation.
            doubled: whether apostrophes are written twice, as for `message_spans`.
        """
        self._line += self.file.text.count("\n", self._at, start)
        self._at = max(self._at, start)
        spans = tuple(message_spans(text, doubled=doubled))
        first = len(self.segments)
        for span in spans:
            self.segments.add(Segment(span.marked, f"line {self._line}", existing, note))
        if spans:
            self._strings.append(_String(start, end, text, doubled, spans, first, write))

    def filled(self, targets: Mapping[int, Target]) -> bytes:
        """Return the file with translations, each escaped as its format requires."""
        return self.file.spliced(self.edits(targets))

    def edits(self, targets: Mapping[int, Target]) -> list[Edit]:
        """Return the edits of the file for these translations."""
        return list(filter(None, (string.edit(targets) for string in self._strings)))
