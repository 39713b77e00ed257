"""Cues of subtitles from words with times, as they come: when each is shown, and where its lines end.

A cue has at most two lines, and is shown for one to seven seconds. It ends where a viewer expects it: at the end of a
sentence, before a pause, or at a comma if the next word has no room. Cues that have been returned never change, so that
they can be written while somebody speaks. The words of a file of subtitles can be played with the times that they have.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import NamedTuple

from bitext.documents.spans import TextFile
from bitext.documents.subtitles.cues import (
    CLAUSE_GAIN,
    LEADING_COST,
    CueLimits,
    captions,
    decoded,
    ends_sentence,
    leads,
    plain,
    rolling_lines,
    turns,
    written,
)
from bitext.words import unspaced

SHORTEST, LONGEST = 1.0, 7.0
"""The fewest and the most seconds for which a cue is shown."""
PAUSE = 2.0
"""The seconds without a word after which a cue ends."""
MOST_DELAY = 7.0
"""The most seconds by which a cue may begin later than its first word. If people speak faster than others read for so
long, cues are shown for less time than it takes to read them."""
_TOKEN = re.compile(r"(?<!\s)(\s*)(\S+)")
_CLAUSE_END = re.compile(r"[,;:.!?…，、；：。！？][\"'”’»)\]」』]*\Z")
_ABBREVIATION = re.compile(r"[^\W\d_]{1,3}\.")
"""A short word with a full stop, such as *Mr.*, which may be an abbreviation."""
_NEVER_FIRST = frozenset("ーぁぃぅぇぉっゃゅょゎァィゥェォッャュョヮヵヶ々ะาำๅๆฯະາຳ")
"""Letters of Japanese, Thai and Lao that continue a syllable, and never begin a line."""
_NEVER_LAST = frozenset("เแโใไເແໂໃໄ")
"""Vowels of Thai and Lao that are written before their consonant."""


class Cue(NamedTuple):
    """A text that is shown for some time."""

    begins: float
    """The time in seconds at which it appears."""
    ends: float
    """The time at which it disappears, at most that at which the next cue begins."""
    lines: tuple[str, ...]
    """Its lines, one or two."""


class TimedText(NamedTuple):
    """A text, and the time in seconds at which it was written or heard."""

    seconds: float
    text: str


class _Word(NamedTuple):
    seconds: float
    text: str
    space: str
    """The white space before it."""
    width: int
    """Its number of characters, as `CueLimits` counts them."""

    @classmethod
    def of(cls, seconds: float, text: str, space: str) -> _Word:
        return cls(seconds, text, space, _width(text))


class CueMaker:
    """Makes cues from a text that grows."""

    def __init__(self, limits: CueLimits | None = None) -> None:
        self.limits = limits or CueLimits()
        self._words: list[_Word] = []
        """The words of the next cue."""
        self._end = 0.0
        """The time at which the last cue ends."""
        self._time = 0.0
        self._space = ""
        """The white space at the end of the text so far."""

    def add(self, seconds: float, text: str) -> list[Cue]:
        """Continue the text, and return the cues that this completes.

        Args:
            seconds: the time of the new text; an earlier one than that of the text before counts as the same.
            text: the new text, with the white space before it. A line feed ends a sentence.
        """
        self._time = seconds = max(seconds, self._time)
        text = self._space + text
        self._space = text[len(text.rstrip()) :]
        result: list[Cue] = []
        for space, token in _TOKEN.findall(text):
            for i, part in enumerate(_parts(token)):
                result += self._continue(_Word.of(seconds, part, "" if i else space))
        return result

    def advance(self, seconds: float) -> list[Cue]:
        """Return the cue that is complete because there has been no text until this time, if one is."""
        self._time = max(seconds, self._time)
        if self._words and self._is_late(self._time) and self._ideal_end(self._words) <= self._time + MOST_DELAY:
            return [self._close(len(self._words), self._time)]
        return []

    def finish(self) -> list[Cue]:
        """End the text, and return its last cue, if there is one."""
        return [self._close(len(self._words), float("inf"))] if self._words else []

    def _continue(self, word: _Word) -> list[Cue]:
        result: list[Cue] = []
        if self._words and not word.space:
            last = self._words[-1]
            first, *further = _parts(last.text + word.text)
            if not further:  # the end of the word before, such as a full stop after an ideograph
                self._words.pop()
                word = _Word.of(last.seconds, first, last.space)
        while self._words and (count := self._complete(word)):
            after = self._words[count].seconds if count < len(self._words) else word.seconds
            result.append(self._close(count, after))
        self._words.append(word)
        return result

    def _complete(self, word: _Word) -> int:
        """Return the number of words of a cue that is complete before this word; 0 if the word belongs to it."""
        words, last = self._words, self._words[-1].text
        width = _total_width(words)
        readable = width >= self.limits.reading_speed * SHORTEST
        ends = "\n" in word.space or (ends_sentence(last) and not _ABBREVIATION.fullmatch(last))
        # Cues that come late are full ones, which are read sooner than many short ones.
        in_time = self._begin(words) - words[0].seconds < MOST_DELAY / 2
        if self._is_late(word.seconds) or (ends and readable and in_time):
            return len(words)
        if self._fits([*words, word]):
            return 0
        # The last comma in the second half is a better end than the last word.
        for count in range(len(words), 0, -1):
            if 2 * _total_width(words[:count]) < width:
                break
            if _CLAUSE_END.search(words[count - 1].text):
                return count
        return len(words)

    def _is_late(self, seconds: float) -> bool:
        """Whether a word of this time comes too late for the cue."""
        return seconds - self._words[-1].seconds >= PAUSE or seconds > self._begin(self._words) + LONGEST

    def _begin(self, words: Sequence[_Word]) -> float:
        return round(max(words[0].seconds, self._end), 3)

    def _ideal_end(self, words: Sequence[_Word]) -> float:
        """Return the end of a cue that is shown until its last word and as long as it takes to read it."""
        begins = self._begin(words)
        seconds = max(_total_width(words) / self.limits.reading_speed, words[-1].seconds - begins, SHORTEST)
        return round(begins + min(seconds, LONGEST), 3)

    def _close(self, count: int, after: float) -> Cue:
        """Return the cue of the first words; `after`: the time of the next word."""
        words, self._words = self._words[:count], self._words[count:]
        begins = self._begin(words)
        self._end = round(max(begins + SHORTEST, min(self._ideal_end(words), after + MOST_DELAY)), 3)
        return Cue(begins, self._end, self._lines(words))

    def _fits(self, words: Sequence[_Word]) -> bool:
        if len(words) > 1 and _total_width(words) > self.limits.reading_speed * LONGEST:
            return False
        first = self._first_line(words)
        return self._is_line(words[:first]) and self._is_line(words[first:])

    def _is_line(self, words: Sequence[_Word]) -> bool:
        return len(words) <= 1 or _total_width(words) <= self.limits.line_length

    def _lines(self, words: Sequence[_Word]) -> tuple[str, ...]:
        first = self._first_line(words)
        return tuple(_joined(line) for line in (words[:first], words[first:]) if line)

    def _first_line(self, words: Sequence[_Word]) -> int:
        """Return the number of words of the first line: all if there is room, else so many that both are balanced.

        Lines may be less balanced so that the first ends with punctuation, or does not end with a word such as an
        article.
        """
        if self._is_line(words):
            return len(words)
        best, least = len(words), float("inf")
        for count in range(1, len(words)):
            first, second = _total_width(words[:count]), _total_width(words[count:])
            last = words[count - 1].text
            cost: float = (
                abs(first - second) - CLAUSE_GAIN * bool(_CLAUSE_END.search(last)) + LEADING_COST * leads(last)
            )
            if not (self._is_line(words[:count]) and self._is_line(words[count:])):
                cost += 1000 * max(first, second)
            if cost < least:
                best, least = count, cost
        return best


def _joined(words: Sequence[_Word]) -> str:
    text = ""
    for word in words:
        text += f" {word.text}" if word.space and text else word.text
    return text


def _total_width(words: Sequence[_Word]) -> int:
    """Return the number of characters of words in one line."""
    spaces = [word for word in words[1:] if word.space]
    return sum(word.width for word in words) + len(spaces)


def _width(text: str) -> int:
    """Return the number of characters of a text; wide ones count as two, and marks on others do not count."""
    if text.isascii():
        return len(text)
    width = 0
    for character in text:
        if unicodedata.category(character) not in ("Mn", "Me", "Cf"):
            width += 2 if unicodedata.east_asian_width(character) in "WF" else 1
    return width


def _parts(token: str) -> list[str]:
    """Split a text without spaces where a line may end: before letters of scripts without spaces, and after them.

    >>> _parts("我爱「Rust」。"), _parts("hello,")
    (['我', '爱', '「Rust」。'], ['hello,'])
    """
    if token.isascii():
        return [token]
    parts, start = list[str](), 0
    for i, (before, character) in enumerate(pairwise(token), 1):
        if _may_end(before) and _may_begin(character) and (_is_unspaced(before) or unspaced(character)):
            parts.append(token[start:i])
            start = i
    return [*parts, token[start:]]


def _is_unspaced(character: str) -> bool:
    """Whether a letter, or a sign such as an ideographic full stop, is of a script without spaces."""
    return unspaced(character) or (not character.isalnum() and unicodedata.east_asian_width(character) in "WF")


def _may_end(character: str) -> bool:
    """Whether a line may end after a character."""
    is_opening = unicodedata.category(character) in ("Ps", "Pi")
    joins = unicodedata.combining(character) == 9  # a virama, which joins two consonants of Khmer or Burmese
    return not is_opening and not joins and character not in _NEVER_LAST


def _may_begin(character: str) -> bool:
    """Whether a line may begin with a character."""
    category = unicodedata.category(character)
    return (category[0] in "LN" or category in ("Ps", "Pi")) and character not in _NEVER_FIRST


def header(*, web: bool) -> str:
    """Return the beginning of a file of subtitles; `web`: whether it is WebVTT and not SubRip."""
    return "WEBVTT\n\n" if web else ""


def cue_text(cue: Cue, number: int, *, web: bool) -> str:
    """Return a cue as it is written in a file.

    Args:
        cue: the cue.
        number: its number, counted from 1.
        web: whether the file is WebVTT and not SubRip.
    """
    times = f"{_clock(cue.begins, web=web)} --> {_clock(cue.ends, web=web)}"
    lines = "\n".join(written(line, web=web) for line in cue.lines)
    return f"{number}\n{times}\n{lines}\n\n"


def _clock(seconds: float, *, web: bool) -> str:
    whole, milliseconds = divmod(round(seconds * 1000), 1000)
    return f"{whole // 3600:02}:{whole // 60 % 60:02}:{whole % 60:02}{'.' if web else ','}{milliseconds:03}"


def timed_words(name: str, content: bytes) -> Iterator[TimedText]:
    """Yield the words that people say in a file of subtitles, each with the time at which it has been said.

    The words of a caption are spread over its time by their lengths. A line that several captions show is said once;
    descriptions of sounds, and the signs of speakers and songs, are left out.

    Args:
        name: the name of the file, which ends with `.vtt` or `.srt`.
        content: its bytes.

    Raises:
        UserError: the file is not UTF-8, or invalid.
    """
    file, web = TextFile.of(name, content), name.lower().endswith(".vtt")
    shown, decode = list(captions(file, web=web)), partial(decoded, web=web)
    texts: list[tuple[float, float, str]] = []
    places = [(caption.start, caption.end) for caption in shown]
    for line in rolling_lines(file.text, places, decode):
        texts.append((shown[line.caption].begins, shown[line.whole].ends, _spoken(line.text)))
    if not texts:
        for caption in shown:
            spoken = plain(_spoken(file.text[caption.start : caption.end]), decode)
            texts.append((caption.begins, caption.ends, spoken))
    time = 0.0
    for begins, ends, text in texts:
        begins = max(begins, time)
        for match in re.finditer(r"\S+", text):
            time = max(time, begins + max(ends - begins, 0) * match.end() / len(text))
            yield TimedText(round(time, 3), match[0])


def _spoken(raw: str) -> str:
    """Return a caption without descriptions of sounds, and without the signs of speakers and songs."""
    parts: list[str] = []
    for turn in turns(raw):
        position = turn.start
        for start, end in turn.signs if turn.kind != "sound" else ((turn.start, turn.end),):
            parts.append(raw[position:start])
            position = end
        parts.append(raw[position : turn.end])
    return " ".join(parts)
