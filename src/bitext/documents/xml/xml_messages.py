"""Messages of programs in XML: the whole text of an element is one message, as in .resx and Qt's .ts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from bitext.documents.spans import Spans
from bitext.documents.strings.messages import (
    DIVIDER,
    line_breaks,
    tagged_parts,
)
from bitext.documents.tagged_text import matched_tags
from bitext.documents.xml.xml_file import Divider, Item, Targets, escaped, unplaced

_SPACE = re.compile(r"[ \t\r\n]+")


def message_items(text: str, *, folds: bool) -> Iterator[Item]:
    """Yield the texts and marks of a message in the text of an element, and dividers between its blocks and lines.

    Args:
        text: the text, without escapes of XML.
        folds: whether a run of white space counts as one space.
    """
    if folds:
        text = _SPACE.sub(" ", text)
    breaks = line_breaks(text)
    if not breaks and "<" not in text:
        yield text
        return
    parts = list(tagged_parts(text, 0, len(text), breaks=breaks))
    numbers: dict[int, int] = {}
    sides = [(part.side, part.name) for part in parts]
    for number, (opening, closing) in enumerate(matched_tags(sides), 1):
        numbers[opening] = numbers[closing] = -number  # The elements of the file have the numbers from 0.
    for i, part in enumerate(parts):
        raw = text[part.start : part.end]
        if part.side is None:
            yield raw
        elif part.name == DIVIDER:
            yield Divider(0, escaped(raw))
        elif i in numbers:
            yield unplaced(escaped(raw), part.side, numbers[i])
        else:
            yield unplaced(escaped(raw))


class Message(NamedTuple):
    """A message whose spans are segments."""

    numbers: range
    """The numbers of its segments; empty if there is nothing to translate."""
    spans: Spans
    line_end: str
    """The line end of the file: XML parsers turn each into a line feed."""

    def written(self, targets: Targets) -> str:
        """Return the message with translations, escaped for XML."""
        return escaped(self.spans.filled(targets)).replace("\n", self.line_end)
