"""Subtitles, SubRip's .srt and WebVTT: a sentence that goes on over several captions is one segment.

Its translation is split between words, in proportion to the length of the captions. Numbers, times, settings, tags
around a caption, notes, styles and regions stay. A caption should have two lines of 42 characters at most, and no more
than 21 characters a second.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from html import unescape
from typing import NamedTuple

from translucid.data.languages import Languages
from translucid.documents.caption_lines import in_lines, split
from translucid.documents.document import Segment, Target
from translucid.documents.marked import Marked, Side
from translucid.documents.spans import Part, Span, Spans, spanned
from translucid.documents.splicing import Edit, TextFile
from translucid.ground.errors import UserError

FASTEST = 21
"""Characters that are read in a second."""
MOST_CAPTIONS = 6
"""Captions that a sentence may go on over."""
LONGEST_GAP = 3.0
"""Seconds between two captions of a sentence, at most."""
_TIME = r"(?:(\d{1,4}):)?(\d{1,2}):(\d{1,2})[.,](\d{1,3})"
_TIMES = re.compile(rf"[ \t]*{_TIME}[ \t]*-->[ \t]*{_TIME}(?:[ \t][^\r\n]*)?[ \t]*(?:\r\n|\r|\n|\Z)")
_LINE = re.compile(r"([^\r\n]*)(?:\r\n|\r|\n|\Z)")
_TAG = re.compile(r"<(/?)(i|b|u|s|font|v|c|lang|ruby|rt)\b[^<>\r\n]*>|<\d[\d:.]*>|\{\\[^{}\r\n]*\}|\{(/?)([ibus])\}")
_SPEAKER = re.compile(r"[ \t]*[-‐–—]")
_APART = re.compile(r"\s*[\[(♪♫#]")
_ENDS, _CLOSING = tuple(".!?…。！？♪♫:"), "\"'”’»)]"
"""Characters that end a sentence, and those that may stand behind them; a bracket ends one too."""
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
        self._end = "\r\n" if "\r\n" in file.text else "\n"
        self.segments: list[Segment] = []
        self._groups: list[list[_Spoken]] = []
        line, at = 1, 0
        for group in _grouped(self._spoken(captions(name, file, web=web))):
            first = group[0].span.start
            line, at = line + file.text.count("\n", at, first), first
            marked = group[0].span.marked
            if len(group) > 1:
                marked = Marked(" ".join(one.span.marked.text for one in group))
            seconds = sum(one.caption.ends - one.caption.begins for one in group)
            longest = max(int(FASTEST * seconds), len(marked.text)) if group[0].whole else None
            self.segments.append(Segment(marked, f"line {line}", longest=longest))
            self._groups.append(group)

    def _spoken(self, found: Iterator[Caption]) -> Iterator[_Spoken]:
        """Yield what can be translated: the text of a caption, or each line where several people speak."""
        for number, caption in enumerate(found):
            text = self._file.text[caption.start : caption.end]
            lines = [match.span(1) for match in _LINE.finditer(text) if match[1].strip()]
            speakers = [bool(_SPEAKER.match(_TAG.sub("", text[first:end]))) for first, end in lines]
            apart = len(lines) > 1 and sum(speakers) > 1 and speakers[0]
            ends = [end for first, end in lines] if apart else [len(text)]
            firsts = [first for first, end in lines] if apart else [0]
            for first, end in zip(firsts, ends, strict=True):
                span = self._spanned(caption.start + first, caption.start + end)
                if span:
                    dashed = _SPEAKER.match(self._file.text, caption.start + first) is not None
                    yield _Spoken(number, caption, span, 1 if apart else len(lines), not apart, dashed)

    def _spanned(self, start: int, end: int) -> Span | None:
        text = self._file.text
        dash = _SPEAKER.match(text, start, end)
        parts, at = [], dash.end() if dash else start
        for match in _TAG.finditer(text, at, end):
            parts.append(Part(at, match.start()))
            name = match[2] or match[4]
            side = Side.closes if match[1] or match[3] else Side.opens if name else Side.alone
            parts.append(Part(*match.span(), side, name or ""))
            at = match.end()
        parts.append(Part(at, end))
        return spanned(text, parts, unescape if self._web else str, folds=True)

    def filled(self, targets: Mapping[int, Target]) -> bytes:
        """See `Document`."""
        return self._file.spliced(edit for number, target in targets.items() for edit in self._edits(number, target))

    def _edits(self, number: int, target: Target) -> Iterator[Edit]:
        group = self._groups[number]
        if len(group) == 1:
            texts = [target.marked]
        else:
            shares = [len(one.span.marked.text) for one in group]
            texts = [Marked(text) for text in split(target.marked.whole, shares)]
        for one, marked in zip(group, texts, strict=True):
            spans = Spans(self._file.text)
            broken = in_lines(marked, one.lines, self._end)
            spans.add(0, one.span, self._written)
            yield from spans.edits({0: Target(broken)})

    def _written(self, words: str) -> str:
        return re.sub("[&<>]", lambda match: _ESCAPES[match[0]], words) if self._web else words


class _Spoken(NamedTuple):
    """What somebody says in a caption."""

    number: int
    """Of the caption."""
    caption: Caption
    span: Span
    lines: int
    whole: bool
    """It is all that the caption says."""
    dashed: bool
    """A dash says that another person speaks."""


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
    apart = any(map(_APART.match, texts)) or other.dashed
    return simple and follows and not apart and not _ends(texts[0]) and -1 < gap <= LONGEST_GAP


def _ends(text: str) -> bool:
    """Whether a sentence ends with a text."""
    text = text.rstrip()
    core = text.rstrip(_CLOSING)
    return core.endswith(_ENDS) or any(bracket in text[len(core) :] for bracket in ")]")


def captions(name: str, file: TextFile, *, web: bool) -> Iterator[Caption]:
    """Yield the captions of a file.

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
            start = end = times.end()
            while (line := _LINE.match(text, end)) and line[1].strip():
                end = line.end()
            last = Caption(_seconds(times.groups()[:4]), _seconds(times.groups()[4:]), start, end)
            yield last
            at, skips = end, False
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
