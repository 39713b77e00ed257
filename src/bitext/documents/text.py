"""Plain text: each line is a segment without its line end and the white space and direction controls at its ends."""

from __future__ import annotations

import re
from collections.abc import Mapping

from bitext.documents.document import Segment, SegmentList, Target
from bitext.documents.spans import DIRECTION_SIGNS, LineNumbers, TextFile, is_numeral
from bitext.documents.tagged_text import TaggedText
from bitext.languages import Languages
from bitext.protected_spans import Edit

_LINE = re.compile(rf"[^\s{DIRECTION_SIGNS}](?:[^\r\n]*[^\s{DIRECTION_SIGNS}])?")

_BREAKS = re.compile(r"(?<![ \t])[ \t]*+[\r\n]\s*")
"""The line ends in a translation; they become spaces, so that a line stays one line."""


class Text:
    """A plain text, line by line."""

    def __init__(self, file: TextFile) -> None:
        self._file = file
        self._spans: list[tuple[int, int]] = []
        self.segments = SegmentList(file.name)
        lines = LineNumbers(file.text)
        for match in _LINE.finditer(file.text):
            start, end = match.span()
            if any(map(str.isalpha, match[0])) and not is_numeral(match[0]):
                self._spans.append((start, end))
                self.segments.add(Segment(TaggedText(match[0]), f"line {lines.at(start)}"))

    def filled(self, targets: Mapping[int, Target]) -> bytes:
        """Return the text with translations, each in one line."""
        edits = []
        for number, target in targets.items():
            edits.append(Edit(*self._spans[number], _BREAKS.sub(" ", target.marked.full_text)))
        return self._file.spliced(edits)


def read(name: str, content: bytes, languages: Languages) -> Text:
    """Parse a plain text.

    Raises:
        UserError: the text is not UTF-8.
    """
    return Text(TextFile.of(name, content))
