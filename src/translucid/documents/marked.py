"""Text with marks: the tags, breaks and placeholders that stand in it and are not words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum


class Side(Enum):
    """What a mark does."""

    opens = "opens"
    """What stands behind it, up to the mark of the same pair, is inside of it, as behind `<b>`."""
    closes = "closes"
    """Ends that, as `</b>` does."""
    alone = "alone"
    """Stands by itself, as `<br/>` or `%s`."""


@dataclass(frozen=True)
class Mark:
    """One tag or placeholder, at its place in a text."""

    at: int
    """Characters of the text before it."""
    raw: str
    """As it stands in the document: it is written again exactly so."""
    side: Side = Side.alone
    pair: int | None = None
    """The same number for the two marks of an element; none for one that stands alone."""


@dataclass(frozen=True)
class Marked:
    """A text without its marks, and the marks, in their order.

    >>> marked = Marked("Save now", (Mark(0, "<b>", Side.opens, 0), Mark(4, "</b>", Side.closes, 0)))
    >>> marked.whole
    '<b>Save</b> now'
    """

    text: str
    """What is translated; characters, not their escapes."""
    marks: tuple[Mark, ...] = ()

    @property
    def parts(self) -> Iterator[str | Mark]:
        """Texts, none empty, and marks as they stand one after the other."""
        at = 0
        for mark in self.marks:
            if mark.at > at:
                yield self.text[at : mark.at]
                at = mark.at
            yield mark
        if self.text[at:]:
            yield self.text[at:]

    @property
    def whole(self) -> str:
        """The text with its marks as they stand, nothing escaped."""
        return "".join(part.raw if isinstance(part, Mark) else part for part in self.parts)
