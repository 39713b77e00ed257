"""Spans of text and marks: found in what a scanner yields, and filled with their translations."""

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
"""Invisible signs that say in which direction text is written, for a class of characters."""
DIRECTION_OF_HTML = re.compile(rf"[{DIRECTION_SIGNS}]|&(?:lrm|rlm|#820[67]|#x200[ef]);", re.IGNORECASE)
"""One of them, by its name too."""
_BLANK = re.compile(rf"[\s{DIRECTION_SIGNS}]*")
BLANK_OF_HTML = re.compile(rf"(?:\s|&nbsp;|&#160;|&#xa0;|{DIRECTION_OF_HTML.pattern})*", re.IGNORECASE)
"""White space, hard spaces by their names among it, and signs of direction."""
_BLANK_CHARACTER = re.compile(rf"[\s{DIRECTION_SIGNS}]")
_FOLDED = re.compile(r"[ \t\r\n\f]+")


@dataclass(frozen=True, slots=True)
class Part:
    """Words or a mark, where they stand in a text."""

    start: int
    end: int
    side: Side | None = None
    """None for words."""
    name: str = ""
    """What opens and what closes it have the same one."""
    word: bool = False
    """It stands for a word, as `<code>` does: it belongs to the sentence at whose edge it stands."""
    spaces: bool = False
    """It parts words, as a line break does."""
    raw: str | None = None
    """What is written for the mark, if it is something else than what stands there."""


class Span(NamedTuple):
    """What is translated as a whole, and where it stands."""

    start: int
    end: int
    marked: TaggedText
    places: tuple[tuple[int, int], ...] = ()
    """Of its marks: first character, and the one behind the last."""


def spanned(
    text: str,
    parts: Iterable[Part],
    decode: Callable[[str], str] = str,
    *,
    blank: re.Pattern[str] = _BLANK,
    folds: bool = False,
    syntax: PlaceholderSyntax = PlaceholderSyntax.prose,
) -> Span | None:
    """Return the span that parts make up; none if there is nothing to translate in it.

    White space at its ends stays outside, and so do marks at its ends that do not change what is in it: tags around
    all of it, images, comments.

    Args:
        text: in which they stand.
        parts: neighbours, in order.
        decode: gives the characters of words as they stand.
        blank: matches white space, as much as there is, or nothing.
        folds: any white space is worth one space.
        syntax: of placeholders in the words.
    """
    found = _trimmed(text, _paired(parts), blank)
    words, marks, places = "", [], []
    spaced = False
    for part, pair in found:
        between_steps()
        if part.side is None:
            new = decode(text[part.start : part.end])
            if folds:
                new = _FOLDED.sub(" ", new)
                new = new[1:] if spaced and new.startswith(" ") else new
            words += new
            spaced = words.endswith(" ") if new else spaced
        else:
            if part.spaces and words and not spaced:
                words, spaced = words + " ", True
            raw = text[part.start : part.end] if part.raw is None else part.raw
            marks.append(Mark(len(words), raw, part.side, pair))
            places.append((part.start, part.end))
            spaced = spaced and (part.side is not Side.alone or part.spaces)
    if not words.strip() or stands_alone(words, syntax):
        return None
    return Span(found[0][0].start, found[-1][0].end, TaggedText(words, tuple(marks), syntax), tuple(places))


def margins(text: str) -> tuple[int, int]:
    r"""Return how many characters at both ends are white space or signs of direction.

    >>> margins(" \u200fone. \u200e")
    (2, 2)
    """
    start, end = 0, len(text)
    while start < end and _BLANK_CHARACTER.match(text[start]):
        start += 1
    while start < end and _BLANK_CHARACTER.match(text[end - 1]):
        end -= 1
    return start, len(text) - end


_Paired = list[tuple[Part, int | None]]


def _paired(parts: Iterable[Part]) -> _Paired:
    """Give the same number to what opens and what closes it; what has no partner stands alone."""
    found: _Paired = []
    open_ones: list[int] = []
    by_name: dict[str, list[tuple[int, int]]] = {}
    """Depth and number of what was opened under a name; some of it was closed with what it stood in."""
    count = 0
    for part in parts:
        between_steps()
        if len(found) > MOST_PARTS:
            raise TooManyParts
        if part.side is Side.closes:
            same = by_name.get(part.name, [])
            while same and (same[-1][0] >= len(open_ones) or open_ones[same[-1][0]] != same[-1][1]):
                same.pop()
            if same:
                depth, opening = same.pop()
                del open_ones[depth:]
                found[opening] = (found[opening][0], count)
                found.append((part, count))
                count += 1
                continue
        elif part.side is Side.opens:
            by_name.setdefault(part.name, []).append((len(open_ones), len(found)))
            open_ones.append(len(found))
        if part.end > part.start:
            found.append((part, None))
    return [
        (part if pair is not None or not part.side else replace(part, side=Side.alone), pair) for part, pair in found
    ]


def _trimmed(text: str, found: _Paired, blank: re.Pattern[str]) -> _Paired:
    """Take what is not part of a sentence from both ends."""
    first, end = 0, len(found)

    @cache
    def loose(index: int) -> bool:
        part = found[index][0]
        if part.side is None:
            match = blank.match(text, part.start, part.end)
            return match is not None and match.end() == part.end
        return part.side is Side.alone and not part.word

    while first < end:
        opening, closing = found[first], found[end - 1]
        if loose(first):
            first += 1
        elif loose(end - 1):
            end -= 1
        elif end - first > 1 and opening[1] is not None and opening[1] == closing[1] and closing[0].raw is None:
            first, end = first + 1, end - 1
        elif end - first > 1 and opening[1] is not None and opening[1] == found[first + 1][1]:
            first += 2
        elif end - first > 1 and closing[1] is not None and closing[1] == found[end - 2][1]:
            end -= 2
        else:
            break
    kept = found[first:end]
    if kept and kept[0][0].side is None:
        part = kept[0][0]
        match = blank.match(text, part.start, part.end)
        kept[0] = (replace(part, start=match.end() if match else part.start), None)
    if kept and kept[-1][0].side is None:
        part = kept[-1][0]
        kept[-1] = (replace(part, end=_end(text, part, blank)), None)
    return kept


def _end(text: str, part: Part, blank: re.Pattern[str]) -> int:
    """Return where the white space at the end of words begins."""
    ends = (match.start() for match in blank.finditer(text, part.start, part.end) if match.end() == part.end)
    return next(ends, part.end)


Write = Callable[[str], str]
"""Gives words as they are written in a document."""


class Spans:
    """The spans of a text, by the numbers of their segments; one may stand in a mark of another, as `alt` does."""

    def __init__(self, text: str) -> None:
        """`text`: in which they stand."""
        self.text = text
        self._spans: dict[int, tuple[Span, Write, Write]] = {}

    def add(self, number: int, span: Span, write: Write = str, write_first: Write | None = None) -> None:
        """Add the span of a segment; they may come in any order.

        Args:
            number: of the segment.
            span: where it stands.
            write: gives words as they are written.
            write_first: gives those at the beginning of a line; `write` if not given.
        """
        self._spans[number] = (span, write, write_first or write)

    def edits(self, targets: Mapping[int, Target]) -> list[Edit]:
        """Return what has to change for the translations that are of these spans."""
        done: list[Edit] = []
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
        changed: dict[str, list[str]] = defaultdict(list)
        if inside:
            coming = sorted(inside, key=lambda edit: edit.start)
            starts = [edit.start for edit in coming]
            for mark, (start, end) in zip(span.marked.marks, span.places, strict=True):
                near = coming[bisect_left(starts, start) : bisect_left(starts, end)]
                edits = [Edit(e.start - start, e.end - start, e.new) for e in near if e.end <= end]
                changed[mark.raw].append(splice(self.text[start:end], edits) if edits else mark.raw)
        begins = True
        for part in target.parts:
            if isinstance(part, Mark):
                ready = changed.get(part.raw)
                yield ready.pop(0) if ready else part.raw
                begins = "\n" in part.raw
            else:
                yield (write_first if begins else write)(part)
                begins = False
