"""What documents of strings have in common: JSON, YAML, .strings, .properties, tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from translucid.documents.document import Segment, Target
from translucid.documents.messages import message_spans, message_writer
from translucid.documents.spans import Spans
from translucid.documents.splicing import Edit, TextFile


class _String(NamedTuple):
    """One string of a file."""

    start: int
    end: int
    spans: Spans
    write: Callable[[str], str]


class Strings:
    """A file of strings; the segments of each are spans of its characters, not of how they are escaped in the file."""

    def __init__(self, file: TextFile) -> None:
        """`file`: has no strings yet; see `add`."""
        self.file = file
        self.segments: list[Segment] = []
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
        own = Spans(text)
        found = message_spans(text, doubled=doubled)
        write_words = message_writer(text, doubled=doubled)
        for span in found:
            own.add(len(self.segments), span, write_words)
            self.segments.append(Segment(span.marked, f"line {self._line}", existing, note))
        if found:
            self._strings.append(_String(start, end, own, write))

    def filled(self, targets: Mapping[int, Target]) -> bytes:
        """See `Document`."""
        return self.file.spliced(self.edits(targets))

    def edits(self, targets: Mapping[int, Target]) -> list[Edit]:
        """Return what has to change in the file for translations."""
        return [
            Edit(one.start, one.end, one.write(one.spans.filled(targets)))
            for one in self._strings
            if one.spans.edits(targets)
        ]
