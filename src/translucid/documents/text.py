"""Plain text: each line is a segment, its line end, and white space and signs of direction around it, stay."""

from __future__ import annotations

import re
from collections.abc import Mapping

from translucid.data.languages import Languages
from translucid.documents.document import Segment, SegmentList, Target
from translucid.documents.spans import DIRECTION_SIGNS
from translucid.documents.splicing import Edit, TextFile
from translucid.documents.tagged_text import TaggedText

_LINE = re.compile(rf"[^\s{DIRECTION_SIGNS}](?:[^\r\n]*[^\s{DIRECTION_SIGNS}])?")

_BREAKS = re.compile(r"(?<![ \t])[ \t]*+[\r\n]\s*")
"""A line stays one line."""


class Text:
    """A text of lines."""

    def __init__(self, file: TextFile) -> None:
        """Find the lines that have letters."""
        self._file = file
        self._spans: list[tuple[int, int]] = []
        self.segments = SegmentList(file.name)
        at, line = 0, 1
        for match in _LINE.finditer(file.text):
            first, end = match.span()
            if any(map(str.isalpha, match[0])):
                line += file.text.count("\n", at, first)
                at = first
                self._spans.append((first, end))
                self.segments.add(Segment(TaggedText(match[0]), f"line {line}"))

    def filled(self, targets: Mapping[int, Target]) -> bytes:
        """See `Document`."""
        return self._file.spliced(
            Edit(*self._spans[i], _BREAKS.sub(" ", target.marked.whole)) for i, target in targets.items()
        )


def read(name: str, content: bytes, languages: Languages) -> Text:
    """Take a text apart.

    Raises:
        UserError: it is not UTF-8.
    """
    return Text(TextFile.of(name, content))
