"""Text with marks: tags, line breaks and placeholders, which are not words."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from itertools import accumulate

from bitext.documents.splicing import LINE_BREAKS, Edit, splice
from bitext.protected_spans import PlaceholderSyntax, Syntax, with_patterns

_WHITE = " \t\r\n\v\f\x1c\x1d\x1e\x85\u2028\u2029"
"""White space except non-breaking spaces, which authors write on purpose."""


class Side(Enum):
    """The role of a mark in an element."""

    opens = "opens"
    """The beginning of an element, such as `<b>`."""
    closes = "closes"
    """The end of an element, such as `</b>`."""
    alone = "alone"
    """No element, such as `<br/>` or `%s`."""

    @classmethod
    def of_tag(cls, *, closes: object) -> Side:
        """Return the side of a tag, by whether it closes its element."""
        return cls.closes if closes else cls.opens

    @property
    def depth(self) -> int:
        """The change of the number of open elements."""
        return {Side.opens: 1, Side.closes: -1, Side.alone: 0}[self]


@dataclass(frozen=True, slots=True)
class Mark:
    """A tag or a placeholder at its place in a text."""

    offset: int
    """The number of characters of the text before it."""
    raw: str
    """The mark in the syntax of the document."""
    side: Side = Side.alone
    pair: int | None = None
    """A number that the two marks of an element share; None for a single mark."""


@dataclass(frozen=True, slots=True)
class KeptElement(Mark):
    """An element without translatable letters, such as `<sup>2</sup>`, with its content."""

    parts: tuple[str | Mark, ...] = ()
    """The texts and marks in it, including its tags."""


@dataclass(frozen=True, slots=True)
class TaggedText:
    """A text without its marks, and the marks in order.

    >>> marked = TaggedText("Save now", (Mark(0, "<b>", Side.opens, 0), Mark(4, "</b>", Side.closes, 0)))
    >>> marked.full_text
    '<b>Save</b> now'
    """

    text: str
    """The text to translate, without escapes."""
    marks: tuple[Mark, ...] = ()
    syntax: Syntax = field(default=PlaceholderSyntax.prose, compare=False, repr=False)
    """The syntax of placeholders in the text."""

    @classmethod
    def of(cls, parts: Iterable[str | Mark], syntax: Syntax = PlaceholderSyntax.prose) -> TaggedText:
        """Join texts and marks; their order determines the offsets of the marks."""
        texts: list[str] = []
        marks: list[Mark] = []
        size = 0
        for part in parts:
            if isinstance(part, Mark):
                marks.append(replace(part, offset=size))
            else:
                texts.append(part)
                size += len(part)
        return cls("".join(texts), tuple(marks), syntax)

    @property
    def parts(self) -> Iterator[str | Mark]:
        """The texts, none of them empty, and the marks, in order."""
        start = 0
        for mark in self.marks:
            if mark.offset > start:
                yield self.text[start : mark.offset]
                start = mark.offset
            yield mark
        if self.text[start:]:
            yield self.text[start:]

    @property
    def full_text(self) -> str:
        """The text with its marks in the syntax of the document; the text is not escaped."""
        text = ""
        for part in self.parts:
            text += part.raw if isinstance(part, Mark) else part
        return text

    @property
    def mark_offsets(self) -> list[int]:
        """The number of characters before each mark."""
        return [mark.offset for mark in self.marks]

    def protecting(self, patterns: Sequence[str]) -> TaggedText:
        """Return the text with the patterns of a user for parts that a translation must keep."""
        return replace(self, syntax=with_patterns(self.syntax, patterns)) if patterns else self

    def spliced(self, edits: Sequence[Edit]) -> TaggedText:
        """Return the text with edits; a mark within an edited range goes before it.

        Args:
            edits: the edits, in order.
        """
        ends = [edit.end for edit in edits]
        shifts = [0, *accumulate(len(edit.new) - (edit.end - edit.start) for edit in edits)]

        def moved(mark: Mark) -> Mark:
            count = bisect_right(ends, mark.offset)
            offset = mark.offset
            if count < len(edits):
                offset = min(offset, edits[count].start)
            return replace(mark, offset=offset + shifts[count])

        return replace(self, text=splice(self.text, edits), marks=tuple(map(moved, self.marks)))

    def replaced(self, pattern: re.Pattern[str], new: str) -> TaggedText:
        """Return the text with each match of a pattern replaced by `new`."""
        return self.spliced([Edit(*match.span(), new) for match in pattern.finditer(self.text)])

    @property
    def stripped(self) -> TaggedText:
        """The text without white space at both ends; white space between a mark and words stays."""
        offsets = self.mark_offsets
        end = max(len(self.text.rstrip(_WHITE)), *offsets, 0)
        start = min(len(self.text) - len(self.text.lstrip(_WHITE)), *offsets, end)
        return self.spliced([Edit(0, start, ""), Edit(end, len(self.text), "")])

    @property
    def in_one_line(self) -> TaggedText:
        """The text, `stripped`, with spaces instead of line ends."""
        return self.replaced(LINE_BREAKS, " ").stripped
