"""Subtitles (SubRip and WebVTT): a sentence that continues over several captions is one segment.

Its translation is split between words, in proportion to the lengths of the captions. Numbers, times, settings, tags
around a caption, notes, styles and regions do not change. A caption should have at most two lines of 42 characters and
21 characters per second. Each speaker, each description of a sound and each line of a song is a segment. Rolling
captions repeat the last lines of the caption before, as YouTube's automatic captions do: a line is translated once, and
written wherever it is shown. Its words may have times, between which its translation is distributed.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from html import escape, unescape
from itertools import pairwise
from typing import Literal, NamedTuple

from bitext.documents.document import Segment, SegmentList, Target, smallest
from bitext.documents.spans import DIRECTION_SIGNS, LINE_END, LineNumbers, Part, Span, Spans, TextFile, spanned
from bitext.documents.tagged_text import LINE_BREAKS, Side, TaggedText, outer_space
from bitext.errors import UserError
from bitext.languages import Languages
from bitext.protected_spans import Edit

Kind = Literal["speech", "sound", "song"]

_DRAWING = (
    r"\{[^{}\r\n]*\\p[1-9][^{}\r\n]*\}"
    r"[^{]*+(?:\{(?![^{}\r\n]*\\p0)[^{]*+)*(?:\{[^{}\r\n]*\\p0[^{}\r\n]*\})?"
)
"""A drawing of SubStation Alpha between `{\\p1}` and `{\\p0}`."""
TAG = re.compile(
    rf"{_DRAWING}"
    r"|<rt\b[^<>\r\n]*>[^<\r\n]*</rt>"  # the pronunciation of a word
    r"|<(?P<close>/?)(?P<name>i|b|u|s|font|v|c|lang|ruby|rt)\b[^<>\r\n]*>|<\d[\d:.]*>|\{\\[^{}\r\n]*\}"
    r"|\{(?P<ends>/?)(?P<sign>[ibus])\}|&(?:lrm|rlm);|[\u200e\u200f\u202a-\u202e\u2066-\u2069]"
)
"""Tags of WebVTT, SubRip, SubStation Alpha and MicroDVD, drawings, and controls of writing direction."""
CODED_SPACE = re.compile(r"(?<![:\\])\\(?:(?P<line>N)|h)")
"""A line end or a space as SubStation Alpha writes it."""
MUSIC = "♪♫♩♬"
_SPEAKER = r"(?:[-‐‑‒–—―−]{1,2}|>{2,3}|(?:&gt;){2,3})"
SPEAKER = re.compile(_SPEAKER)
"""The sign before the words of another speaker: a dash, or `>>` in American captions."""
_HIDDEN = r"[\s\0]*"
_TURN = re.compile(rf"{_HIDDEN}(?P<speaker>{_SPEAKER}){_HIDDEN}")
_TURN_INSIDE = re.compile(rf"(?<=[.!?…\"”’»])[ \0]+(?={_SPEAKER}{_HIDDEN}(?P<first>[^\s\0]))")
_LINE_OF_CAPTION = re.compile(r"[^\r\n]+")
_MUSIC = re.compile(rf"[{MUSIC}]+|(?<![^\s\0])#(?![^\s\0])")
_OPENING = re.compile(r"[\[(]")
_SOUND = r"(\[[^\[\]]*\]|\([^()]*\))"
_FIRST_SOUND = re.compile(rf"{_HIDDEN}(?:{_SPEAKER}{_HIDDEN})?{_SOUND}")
_NEXT_SOUND = re.compile(rf"[ \t\0]*{_SOUND}")
_NEXT_CHARACTER = re.compile(r"[ \t\0]*([^\r\n]?)")
_ENDS, _CLOSING = tuple(".!?…。！？♪♫:"), "\"'”’»)]"
"""The characters that end a sentence, and those that may follow them; a bracket ends a sentence too."""


class Turn(NamedTuple):
    """A part of a caption that is translated separately."""

    start: int
    """The start in the text of the caption."""
    end: int
    kind: Kind
    speaker: bool
    """Whether it begins with the sign of another speaker."""
    signs: tuple[tuple[int, int], ...]
    """The spans of dashes, music notes and brackets, which are not translated."""


class _Line(NamedTuple):
    start: int
    end: int
    text: str
    """The text without tags and the white space around it."""


def turns(text: str) -> Iterator[Turn]:
    """Yield the turns of a caption, which together cover its text."""
    # Tags are overwritten, not removed, so that all offsets stay the same.
    plain = TAG.sub(lambda match: "\0" * len(match[0]), text)
    plain = CODED_SPACE.sub(lambda match: "\0\n" if match["line"] else "\0 ", plain)
    lines: list[_Line] = []
    for match in _LINE_OF_CAPTION.finditer(plain):
        if content := match[0].replace("\0", "").strip():
            lines.append(_Line(*match.span(), content))
    if not lines:
        return
    songs = list(_songs(lines))
    sounds = dict(_sounds(plain, lines))
    starts = {0, *sounds, *sounds.values(), *_speaker_starts(plain, lines)}
    starts.update(map(re.Match.start, re.finditer(r"<v[ .]", text)))
    for (before_is_song, is_song), line in zip(pairwise(songs), lines[1:], strict=True):
        if before_is_song or is_song:
            starts.add(line.start)
    line_starts = [line.start for line in lines]
    for start, end in pairwise([*sorted(starts), len(text)]):
        kind: Kind = "speech"
        if start in sounds:
            kind = "sound"
        elif songs[max(0, bisect_right(line_starts, start) - 1)]:
            kind = "song"
        if speaker := _TURN.match(plain, start, end):
            yield Turn(start, end, kind, True, (speaker.span("speaker"), *_signs(plain, speaker.end(), end, kind)))
        else:
            yield Turn(start, end, kind, False, tuple(_signs(plain, start, end, kind)))


def ends_sentence(text: str) -> bool:
    """Whether a text ends with the end of a sentence."""
    text = text.rstrip()
    core = text.rstrip(_CLOSING)
    return core.endswith(_ENDS) or not set(")]").isdisjoint(text[len(core) :])


def _speaker_starts(plain: str, lines: list[_Line]) -> set[int]:
    """Return the offsets at which another speaker begins: a line with a dash, or a dash after a sentence."""
    starts = set()
    is_dialogue = bool(SPEAKER.match(lines[0].text))
    for before, line in pairwise(lines):
        turn = _TURN.match(plain, line.start, line.end)
        # A dash before a lower-case letter within a sentence belongs to the sentence.
        if turn and (is_dialogue or ends_sentence(before.text) or not plain[turn.end() : turn.end() + 1].islower()):
            starts.add(line.start)
    if is_dialogue:
        starts.update(match.end() for match in _TURN_INSIDE.finditer(plain) if not match["first"].islower())
    return starts


def _songs(lines: list[_Line]) -> Iterator[bool]:
    """Yield for each line whether it belongs to a song, which begins with a music note and ends after another."""
    singing = False
    for line in lines:
        is_between_hashes = len(line.text) > 4 and line.text.startswith("# ") and line.text.endswith(" #")
        ends = is_between_hashes or line.text[-1] in MUSIC
        is_song = singing or ends or line.text[0] in MUSIC
        yield is_song
        singing = is_song and not ends


def _sounds(plain: str, lines: list[_Line]) -> Iterator[tuple[int, int]]:
    """Yield the spans of bracketed sounds and speakers: at the beginning of a line, or after a sentence at its end.

    A sound may span several lines. It includes the sign of its speaker, and more sounds may follow directly.
    """
    for line in lines:
        start = line.start
        sound = _FIRST_SOUND.match(plain, start)
        while sound and any(map(str.isalpha, sound[1])):
            next_character = _NEXT_CHARACTER.match(plain, sound.end())
            if sound[1][0] == "(" and next_character and next_character[1].islower():
                break  # Round brackets occur in sentences too.
            yield start, sound.end()
            start = sound.end()
            sound = _NEXT_SOUND.match(plain, start)
        if line.text[-1] not in ")]":
            continue
        opening = plain.rfind("[" if line.text[-1] == "]" else "(", start, line.end)
        if opening > start and ends_sentence(plain[start:opening].rstrip(" \t\0")):
            yield opening, line.end


def _signs(plain: str, start: int, end: int, kind: Kind) -> Iterator[tuple[int, int]]:
    """Yield the spans of the brackets around a sound, or of the music notes and hash signs of a song."""
    if kind == "song":
        yield from map(re.Match.span, _MUSIC.finditer(plain, start, end))
    elif kind == "sound":
        opening = _OPENING.search(plain, start, end)
        closing = max(plain.rfind("]", start, end), plain.rfind(")", start, end))
        if opening and closing > opening.start():
            yield opening.span()
            yield closing, closing + 1


FEWEST_ROLLS = 2
"""The smallest number of captions that repeat a line and add words; speakers repeat whole captions, too."""
SHARE = 3
"""In rolling captions, at least one caption of so many repeats a line."""
SENTENCES = 10
"""In captions with punctuation, at least one line of so many has the end of a sentence."""
MOST_LINES = 20
"""The largest number of lines that the next caption repeats; programs show two or three."""
_FIXED = re.compile(rf"{TAG.pattern}|{LINE_END}")
"""What stays between words that are distributed."""
_SENTENCE_END = re.compile(r"[.!?…。！？]")
_INSIDE_WORD = re.compile(r"(?<=[^\W\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff])\w")
"""A letter that continues a word; in scripts without spaces, a line may grow anywhere."""


@dataclass
class RollingLine:
    """A line of text, which several captions show."""

    caption: int
    """The number of the first caption that shows it."""
    whole: int
    """The number of the first caption that shows all of it."""
    text: str
    """The text without tags."""
    places: list[tuple[int, int]] = field(default_factory=list)
    """The ranges of the file in which it is."""
    partial: int = 0
    """The number of places, the first ones, that have only its beginning."""

    def grow(self, caption: int, text: str) -> None:
        """Set the text that a later caption shows, which begins with the former text."""
        if text != self.text:
            self.text, self.whole, self.partial = text, caption, len(self.places)


def rolling_lines(text: str, captions: Iterable[tuple[int, int]], decode: Callable[[str], str]) -> list[RollingLine]:
    """Return the lines of rolling captions in order, each once; no lines if the captions do not roll.

    `captions`: the range of each one's text; `decode` turns the words of the file into characters.
    """
    lines: list[RollingLine] = []
    shown: list[RollingLine] = []
    rolls = repeats = count = 0
    for number, (start, end) in enumerate(captions):
        count += 1
        places: list[tuple[int, int]] = []
        texts: list[str] = []
        for match in _LINE_OF_CAPTION.finditer(text, start, end):
            if words := plain(match[0], decode):
                places.append(match.span())
                texts.append(words)
        overlap = _overlap([line.text for line in shown], texts)
        repeats += overlap > 0
        shown = shown[len(shown) - overlap :]
        rolls += overlap > 0 and texts != [line.text for line in shown]
        if overlap:
            shown[-1].grow(number, texts[overlap - 1])
        for words in texts[overlap:]:
            shown.append(RollingLine(number, number, words))
            lines.append(shown[-1])
        for line, place in zip(shown, places, strict=True):
            line.places.append(place)
    return lines if rolls >= FEWEST_ROLLS and SHARE * repeats >= count else []


def have_sentences(lines: Sequence[RollingLine]) -> bool:
    """Whether lines have punctuation, so that those of a sentence can be joined; automatic captions have none."""
    return SENTENCES * sum(_SENTENCE_END.search(line.text) is not None for line in lines) >= len(lines)


def _overlap(before: Sequence[str], after: Sequence[str]) -> int:
    """Return the number of lines at the end of a caption that the next one repeats at its beginning.

    The last of them may have more words in the next caption.
    """
    for size in range(min(len(before), len(after), MOST_LINES), 0, -1):
        if before[len(before) - size : -1] == after[: size - 1] and _begins(after[size - 1], before[-1]):
            return size
    return 0


def _begins(line: str, beginning: str) -> bool:
    """Whether a line is the same as another one, or continues it with more words."""
    return line.startswith(beginning) and not _INSIDE_WORD.match(line, len(beginning))


def plain(raw: str, decode: Callable[[str], str]) -> str:
    """Return the words of a caption, without tags and with single spaces."""
    return " ".join(decode(TAG.sub("", raw)).split())


def distributed(raw: str, texts: Callable[[Sequence[int]], Sequence[str]]) -> Iterator[str]:
    """Yield a text of the file whose tags stay in order, with other words between them.

    `texts` returns new words for each text between tags, given their lengths.
    """
    chunks, tags, position = list[str](), list[str](), 0
    for match in _FIXED.finditer(raw):
        chunks.append(raw[position : match.start()])
        tags.append(match[0])
        position = match.end()
    chunks.append(raw[position:])
    with_words = [i for i, chunk in enumerate(chunks) if chunk.strip()]
    new = dict(zip(with_words, texts([len(chunks[i].strip()) for i in with_words]), strict=True))
    needs_space = False  # whether words follow others without a space between them
    for i, chunk in enumerate(chunks):
        words = new.get(i)
        if words is None:
            yield chunk
        elif words:
            before, after = outer_space(chunk)
            yield (before or " " * needs_space) + words + after
            needs_space = not after
        if i < len(tags):
            yield tags[i]
            needs_space = needs_space and tags[i][0] not in "\r\n"


FASTEST = 21
"""The number of characters that people read per second."""
MOST_CAPTIONS = 6
"""The largest number of captions of a sentence."""
LONGEST_GAP = 3.0
"""The largest number of seconds between two captions of a sentence."""
WIDEST = 42
"""The largest number of characters of a line."""
_LEADING_WORDS = """
a an the my your his her its our their of in on at to for from with by as and or but if that who not no is are i
el la los las lo un una unos unas mi tu su de del al en con por para sin y e o u que se me te le les nos muy
der die das den dem des ein eine einen einem einer mein dein sein von vom zu zum zur im am mit auf für und oder
l le une mon ma mes ton ta sa ses du d au aux à dans sur pour par et ou ne je il elle qui très
"""
LEADING = frozenset(_LEADING_WORDS.split())
"""Articles, prepositions and other words of English, Spanish, German and French that belong to the word after them: no
line should end with one."""
_LAST_WORD = re.compile(r"[^\W\d_]+\Z")
_LONGEST_LEADING = 8
_NEARBY_GAPS = 4
"""The number of gaps on each side of the middle among which a line break is chosen."""
LEADING_COST, CLAUSE_GAIN = 12, 10
"""How many characters a line may be less balanced, not to end with a leading word, and to end with punctuation."""
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


@dataclass(frozen=True)
class CueLimits:
    """The limits of a cue's text. Each character of Chinese, Japanese and Korean counts as two where cues are made."""

    line_length: int = WIDEST
    """The most characters of a line; only a word that is longer alone has a longer one."""
    reading_speed: float = 17.0
    """The characters that people read per second."""


def leads(text: str) -> bool:
    """Whether a text ends with a word that belongs to the next one, such as an article.

    >>> leads("I saw the"), leads("I saw")
    (True, False)
    """
    match = _LAST_WORD.search(text[-_LONGEST_LEADING:])
    return match is not None and match[0].casefold() in LEADING


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
        self._decoded, self._written = partial(decoded, web=web), partial(written, web=web)
        self._end, self._line_length = file.line_end, WIDEST
        self.segments = SegmentList(file.name)
        self._groups: list[list[_Utterance]] = []
        numbers = LineNumbers(file.text)
        shown = list(captions(file, web=web))
        lines = rolling_lines(file.text, [(caption.start, caption.end) for caption in shown], self._decoded)
        utterances = self._rolling(shown, lines) if lines else self._utterances(shown)
        for group in _grouped(utterances):
            marked = group[0].span.marked
            if len(group) > 1:
                marked = TaggedText(" ".join(utterance.span.marked.text for utterance in group))
            longest = None
            if group[0].is_only_turn:
                longest = max(int(FASTEST * _seconds_of(group)), len(marked.text))
            self.segments.add(Segment(marked, f"line {numbers.at(group[0].span.start)}", longest=longest))
            self._groups.append(group)

    def limit(self, line_length: int | None, reading_speed: float | None) -> None:
        """Limit the lengths of the translations, to two lines for each caption and to what people can read in its time.

        A limit that is None stays as it is. Captions with several speakers have none.

        Args:
            line_length: the most characters of a line.
            reading_speed: the characters that people read per second.
        """
        self._line_length = line_length or self._line_length
        for number, group in enumerate(self._groups):
            if not group[0].is_only_turn:
                continue
            segment = self.segments[number]
            limit = segment.longest if reading_speed is None else int(reading_speed * _seconds_of(group))
            if line_length is not None:
                limit = smallest(limit, 2 * line_length * len(group))
            self.segments[number] = replace(segment, longest=limit and max(limit, 1))

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
            texts = [group[0].broken(target.marked, end, self._line_length)]
        else:
            full_text = target.marked.in_one_line.full_text
            parts = split(full_text, [len(utterance.span.marked.text) for utterance in group])
            texts = [
                in_lines(TaggedText(part), utterance.lines, self._end, self._line_length)
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
        return [self._written(part) for part in split(text, shares)]


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

    def broken(self, target: TaggedText, end: str, line_length: int) -> TaggedText:
        """Return a translation in lines; line breaks that a person has set stay."""
        target = target.stripped
        if self.turn.kind == "song":
            return target.in_one_line
        if LINE_BREAKS.search(target.text):
            return target.replaced(LINE_BREAKS, end)
        return in_lines(target, self.lines, end, line_length)


def _seconds_of(group: Sequence[_Utterance]) -> float:
    """Return the time for which the captions of a sentence are shown."""
    return sum(utterance.caption.ends - utterance.caption.begins for utterance in group)


def decoded(raw: str, *, web: bool) -> str:
    """Return the characters of words in a file; `web`: whether it is WebVTT, whose text has escapes."""
    if web:
        return unescape(raw)
    return CODED_SPACE.sub(lambda match: "\n" if match["line"] else " ", raw)


def written(words: str, *, web: bool) -> str:
    """Return words as they are written in a file; `web`: whether it is WebVTT."""
    if web:
        return escape(words, quote=False)
    # SubRip has no escapes, and a line with this sign could be read as times.
    return words.replace("-->", "→")


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


def in_lines(marked: TaggedText, lines: int, end: str, line_length: int = WIDEST) -> TaggedText:
    """Return a text with line breaks: one line if the source has one and it fits, else two, or as many as the source.

    Lines are balanced; a line ends rather with punctuation, and not with a word such as an article.

    Args:
        marked: the text.
        lines: the number of lines of the source.
        end: the line end.
        line_length: the most characters of a line.
    """
    text = marked.text
    if len(text) <= line_length and lines == 1:
        return marked
    line_count = max(2, lines)
    gaps = [match.span() for match in _GAP.finditer(text) if match.start()]
    starts = [start for start, _ in gaps]
    breaks: list[Edit] = []
    first_gap = line_start = 0  # the first gap that is not used yet, and the start of the line
    for i in range(1, line_count):
        expected = len(text) * i / line_count
        # Each later line needs a gap too, if there are enough.
        usable = len(gaps) - (line_count - 1 - i)
        if usable <= first_gap:
            usable = len(gaps)
        nearest = min(max(first_gap, bisect_left(starts, expected)), usable)
        costs: dict[int, float] = {}
        for number in range(max(first_gap, nearest - _NEARBY_GAPS), min(nearest + _NEARBY_GAPS, usable)):
            start, after = gaps[number]
            widest = start - line_start
            if i == line_count - 1:
                widest = max(widest, len(text) - after)
            costs[number] = (
                abs(start - expected)
                + max(widest - line_length, 0) * 100
                + _cost_of_end(text[max(start - _LONGEST_LEADING, 0) : start])
            )
        if costs:
            best = min(costs, key=costs.__getitem__)
            breaks.append(Edit(*gaps[best], end))
            first_gap, line_start = best + 1, gaps[best][1]
    return marked.spliced(breaks)


def _cost_of_end(line: str) -> float:
    """Return how much less balanced lines may be, rather than to end one here, in characters of the first line."""
    return LEADING_COST / 2 * leads(line) - CLAUSE_GAIN / 2 * line.endswith(tuple(",;:.!?…，、；：。！？"))


def read(name: str, content: bytes, languages: Languages) -> Subtitles:
    """Parse a file of captions.

    Raises:
        UserError: the file is not UTF-8, or invalid.
    """
    return Subtitles(TextFile.of(name, content), web=name.lower().endswith(".vtt"))
