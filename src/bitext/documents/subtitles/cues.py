"""Subtitles (SubRip and WebVTT): a sentence that continues over several captions is one segment.

Its translation is split between words, in proportion to the lengths of the captions. Numbers, times, settings, tags
around a caption, notes, styles and regions do not change. A caption should have at most two lines of 42 characters and
21 characters per second. Each speaker, each description of a sound and each line of a song is a segment.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from html import escape, unescape
from typing import NamedTuple

from bitext.documents.document import Segment, SegmentList, Target
from bitext.documents.spans import DIRECTION_SIGNS, Part, Span, Spans, spanned
from bitext.documents.splicing import LINE_BREAKS, LINE_END, Edit, TextFile
from bitext.documents.subtitles.caption_turns import CODED_SPACE, TAG, Turn, ends_sentence, turns
from bitext.documents.subtitles.rolling import (
    RollingLine,
    distributed,
    have_sentences,
    plain,
    rolling_lines,
)
from bitext.documents.tagged_text import Side, TaggedText
from bitext.errors import UserError
from bitext.languages import Languages

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
_LINE_ENDS = re.compile(r"[\r\n]+|(?<![:\\])\\N")
_BLANK = re.compile(rf"(?:[\s{DIRECTION_SIGNS}]|\\[Nh])*")
"""White space and controls of writing direction, also as SubStation Alpha writes them."""
_WORD_TIME = re.compile(r"<\d[\d:.]*>")
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
        self._groups: list[list[_Utterance]] = []
        line, counted = 1, 0
        shown = list(captions(file, web=web))
        lines = rolling_lines(file.text, [(caption.start, caption.end) for caption in shown], self._decoded)
        utterances = self._rolling(shown, lines) if lines else self._utterances(shown)
        for group in _grouped(utterances):
            start = group[0].span.start
            line, counted = line + file.text.count("\n", counted, start), start
            marked = group[0].span.marked
            if len(group) > 1:
                marked = TaggedText(" ".join(utterance.span.marked.text for utterance in group))
            longest = None
            if group[0].is_only_turn:
                seconds = sum(utterance.caption.ends - utterance.caption.begins for utterance in group)
                longest = max(int(FASTEST * seconds), len(marked.text))
            self.segments.add(Segment(marked, f"line {line}", longest=longest))
            self._groups.append(group)

    def _rolling(self, captions: Sequence[Caption], lines: Sequence[RollingLine]) -> Iterator[_Utterance]:
        """Yield the turns of lines that several captions show."""
        may_join = have_sentences(lines)
        for number, line in enumerate(lines):
            caption = captions[line.whole]._replace(begins=captions[line.caption].begins)
            places = [self._timed_turns(start, end) for start, end in line.places]
            whole = places[line.partial]
            for i, (turn, span) in enumerate(whole):
                # Several captions may show only the beginning of the line, with fewer turns.
                spans = [turns[i][1] for turns in places[: line.partial] if i < len(turns)]
                spans += [turns[i][1] for turns in places[line.partial :] if len(turns) == len(whole)]
                yield _Utterance(number, caption, span, turn, 1, may_join and len(whole) == 1, spans)

    def _timed_turns(self, start: int, end: int) -> list[tuple[Turn, Span]]:
        """Return the turns in a range of the file, and their spans without tags."""
        result: list[tuple[Turn, Span]] = []
        for turn in turns(self._file.text[start:end]):
            if span := self._spanned(start, turn):
                words = plain(self._file.text[span.start : span.end], self._decoded)
                result.append((turn, Span(span.start, span.end, TaggedText(words))))
        return result

    def _utterances(self, captions: Sequence[Caption]) -> Iterator[_Utterance]:
        """Yield the turns with text to translate."""
        for number, caption in enumerate(captions):
            text = self._file.text[caption.start : caption.end]
            utterances = []
            for turn in turns(text):
                raw = text[turn.start : turn.end]
                lines = len(list(filter(str.strip, _LINE_ENDS.split(raw))))
                if span := self._spanned(caption.start, turn):
                    spans: list[Span] = []
                    if _WORD_TIME.search(raw):
                        words = plain(self._file.text[span.start : span.end], self._decoded)
                        span = Span(span.start, span.end, TaggedText(words))
                        spans = [span]
                    utterances.append(_Utterance(number, caption, span, turn, lines, spans=spans))
            if len(utterances) == 1:
                yield utterances[0]._replace(is_only_turn=True)
            else:
                yield from utterances

    def _spanned(self, offset: int, turn: Turn) -> Span | None:
        """Return the span of a turn; `offset`: the offset of its caption."""
        text, end = self._file.text, offset + turn.end
        marks = [Part(offset + sign_start, offset + sign_end, Side.alone) for sign_start, sign_end in turn.signs]
        marks += map(_tag, TAG.finditer(text, offset + turn.start, end))
        parts, position = [], offset + turn.start
        for mark in sorted(marks, key=lambda mark: mark.start):
            parts += [Part(position, mark.start), mark]
            position = mark.end
        parts.append(Part(position, end))
        if self._web:
            return spanned(text, parts, self._decoded, folds=True)
        return spanned(text, parts, self._decoded, blank=_BLANK, folds=True)

    def _decoded(self, raw: str) -> str:
        if self._web:
            return unescape(raw)
        return CODED_SPACE.sub(lambda match: "\n" if match["line"] else " ", raw)

    def filled(self, targets: Mapping[int, Target]) -> bytes:
        """Return the file with translations, split over captions and lines."""
        edits: list[Edit] = []
        for number, target in targets.items():
            edits += self._edits(number, target)
        return self._file.spliced(edits)

    def _edits(self, number: int, target: Target) -> Iterator[Edit]:
        group = self._groups[number]
        if len(group) == 1:
            end = self._end
            if not self._web and CODED_SPACE.search(self._file.text, group[0].span.start, group[0].span.end):
                end = "\\N"
            texts = [group[0].broken(target.marked, end)]
        else:
            full_text = target.marked.in_one_line.full_text
            parts = split(full_text, [len(utterance.span.marked.text) for utterance in group])
            texts = [
                in_lines(TaggedText(part), utterance.lines, self._end)
                for utterance, part in zip(group, parts, strict=True)
            ]
        for utterance, marked in zip(group, texts, strict=True):
            if utterance.spans:
                yield from self._distributed(utterance.spans, marked.in_one_line.text)
                continue
            spans = Spans(self._file.text)
            spans.add(0, utterance.span, self._written)
            yield from spans.edits({0: Target(marked)})

    def _distributed(self, spans: Sequence[Span], text: str) -> Iterator[Edit]:
        """Yield the edits that write a text between the tags of each span; shorter spans get the beginning of it."""
        longest = max(len(span.marked.text) for span in spans)
        for span in spans:
            raw, length = self._file.text[span.start : span.end], len(span.marked.text)
            shown = text if length == longest else split(text, [length, longest - length])[0]
            words = distributed(raw, partial(self._split, shown))
            yield Edit(span.start, span.end, "".join(words))

    def _split(self, text: str, shares: Sequence[int]) -> list[str]:
        """Return the parts of a text that `split` returns, as they are written in the file."""
        return [self._written(part) for part in split(text, shares)]

    def _written(self, words: str) -> str:
        if self._web:
            return escape(words, quote=False)
        # SubRip has no escapes, and a line with this sign could be read as times.
        return words.replace("-->", "→")


class _Utterance(NamedTuple):
    """A turn with text to translate."""

    number: int
    """The number of the caption."""
    caption: Caption
    span: Span
    turn: Turn
    lines: int
    is_only_turn: bool = False
    """Whether it is the only turn of the caption."""
    spans: Sequence[Span] = ()
    """The spans of all its places, if the tags in them keep their order: times of words, or lines shown again."""

    def broken(self, target: TaggedText, end: str) -> TaggedText:
        """Return a translation in lines; line breaks that a person has set stay."""
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
        return Part(*match.span(), Side.alone, spaces=match[0].startswith("\\"))
    return Part(*match.span(), Side.of_tag(closes=match["close"] or match["ends"]), name)


def _grouped(utterances: Iterator[_Utterance]) -> Iterator[list[_Utterance]]:
    """Yield groups of turns; the turns of a group have one sentence, which continues over their captions."""
    group: list[_Utterance] = []
    for utterance in utterances:
        if group and not (_continues(group[-1], utterance) and len(group) < MOST_CAPTIONS):
            yield group
            group = []
        group.append(utterance)
    if group:
        yield group


def _continues(before: _Utterance, after: _Utterance) -> bool:
    """Whether a sentence continues from one turn to another; turns with tags are never joined."""
    for utterance in (before, after):
        marked = utterance.span.marked
        if not utterance.is_only_turn or marked.marks or utterance.turn.kind != "speech" or _APART.match(marked.text):
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
    position, is_skipped = 0, web
    previous: Caption | None = None
    while position < len(text):
        line = _LINE.match(text, position)
        assert line
        content, end = line[1].strip(), line.end()
        if not content:
            is_skipped, position = False, end
        elif head := _HEAD.match(text, position):
            start = head.end()
            position, is_skipped = _text_end(text, start, web=web), False
            if position > start or not _TIMES.match(text, start):  # Some programs write the times twice.
                previous = Caption(_seconds(*head.groups()[:4]), _seconds(*head.groups()[4:]), start, position)
                yield previous
        elif "-->" in content and not is_skipped:
            raise UserError("has times that can't be read", file=file.name, line=file.line(position))
        else:
            is_skipped = is_skipped or (web and re.match(r"(?:NOTE|STYLE|REGION)(?:\s|$)", content) is not None)
            following = _LINE.match(text, end)
            # In WebVTT, it is the identifier of a caption; in SubRip, a line before times replaces the number.
            if not is_skipped and not web and not (following and "-->" in following[1]):
                if not previous:
                    raise UserError("is no caption: its times are missing", file=file.name, line=file.line(position))
                yield previous._replace(start=position, end=end)  # The text of the caption has an empty line.
            position = end


def _text_end(text: str, position: int, *, web: bool) -> int:
    """Return the end of a caption's text: an empty line, or the beginning of the next caption.

    In WebVTT, a line of spaces belongs to the caption.
    """
    while (line := _LINE.match(text, position)) and line.end() > position and (line[1] if web else line[1].strip()):
        if _HEAD.match(text, position):
            break
        position = line.end()
    return position


def _seconds(hours: str | None, minutes: str, seconds: str, parts: str) -> float:
    return int(hours or 0) * 3600 + int(minutes) * 60 + int(seconds) + float(f"0.{parts}")


def split(text: str, shares: Sequence[int]) -> list[str]:
    """Split a text into one part for each share, about as long as the share, and none empty if possible.

    >>> split("uno dos tres cuatro", [7, 11])
    ['uno dos', 'tres cuatro']
    """
    text = text.strip()
    gaps = list(map(re.Match.span, _GAP.finditer(text)))
    parts, position, share_sum, share_total = [], 0, 0, sum(shares) or 1
    for i, share in enumerate(shares[:-1]):
        share_sum += share
        expected = len(text) * share_sum / share_total
        gaps = [gap for gap in gaps if gap[0] > position]
        # Each later part needs a gap too, if there are enough.
        usable, later_parts = gaps, len(shares) - i - 2
        if len(gaps) > later_parts:
            usable = gaps[: len(gaps) - later_parts]
        if not usable:
            parts.append(text[position:])
            position = len(text)
            continue
        # A gap after punctuation may be three characters further away.
        start, end = min(usable, key=lambda gap: abs(gap[0] - expected) - 3 * (text[gap[0] - 1] in ",;:.!?…"))
        parts.append(text[position:start])
        position = end
    return [*parts, text[position:]]


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
    line_count = max(2, lines)
    gaps = [match.span() for match in _GAP.finditer(text) if match.start()]
    starts = [start for start, _ in gaps]
    breaks: list[Edit] = []
    first_gap = 0  # the first gap that is not used yet
    for i in range(1, line_count):
        expected = len(text) * i / line_count
        nearest = max(first_gap, bisect_left(starts, expected))
        if nearest > first_gap and (
            nearest == len(gaps) or expected - starts[nearest - 1] <= starts[nearest] - expected
        ):
            nearest -= 1
        if nearest < len(gaps):
            breaks.append(Edit(*gaps[nearest], end))
            first_gap = nearest + 1
    return marked.spliced(breaks)


def read(name: str, content: bytes, languages: Languages) -> Subtitles:
    """Parse a file of captions.

    Raises:
        UserError: the file is not UTF-8, or invalid.
    """
    return Subtitles(TextFile.of(name, content), web=name.lower().endswith(".vtt"))
