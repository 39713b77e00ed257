"""Subtitles, SubRip's .srt and WebVTT: a sentence that goes on over several captions is one segment.

Its translation is split between words, in proportion to the length of the captions. Numbers, times, settings, tags
around a caption, notes, styles and regions stay. A caption should have two lines of 42 characters at most, and no more
than 21 characters a second. Each speaker, each description of a sound and each line of a song is a segment.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from html import unescape
from typing import NamedTuple

from translucid.data.languages import Languages
from translucid.documents.document import Segment, SegmentList, Target
from translucid.documents.spans import Part, Span, Spans, spanned
from translucid.documents.splicing import LINE_BREAKS, LINE_END, Edit, TextFile
from translucid.documents.subtitles.caption_lines import in_lines, split
from translucid.documents.subtitles.caption_turns import TAG, Turn, ends_sentence, turns
from translucid.documents.tagged_text import Side, TaggedText
from translucid.ground.errors import UserError

FASTEST = 21
"""Characters that are read in a second."""
MOST_CAPTIONS = 6
"""Captions that a sentence may go on over."""
LONGEST_GAP = 3.0
"""Seconds between two captions of a sentence, at most."""
_TIME = r"(?:(\d{1,4}):)?(\d{1,2}):(\d{1,2})[.,](\d{1,3})"
_TIMES = re.compile(rf"[ \t]*{_TIME}[ \t]*-->[ \t]*{_TIME}(?:[ \t][^\r\n]*)?(?:{LINE_END}|\Z)")
_LINE = re.compile(rf"([^\r\n]*)(?:{LINE_END}|\Z)")
_NUMBER = re.compile(rf"[ \t]*\d+[ \t]*{LINE_END}(?:[ \t]*{LINE_END})*")
_APART = re.compile(r"\s*[(#]")
_ESCAPES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}


class Caption(NamedTuple):
    """What is shown at a time."""

    begins: float
    """Seconds."""
    ends: float
    start: int
    """Of its text in the file."""
    end: int


class Subtitles:
    """A file of captions."""

    def __init__(self, name: str, file: TextFile, *, web: bool) -> None:
        """Find its segments.

        Args:
            name: of the file.
            file: its text.
            web: it is WebVTT, whose text has escapes.

        Raises:
            UserError: it is broken.
        """
        self._file, self._web = file, web
        self._end = file.line_end
        self.segments = SegmentList(name)
        self._groups: list[list[_Spoken]] = []
        line, at = 1, 0
        for group in _grouped(self._spoken(captions(name, file, web=web))):
            first = group[0].span.start
            line, at = line + file.text.count("\n", at, first), first
            marked = group[0].span.marked
            if len(group) > 1:
                marked = TaggedText(" ".join(one.span.marked.text for one in group))
            seconds = sum(one.caption.ends - one.caption.begins for one in group)
            longest = max(int(FASTEST * seconds), len(marked.text)) if group[0].whole else None
            self.segments.add(Segment(marked, f"line {line}", longest=longest))
            self._groups.append(group)

    def _spoken(self, found: Iterator[Caption]) -> Iterator[_Spoken]:
        """Yield what can be translated, turn by turn."""
        for number, caption in enumerate(found):
            text = self._file.text[caption.start : caption.end]
            spoken = []
            for turn in turns(text):
                lines = sum(bool(line.strip()) for line in re.split(r"[\r\n]+", text[turn.start : turn.end]))
                if span := self._spanned(caption.start, turn):
                    spoken.append(_Spoken(number, caption, span, turn, lines))
            yield from [one._replace(whole=True) for one in spoken] if len(spoken) == 1 else spoken

    def _spanned(self, at: int, turn: Turn) -> Span | None:
        text, end = self._file.text, at + turn.end
        signs = [Part(at + first, at + behind, Side.alone) for first, behind in turn.signs]
        tags = map(_tag, TAG.finditer(text, at + turn.start, end))
        parts, done = [], at + turn.start
        for part in sorted([*signs, *tags], key=lambda part: part.start):
            parts += [Part(done, part.start), part]
            done = part.end
        parts.append(Part(done, end))
        return spanned(text, parts, unescape if self._web else str, folds=True)

    def filled(self, targets: Mapping[int, Target]) -> bytes:
        """See `Document`."""
        return self._file.spliced(edit for number, target in targets.items() for edit in self._edits(number, target))

    def _edits(self, number: int, target: Target) -> Iterator[Edit]:
        group = self._groups[number]
        if len(group) == 1:
            texts = [group[0].broken(target.marked, self._end)]
        else:
            whole = target.marked.in_one_line.whole
            parts = map(TaggedText, split(whole, [len(one.span.marked.text) for one in group]))
            texts = [in_lines(text, one.lines, self._end) for one, text in zip(group, parts, strict=True)]
        for one, marked in zip(group, texts, strict=True):
            spans = Spans(self._file.text)
            spans.add(0, one.span, self._written)
            yield from spans.edits({0: Target(marked)})

    def _written(self, words: str) -> str:
        if self._web:
            return re.sub("[&<>]", lambda match: _ESCAPES[match[0]], words)
        # SubRip has no escapes, and a line with this sign could be one of times.
        return words.replace("-->", "→")


class _Spoken(NamedTuple):
    """What somebody says in a caption."""

    number: int
    """Of the caption."""
    caption: Caption
    span: Span
    turn: Turn
    lines: int
    whole: bool = False
    """It is all that the caption says."""

    def broken(self, target: TaggedText, end: str) -> TaggedText:
        """Return a translation in lines; those that a person has made stay."""
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
    return Part(*match.span(), Side.closes if match["close"] or match["ends"] else Side.opens, name)


def _grouped(found: Iterator[_Spoken]) -> Iterator[list[_Spoken]]:
    """Yield captions that a sentence goes on over together; one with tags inside stays by itself."""
    group: list[_Spoken] = []
    for one in found:
        if group and not (_goes_on(group[-1], one) and len(group) < MOST_CAPTIONS):
            yield group
            group = []
        group.append(one)
    if group:
        yield group


def _goes_on(one: _Spoken, other: _Spoken) -> bool:
    texts = one.span.marked.text, other.span.marked.text
    simple = one.whole and other.whole and not one.span.marked.marks and not other.span.marked.marks
    follows = other.number == one.number + 1
    gap = other.caption.begins - one.caption.ends
    speech = one.turn.kind == other.turn.kind == "speech" and not other.turn.speaker
    apart = not speech or any(map(_APART.match, texts))
    return simple and follows and not apart and not ends_sentence(texts[0]) and -1 < gap <= LONGEST_GAP


def captions(name: str, file: TextFile, *, web: bool) -> Iterator[Caption]:
    """Yield the captions of a file. One begins at each line of times, whatever stands before it.

    Raises:
        UserError: the times of one can't be read, or a .vtt does not begin as one.
    """
    text = file.text
    if web and not re.match(r"WEBVTT(?:\s|\Z)", text):
        raise UserError("is no WebVTT: it does not begin with WEBVTT", file=name, line=1)
    at, skips = 0, web
    last: Caption | None = None
    while at < len(text):
        line = _LINE.match(text, at)
        end = line.end() if line else len(text)
        said = line[1].strip() if line else ""
        times = _TIMES.match(text, at)
        if not said:
            skips, at = False, end
        elif times:
            start = times.end()
            at, skips = _behind(text, start), False
            if at > start or not _TIMES.match(text, start):  # times that stand there twice are one caption
                last = Caption(_seconds(times.groups()[:4]), _seconds(times.groups()[4:]), start, at)
                yield last
        elif number := _number(text, at):
            at = number
        elif "-->" in said and not skips:
            raise UserError("has times that can't be read", file=name, line=file.line(at))
        else:
            skips = skips or (web and re.match(r"(?:NOTE|STYLE|REGION)(?:\s|$)", said) is not None)
            follows = _LINE.match(text, end)
            if not skips and not web and not (follows and "-->" in follows[1]):
                if not last:
                    raise UserError("is no caption: its times are missing", file=name, line=file.line(at))
                yield last._replace(start=at, end=end)  # an empty line is in its text
            at = end


def _behind(text: str, at: int) -> int:
    """Return where the text of a caption ends: at an empty line, or where the next caption begins."""
    while (line := _LINE.match(text, at)) and line[1].strip() and not _TIMES.match(text, at) and not _number(text, at):
        at = line.end()
    return at


def _number(text: str, at: int) -> int | None:
    """Return where the times stand behind the number of a caption; none if it is no such number."""
    number = _NUMBER.match(text, at)
    return number.end() if number and _TIMES.match(text, number.end()) else None


def _seconds(groups: tuple[str | None, ...]) -> float:
    hours, minutes, seconds, parts = groups
    return int(hours or 0) * 3600 + int(minutes or 0) * 60 + int(seconds or 0) + float(f"0.{parts}")


def read(name: str, content: bytes, languages: Languages) -> Subtitles:
    """Take a file of captions apart.

    Raises:
        UserError: it is not UTF-8, or broken.
    """
    file = TextFile.of(name, content)
    return Subtitles(name, file, web=name.lower().endswith(".vtt"))
