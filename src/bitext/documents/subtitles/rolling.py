"""Rolling captions: each repeats the last lines of the caption before it, as YouTube's automatic captions do.

In live captions, the last line may also grow: the next caption repeats it with more words. A line is translated once,
and written wherever it is shown; where only its beginning is shown, a part of the translation is. Its words may have
times, between which its translation is distributed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from bitext.documents.mark_spacing import outer_space
from bitext.documents.splicing import LINE_END
from bitext.documents.subtitles.caption_turns import TAG

FEWEST_ROLLS = 2
"""The smallest number of captions that repeat a line and add words; speakers repeat whole captions, too."""
SHARE = 3
"""In rolling captions, at least one caption of so many repeats a line."""
SENTENCES = 10
"""In captions with punctuation, at least one line of so many has the end of a sentence."""
MOST_LINES = 20
"""The largest number of lines that the next caption repeats; programs show two or three."""
_LINE = re.compile(r"[^\r\n]+")
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

    Args:
        text: the text of the file.
        captions: the range of each caption's text.
        decode: turns the words of the file into characters.
    """
    lines: list[RollingLine] = []
    shown: list[RollingLine] = []
    rolls = repeats = count = 0
    for number, (start, end) in enumerate(captions):
        count += 1
        places: list[tuple[int, int]] = []
        texts: list[str] = []
        for match in _LINE.finditer(text, start, end):
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
    """Yield a text whose tags stay in order, with other words between them.

    Args:
        raw: the text in the file.
        texts: returns new words for each text between tags, given their lengths.
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
