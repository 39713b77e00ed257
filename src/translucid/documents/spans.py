"""Spans of text and marks: built from the parts that a scanner yields, and replaced by their translations."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import NamedTuple

from translucid.data.non_translatable import stands_alone
from translucid.data.placeholder_syntax import PlaceholderSyntax
from translucid.documents.document import MOST_PARTS, Target, TooManyParts
from translucid.documents.splicing import Edit, splice
from translucid.documents.tagged_text import Mark, Side, TaggedText
from translucid.ground.cancellation import between_steps

DIRECTION_SIGNS = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
"""The Unicode controls of writing direction (such as U+200F), written as the content of a character class."""
DIRECTION_OF_HTML = re.compile(rf"[{DIRECTION_SIGNS}]|&(?:lrm|rlm|#820[67]|#x200[ef]);", re.IGNORECASE)
"""A control of writing direction, as a character or as an entity."""
_BLANK = re.compile(rf"[\s{DIRECTION_SIGNS}]*")
BLANK_OF_HTML = re.compile(rf"(?:\s|&nbsp;|&#160;|&#xa0;|{DIRECTION_OF_HTML.pattern})*", re.IGNORECASE)
"""White space, entities of non-breaking spaces, and controls of writing direction."""
_BLANK_CHARACTER = re.compile(rf"[\s{DIRECTION_SIGNS}]")
# The white space that HTML collapses; a non-breaking space is not part of it.
_FOLDED = re.compile(r"[ \t\r\n\f]+")


@dataclass(frozen=True, slots=True)
class Part:
    """A range of a text that holds words or one mark."""

    start: int
    end: int
    side: Side | None = None
    """None for words."""
    name: str = ""
    """The name that an opening mark shares with the mark that closes it."""
    word: bool = False
    """Whether the mark acts as a word, as `<code>` does: it belongs to the sentence even at its edge."""
    spaces: bool = False
    """Whether the mark separates words, as a line break does."""
    raw: str | None = None
    """The text to write for the mark, if it differs from the text in the document."""


class Span(NamedTuple):
    """A range of a text that is translated as a whole."""

    start: int
    end: int
    marked: TaggedText
    places: tuple[tuple[int, int], ...] = ()
    """The start and end of each mark in the text."""


def spanned(
    text: str,
    parts: Iterable[Part],
    decode: Callable[[str], str] = str,
    *,
    blank: re.Pattern[str] = _BLANK,
    folds: bool = False,
    syntax: PlaceholderSyntax = PlaceholderSyntax.prose,
) -> Span | None:
    """Return the span that parts make up; None if it has nothing to translate.

    White space at the ends stays outside, and so do marks at the ends that do not change the content: tags around
    all of it, images, comments.

    Args:
        text: the text that contains the parts.
        parts: adjacent parts, in order.
        decode: turns words of the text into characters, for example by resolving entities.
        blank: matches as much white space as possible, or the empty string.
        folds: whether a run of white space counts as one space.
        syntax: the syntax of placeholders in the words.
    """
    paired = _trimmed(text, _paired(parts), blank)
    words, marks, places = "", [], []
    spaced = False  # whether the words so far end with a space
    for part, pair in paired:
        between_steps()
        if part.side is None:
            new = decode(text[part.start : part.end])
            if folds:
                new = _FOLDED.sub(" ", new)
                # White space on both sides of a tag counts once, as in browsers.
                if spaced:
                    new = new.removeprefix(" ")
            words += new
            if new:
                spaced = words.endswith(" ")
        else:
            if part.spaces and words and not spaced:
                words, spaced = words + " ", True
            raw = part.raw
            if raw is None:
                raw = text[part.start : part.end]
            marks.append(Mark(len(words), raw, part.side, pair))
            places.append((part.start, part.end))
            # An image or a placeholder is visible, so a space behind it is another one.
            spaced = spaced and (part.side is not Side.alone or part.spaces)
    if not words.strip() or stands_alone(words, syntax):
        return None
    return Span(paired[0][0].start, paired[-1][0].end, TaggedText(words, tuple(marks), syntax), tuple(places))


def margins(text: str) -> tuple[int, int]:
    r"""Return the number of characters at each end that are white space or controls of writing direction.

    >>> margins(" \u200fone. \u200e")
    (2, 2)
    """
    start, end = 0, len(text)
    while start < end and _BLANK_CHARACTER.match(text[start]):
        start += 1
    while end and _BLANK_CHARACTER.match(text[end - 1]):
        end -= 1
    return start, len(text) - end


_Paired = list[tuple[Part, int | None]]
"""Parts, each with the number of its pair of marks."""


def _paired(parts: Iterable[Part]) -> _Paired:
    """Give the same number to each opening mark and the mark that closes it; marks without partner stand alone."""
    paired: _Paired = []
    open_indices: list[int] = []
    # The depth and index of each opening mark by its name. An entry is stale if an enclosing element was closed
    # before it; stale entries are dropped only when the name is looked up, which keeps the whole linear.
    by_name: dict[str, list[tuple[int, int]]] = {}
    count = 0
    for part in parts:
        between_steps()
        if len(paired) > MOST_PARTS:
            raise TooManyParts
        if part.side is Side.closes:
            same = by_name.get(part.name, [])
            while same and (same[-1][0] >= len(open_indices) or open_indices[same[-1][0]] != same[-1][1]):
                same.pop()
            if same:
                depth, opening = same.pop()
                del open_indices[depth:]
                paired[opening] = (paired[opening][0], count)
                paired.append((part, count))
                count += 1
                continue
        elif part.side is Side.opens:
            by_name.setdefault(part.name, []).append((len(open_indices), len(paired)))
            open_indices.append(len(paired))
        if part.end > part.start:
            paired.append((part, None))
    for i, (part, pair) in enumerate(paired):
        if part.side and pair is None:
            paired[i] = (replace(part, side=Side.alone), None)
    return paired


def _trimmed(text: str, paired: _Paired, blank: re.Pattern[str]) -> _Paired:
    """Remove parts that do not belong to the sentence from both ends."""
    first, end = 0, len(paired)

    @cache
    def is_loose(index: int) -> bool:
        part = paired[index][0]
        if part.side is None:
            match = blank.match(text, part.start, part.end)
            return match is not None and match.end() == part.end
        return part.side is Side.alone and not part.word

    while first < end:
        opening, closing = paired[first], paired[end - 1]
        if is_loose(first):
            first += 1
        elif is_loose(end - 1):
            end -= 1
        elif end - first < 2:
            break
        # One element around everything, then an empty element at the start or at the end.
        elif opening[1] is not None and opening[1] == closing[1] and closing[0].raw is None:
            first, end = first + 1, end - 1
        elif opening[1] is not None and opening[1] == paired[first + 1][1]:
            first += 2
        elif closing[1] is not None and closing[1] == paired[end - 2][1]:
            end -= 2
        else:
            break
    kept = paired[first:end]
    if kept and kept[0][0].side is None:
        part = kept[0][0]
        if match := blank.match(text, part.start, part.end):
            kept[0] = (replace(part, start=match.end()), None)
    if kept and kept[-1][0].side is None:
        part = kept[-1][0]
        kept[-1] = (replace(part, end=_end(text, part, blank)), None)
    return kept


def _end(text: str, part: Part, blank: re.Pattern[str]) -> int:
    """Return the start of the white space at the end of words."""
    for match in blank.finditer(text, part.start, part.end):
        if match.end() == part.end:
            return match.start()
    return part.end


Write = Callable[[str], str]
"""A function that encodes words for a document, for example by escaping them."""


class Spans:
    """The spans of a text, by the numbers of their segments; a span may lie in a mark of another, as `alt` does."""

    def __init__(self, text: str) -> None:
        """Start without spans in `text`."""
        self.text = text
        self._spans: dict[int, tuple[Span, Write, Write]] = {}

    def add(self, number: int, span: Span, write: Write = str, write_first: Write | None = None) -> None:
        """Add the span of a segment, in any order.

        Args:
            number: the number of the segment.
            span: the span in the text.
            write: encodes words.
            write_first: encodes words at the beginning of a line; `write` by default.
        """
        self._spans[number] = (span, write, write_first or write)

    def edits(self, targets: Mapping[int, Target]) -> list[Edit]:
        """Return the edits that put these translations into the text."""
        done: list[Edit] = []
        # From the last to the first: when the outer span's turn comes, the spans in its marks are done.
        for number in sorted(self._spans, key=lambda number: self._spans[number][0].start, reverse=True):
            between_steps()
            if number in targets:
                span, write, write_first = self._spans[number]
                inside = []
                while done and done[-1].start < span.end:
                    inside.append(done.pop())
                new = "".join(self._written(span, targets[number].marked, inside, write, write_first))
                done.append(Edit(span.start, span.end, new))
        return done

    def filled(self, targets: Mapping[int, Target]) -> str:
        """Return the text with these translations."""
        return splice(self.text, self.edits(targets))

    def _written(
        self, span: Span, target: TaggedText, inside: list[Edit], write: Write, write_first: Write
    ) -> Iterator[str]:
        """Yield words and marks of a target; `inside` are edits in marks of its source."""
        changed = self._changed_marks(span, inside) if inside else {}
        at_line_start = True
        for part in target.parts:
            if not isinstance(part, Mark):
                encode = write_first if at_line_start else write
                yield encode(part)
                at_line_start = False
                continue
            if ready := changed.get(part.raw):
                yield ready.pop(0)
            else:
                yield part.raw
            at_line_start = "\n" in part.raw

    def _changed_marks(self, span: Span, inside: list[Edit]) -> dict[str, list[str]]:
        """Return the marks of a span with edits applied: for each original mark, its edited forms in order."""
        changed: dict[str, list[str]] = defaultdict(list)
        ordered = sorted(inside, key=lambda edit: edit.start)
        starts = [edit.start for edit in ordered]
        for mark, (start, end) in zip(span.marked.marks, span.places, strict=True):
            near = ordered[bisect_left(starts, start) : bisect_left(starts, end)]
            edits = [Edit(e.start - start, e.end - start, e.new) for e in near if e.end <= end]
            new = mark.raw
            if edits:
                new = splice(self.text[start:end], edits)
            changed[mark.raw].append(new)
        return changed
