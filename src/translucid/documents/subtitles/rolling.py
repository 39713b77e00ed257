"""Rolling captions: each repeats the last lines of the caption before it, as YouTube's automatic captions do.

A line is translated once, and written wherever it is shown. Its words may have times, between which its translation is
distributed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from translucid.documents.mark_spacing import outer_space
from translucid.documents.splicing import LINE_END
from translucid.documents.subtitles.caption_turns import TAG

FEWEST_ROLLS = 2
"""The smallest number of captions that repeat a line and add another; speakers repeat whole captions, too."""
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


@dataclass
class RollingLine:
    """A line of text, which several captions show."""

    caption: int
    """The number of the first caption that shows it."""
    text: str
    """The text without tags."""
    places: list[tuple[int, int]] = field(default_factory=list)
    """The ranges of the file in which it is."""


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
        rolls += 0 < overlap < len(texts)
        shown = shown[len(shown) - overlap :]
        for words in texts[overlap:]:
            shown.append(RollingLine(number, words))
            lines.append(shown[-1])
        for line, place in zip(shown, places, strict=True):
            line.places.append(place)
    return lines if rolls >= FEWEST_ROLLS and SHARE * repeats >= count else []


def have_sentences(lines: Sequence[RollingLine]) -> bool:
    """Whether lines have punctuation, so that those of a sentence can be joined; automatic captions have none."""
    return SENTENCES * sum(_SENTENCE_END.search(line.text) is not None for line in lines) >= len(lines)


def _overlap(before: Sequence[str], after: Sequence[str]) -> int:
    """Return the number of lines at the end of a caption that the next one repeats at its beginning."""
    for size in range(min(len(before), len(after), MOST_LINES), 0, -1):
        if before[len(before) - size :] == after[:size]:
            return size
    return 0


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
