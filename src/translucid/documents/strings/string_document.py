"""What documents of strings have in common: JSON, YAML, .strings, .properties, tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from translucid.documents.document import Segment, SegmentList, Target
from translucid.documents.spans import Span, Spans
from translucid.documents.splicing import Edit, TextFile
from translucid.documents.strings.messages import message_spans, message_writer


class _String(NamedTuple):
    """One string of a file."""

    start: int
    end: int
    text: str
    doubled: bool | None
    """Whether an apostrophe is written twice; see `message_spans`."""
    spans: tuple[Span, ...]
    first: int
    """Number of the segment of its first span."""
    write: Callable[[str], str]

    def edit(self, targets: Mapping[int, Target]) -> Edit | None:
        """Return what has to change in the file; None if nothing is translated."""
        numbers = range(self.first, self.first + len(self.spans))
        if not any(number in targets for number in numbers):
            return None
        spans = Spans(self.text)
        write_words = message_writer(self.text, doubled=self.doubled)
        for number, span in zip(numbers, self.spans, strict=True):
            spans.add(number, span, write_words)
        return Edit(self.start, self.end, self.write(spans.filled(targets)))


class Strings:
    """A file of strings; the segments of each are spans of its characters, not of how they are escaped in the file."""

    def __init__(self, file: TextFile) -> None:
        """`file`: has no strings yet; see `add`."""
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
            start: of what is replaced in the file.
            end: of it.
            text: what it says, characters.
            write: gives what stands in the file for other characters.
            note: for the translator.
            existing: translation.
            doubled: whether an apostrophe is written twice; see `message_spans`.
        """
        self._line += self.file.text.count("\n", self._at, start)
        self._at = max(self._at, start)
        found = tuple(message_spans(text, doubled=doubled))
        first = len(self.segments)
        for span in found:
            self.segments.add(Segment(span.marked, f"line {self._line}", existing, note))
        if found:
            self._strings.append(_String(start, end, text, doubled, found, first, write))

    def filled(self, targets: Mapping[int, Target]) -> bytes:
        """See `Document`."""
        return self.file.spliced(self.edits(targets))

    def edits(self, targets: Mapping[int, Target]) -> list[Edit]:
        """Return what has to change in the file for translations."""
        return [edit for one in self._strings if (edit := one.edit(targets))]
