"""The common base of documents of strings: JSON, YAML, .strings, .properties, tables."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from bitext.cancellation import between_steps
from bitext.documents.document import Segment, SegmentList, Target
from bitext.documents.spans import LineNumbers, Spans, TextFile
from bitext.documents.strings.messages import add_message
from bitext.documents.tagged_text import TaggedText
from bitext.protected_spans import Edit


def unescaped(raw: str, escape: re.Pattern[str], letter_escapes: Mapping[str, str]) -> str:
    """Decode the escapes of a string.

    Args:
        raw: the string in the file.
        escape: matches an escape, with the four digits of a UTF-16 unit as group 1, a letter as group 2, or
            neither if the escape has no meaning.
        letter_escapes: the characters by the letters of their escapes.
    """

    def character(match: re.Match[str]) -> str:
        if match[1]:
            return chr(int(match[1], 16))
        return letter_escapes.get(match[2], match[2] or "")

    # Characters beyond U+FFFF are written as two units, a surrogate pair, which the encoding joins.
    return escape.sub(character, raw).encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def unicode_escape(character: re.Match[str]) -> str:
    r"""Return the escape `\uXXXX` of a matched character, which must be below U+10000."""
    return f"\\u{ord(character[0]):04x}"


class _String(NamedTuple):
    """A string of a file, its spans and its segments."""

    start: int
    end: int
    numbers: range
    """The numbers of its segments, one for each span."""
    spans: Spans
    write: Callable[[str], str]


class Strings:
    """A file of strings, whose segments are spans of the decoded strings, not of their escaped form in the file."""

    def __init__(self, file: TextFile) -> None:
        self.file = file
        self.segments = SegmentList(file.name)
        self._strings: list[_String] = []
        self._lines = LineNumbers(file.text)

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
        longest: int | None = None,
    ) -> None:
        """Add the next string, whose translation replaces a range of the file.

        `write` encodes a string for the file; `doubled`: whether apostrophes are written twice, as for `message_spans`;
        `longest`: the largest number of characters of its translation.
        """
        marked = None if existing is None else TaggedText(existing)
        template = Segment(TaggedText(""), f"line {self._lines.at(start)}", marked, note, longest)
        numbers, spans = add_message(self.segments, text, template, doubled=doubled)
        self._strings.append(_String(start, end, numbers, spans, write))

    def filled(self, targets: Mapping[int, Target]) -> bytes:
        """Return the file with translations, each escaped as its format requires."""
        return self.file.spliced(self.edits(targets))

    def edits(self, targets: Mapping[int, Target]) -> list[Edit]:
        """Return the edits of the file for these translations."""
        edits = []
        for start, end, numbers, spans, write in self._strings:
            between_steps()
            if not targets.keys().isdisjoint(numbers):
                edits.append(Edit(start, end, write(spans.filled(targets))))
        return edits
