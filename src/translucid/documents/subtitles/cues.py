"""Subtitles (SubRip and WebVTT): a sentence that continues over several captions is one segment.

Its translation is split between words, in proportion to the lengths of the captions. Numbers, times, settings, tags
around a caption, notes, styles and regions do not change. A caption should have at most two lines of 42 characters and
21 characters per second. Each speaker, each description of a sound and each line of a song is a segment.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from html import escape, unescape
from typing import NamedTuple

from translucid.data.languages import Languages
from translucid.documents.document import Segment, SegmentList, Target
from translucid.documents.spans import Part, Span, Spans, spanned
from translucid.documents.splicing import LINE_BREAKS, LINE_END, Edit, TextFile
from translucid.documents.subtitles.caption_turns import TAG, Turn, ends_sentence, turns
from translucid.documents.tagged_text import Side, TaggedText
from translucid.ground.errors import UserError

FASTEST = 21
"""The number of characters that people read per second."""
MOST_CAPTIONS = 6
"""The largest number of captions of a sentence."""
LONGEST_GAP = 3.0
"""The largest number of seconds between two captions of a sentence."""
WIDEST = 42
"""The largest number of characters of a line."""
_GAP = re.compile(r" +|(?<=[\u3000-\u30ff\u3400-\u9fff\uff00-\uffef])(?=[\u3040-\u30ff\u3400-\u9fff])")
"""A place where a text may be split: between words, and between ideographs."""
_TIME = r"(?:(\d{1,4}):)?(\d{1,2}):(\d{1,2})[.,](\d{1,3})"
_TIMES = re.compile(rf"[ \t]*{_TIME}[ \t]*-->[ \t]*{_TIME}(?:[ \t][^\r\n]*)?(?:{LINE_END}|\Z)")
_HEAD = re.compile(rf"(?:[ \t]*\d+[ \t]*{LINE_END}(?:[ \t]*{LINE_END})*)?{_TIMES.pattern}")
"""The number of a caption, if it has one, and its times."""
_LINE = re.compile(rf"([^\r\n]*)(?:{LINE_END}|\Z)")
_APART = re.compile(r"\s*[(#]")


class Caption(NamedTuple):
    """A caption: the times in seconds between which it is shown, and the span of its text in the file."""

    begins: float
    ends: float
    start: int
    end: int


class Subtitles:
    """A file of captions."""

    def __init__(self, file: TextFile, *, web: bool) -> None:
        """Parse the segments of a file; `web`: whether it is WebVTT, whose text has escapes.

        Raises:
            UserError: the file is invalid.
        """
        self._file, self._web = file, web
        self._end = file.line_end
        self.segments = SegmentList(file.name)
        self._groups: list[list[_Spoken]] = []
        line, at = 1, 0
        for group in _grouped(self._spoken(captions(file, web=web))):
            first = group[0].span.start
            line, at = line + file.text.count("\n", at, first), first
            marked = group[0].span.marked
            if len(group) > 1:
                marked = TaggedText(" ".join(spoken.span.marked.text for spoken in group))
            longest = None
            if group[0].whole:
                seconds = sum(spoken.caption.ends - spoken.caption.begins for spoken in group)
                longest = max(int(FASTEST * seconds), len(marked.text))
            self.segments.add(Segment(marked, f"line {line}", longest=longest))
            self._groups.append(group)

    def _spoken(self, captions: Iterator[Caption]) -> Iterator[_Spoken]:
        """Yield the texts to translate, turn by turn."""
        for number, caption in enumerate(captions):
            text = self._file.text[caption.start : caption.end]
            spoken = []
            for turn in turns(text):
                lines = len(list(filter(str.strip, re.split(r"[\r\n]+", text[turn.start : turn.end]))))
                if span := self._spanned(caption.start, turn):
                    spoken.append(_Spoken(number, caption, span, turn, lines))
            if len(spoken) == 1:
                yield spoken[0]._replace(whole=True)
            else:
                yield from spoken

    def _spanned(self, at: int, turn: Turn) -> Span | None:
        """Return the span of a turn; `at`: the offset of its caption."""
        text, end = self._file.text, at + turn.end
        marks = [Part(at + sign_start, at + sign_end, Side.alone) for sign_start, sign_end in turn.signs]
        marks += map(_tag, TAG.finditer(text, at + turn.start, end))
        parts, done = [], at + turn.start
        for mark in sorted(marks, key=lambda mark: mark.start):
            parts += [Part(done, mark.start), mark]
            done = mark.end
        parts.append(Part(done, end))
        return spanned(text, parts, unescape if self._web else str, folds=True)

    def filled(self, targets: Mapping[int, Target]) -> bytes:
        """Return the file with translations, split over captions and lines."""
        edits: list[Edit] = []
        for number, target in targets.items():
            edits += self._edits(number, target)
        return self._file.spliced(edits)

    def _edits(self, number: int, target: Target) -> Iterator[Edit]:
        group = self._groups[number]
        if len(group) == 1:
            texts = [group[0].broken(target.marked, self._end)]
        else:
            whole = target.marked.in_one_line.whole
            parts = split(whole, [len(spoken.span.marked.text) for spoken in group])
            texts = [
                in_lines(TaggedText(part), spoken.lines, self._end) for spoken, part in zip(group, parts, strict=True)
            ]
        for spoken, marked in zip(group, texts, strict=True):
            spans = Spans(self._file.text)
            spans.add(0, spoken.span, self._written)
            yield from spans.edits({0: Target(marked)})

    def _written(self, words: str) -> str:
        if self._web:
            return escape(words, quote=False)
        # SubRip has no escapes, and a line with this sign could be read as times.
        return words.replace("-->", "→")


class _Spoken(NamedTuple):
    """A turn that is translated."""

    number: int
    """The number of the caption."""
    caption: Caption
    span: Span
    turn: Turn
    lines: int
    whole: bool = False
    """Whether it is the only turn of the caption."""

    def broken(self, target: TaggedText, end: str) -> TaggedText:
        """Return a translation in lines; the line breaks of a person do not change."""
        target = target.stripped
        if self.turn.kind == "song":
            return target.in_one_line
        if LINE_BREAKS.search(target.text):
            return target.replaced(LINE_BREAKS, end)
        return in_lines(target, self.lines, end)


def _tag(match: re.Match[str]) -> Part:
    """Return the mark for a tag."""
    name = match["name"] or match["sign"]
    if not name:
        return Part(*match.span(), Side.alone)
    return Part(*match.span(), Side.of_tag(closes=match["close"] or match["ends"]), name)


def _grouped(all_turns: Iterator[_Spoken]) -> Iterator[list[_Spoken]]:
    """Yield turns in groups, each of the captions over which a sentence continues."""
    group: list[_Spoken] = []
    for spoken in all_turns:
        if group and not (_continues(group[-1], spoken) and len(group) < MOST_CAPTIONS):
            yield group
            group = []
        group.append(spoken)
    if group:
        yield group


def _continues(before: _Spoken, after: _Spoken) -> bool:
    """Whether a sentence continues from one turn to another; turns with tags are never joined."""
    for spoken in (before, after):
        marked = spoken.span.marked
        if not spoken.whole or marked.marks or spoken.turn.kind != "speech" or _APART.match(marked.text):
            return False
    if after.number != before.number + 1 or after.turn.speaker or ends_sentence(before.span.marked.text):
        return False
    # Captions may overlap a little.
    return -1 < after.caption.begins - before.caption.ends <= LONGEST_GAP


def captions(file: TextFile, *, web: bool) -> Iterator[Caption]:
    """Yield the captions of a file; each line of times begins one, even without a blank line before it.

    Raises:
        UserError: the times of a caption are invalid, or a .vtt lacks its header.
    """
    text = file.text
    if web and not re.match(r"WEBVTT(?:\s|\Z)", text):
        raise UserError("is no WebVTT: it does not begin with WEBVTT", file=file.name, line=1)
    at, skips = 0, web
    last: Caption | None = None
    while at < len(text):
        line = _LINE.match(text, at)
        assert line
        content, end = line[1].strip(), line.end()
        if not content:
            skips, at = False, end
        elif head := _HEAD.match(text, at):
            start = head.end()
            at, skips = _text_end(text, start), False
            if at > start or not _TIMES.match(text, start):  # Some programs write the times twice.
                last = Caption(_seconds(*head.groups()[:4]), _seconds(*head.groups()[4:]), start, at)
                yield last
        elif "-->" in content and not skips:
            raise UserError("has times that can't be read", file=file.name, line=file.line(at))
        else:
            skips = skips or (web and re.match(r"(?:NOTE|STYLE|REGION)(?:\s|$)", content) is not None)
            following = _LINE.match(text, end)
            # In WebVTT, it is the identifier of a caption; in SubRip, a line before times replaces the number.
            if not skips and not web and not (following and "-->" in following[1]):
                if not last:
                    raise UserError("is no caption: its times are missing", file=file.name, line=file.line(at))
                yield last._replace(start=at, end=end)  # The text of the caption has an empty line.
            at = end


def _text_end(text: str, at: int) -> int:
    """Return the end of a caption's text: an empty line, or the beginning of the next caption."""
    while (line := _LINE.match(text, at)) and line[1].strip():
        if _HEAD.match(text, at):
            break
        at = line.end()
    return at


def _seconds(hours: str | None, minutes: str, seconds: str, parts: str) -> float:
    return int(hours or 0) * 3600 + int(minutes) * 60 + int(seconds) + float(f"0.{parts}")


def split(text: str, shares: Sequence[int]) -> list[str]:
    """Split a text into one part for each share, about as long as the share, and none empty if possible.

    >>> split("uno dos tres cuatro", [7, 11])
    ['uno dos', 'tres cuatro']
    """
    text = text.strip()
    gaps = list(map(re.Match.span, _GAP.finditer(text)))
    parts, at, used, whole = [], 0, 0, sum(shares) or 1
    for i, share in enumerate(shares[:-1]):
        used += share
        wanted = len(text) * used / whole
        gaps = [gap for gap in gaps if gap[0] > at]
        # Each later part needs a gap too, if there are enough.
        usable, later = gaps, len(shares) - i - 2
        if len(gaps) > later:
            usable = gaps[: len(gaps) - later]
        if not usable:
            parts.append(text[at:])
            at = len(text)
            continue
        # A gap after punctuation may be three characters further away.
        start, end = min(usable, key=lambda gap: abs(gap[0] - wanted) - 3 * (text[gap[0] - 1] in ",;:.!?…"))
        parts.append(text[at:start])
        at = end
    return [*parts, text[at:]]


def in_lines(marked: TaggedText, lines: int, end: str) -> TaggedText:
    """Return a text with line breaks: one line if the source has one and it fits, else two, or as many as the source.

    Args:
        marked: the text without line breaks.
        lines: the number of lines of the source.
        end: the line end.
    """
    text = marked.text
    if len(text) <= WIDEST and lines == 1:
        return marked
    wanted = max(2, lines)
    gaps = [match.span() for match in _GAP.finditer(text) if match.start()]
    starts = [start for start, _ in gaps]
    breaks: list[Edit] = []
    least = 0  # the first gap that is not used yet
    for i in range(1, wanted):
        place = len(text) * i / wanted
        nearest = max(least, bisect_left(starts, place))
        if nearest > least and (nearest == len(gaps) or place - starts[nearest - 1] <= starts[nearest] - place):
            nearest -= 1
        if nearest < len(gaps):
            breaks.append(Edit(*gaps[nearest], end))
            least = nearest + 1
    return marked.spliced(breaks)


def read(name: str, content: bytes, languages: Languages) -> Subtitles:
    """Parse a file of captions.

    Raises:
        UserError: the file is not UTF-8, or invalid.
    """
    return Subtitles(TextFile.of(name, content), web=name.lower().endswith(".vtt"))
