"""Text with marks: the tags, breaks and placeholders that stand in it and are not words."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from itertools import accumulate

from translucid.data.placeholder_syntax import PlaceholderSyntax
from translucid.documents.splicing import LINE_BREAKS, Edit, splice

_WHITE = " \t\r\n\v\f\x1c\x1d\x1e\x85\u2028\u2029"
"""White space but hard spaces, which are there for a reason."""


class Side(Enum):
    """What a mark does."""

    opens = "opens"
    """What stands behind it, up to the mark of the same pair, is inside of it, as behind `<b>`."""
    closes = "closes"
    """Ends that, as `</b>` does."""
    alone = "alone"
    """Stands by itself, as `<br/>` or `%s`."""


@dataclass(frozen=True, slots=True)
class Mark:
    """One tag or placeholder, at its place in a text."""

    at: int
    """Characters of the text before it."""
    raw: str
    """As it stands in the document: it is written again exactly so."""
    side: Side = Side.alone
    pair: int | None = None
    """The same number for the two marks of an element; none for one that stands alone."""


@dataclass(frozen=True, slots=True)
class KeptElement(Mark):
    """An element without a letter to translate, such as `<sup>2</sup>`, with its content."""

    parts: tuple[str | Mark, ...] = ()
    """What it consists of: texts and marks."""


@dataclass(frozen=True, slots=True)
class TaggedText:
    """A text without its marks, and the marks, in their order.

    >>> marked = TaggedText("Save now", (Mark(0, "<b>", Side.opens, 0), Mark(4, "</b>", Side.closes, 0)))
    >>> marked.whole
    '<b>Save</b> now'
    """

    text: str
    """What is translated; characters, not their escapes."""
    marks: tuple[Mark, ...] = ()
    syntax: PlaceholderSyntax = field(default=PlaceholderSyntax.prose, compare=False, repr=False)
    """Which placeholders may stand in the text."""

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

    def spliced(self, edits: Sequence[Edit]) -> TaggedText:
        """Return it with spans of its text replaced; a mark in one of them goes before it.

        Args:
            edits: in order.
        """
        ends = [edit.end for edit in edits]
        shifts = [0, *accumulate(len(edit.new) - (edit.end - edit.start) for edit in edits)]

        def moved(mark: Mark) -> Mark:
            done = bisect_right(ends, mark.at)
            at = min(mark.at, edits[done].start) if done < len(edits) else mark.at
            return replace(mark, at=at + shifts[done])

        return replace(self, text=splice(self.text, edits), marks=tuple(map(moved, self.marks)))

    def replaced(self, pattern: re.Pattern[str], new: str) -> TaggedText:
        """Return it with `new` in the place of each match of a pattern."""
        return self.spliced([Edit(*match.span(), new) for match in pattern.finditer(self.text)])

    @property
    def stripped(self) -> TaggedText:
        """It without white space at both ends; that between a mark and words stays."""
        end = max(len(self.text.rstrip(_WHITE)), *(mark.at for mark in self.marks), 0)
        start = min(len(self.text) - len(self.text.lstrip(_WHITE)), *(mark.at for mark in self.marks), end)
        return self.spliced([Edit(0, start, ""), Edit(end, len(self.text), "")])

    @property
    def in_one_line(self) -> TaggedText:
        """It with a space in the place of line ends, `stripped`."""
        return self.replaced(LINE_BREAKS, " ").stripped
