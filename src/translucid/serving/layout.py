"""A text split into sentences, which keeps its white space and line breaks."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from translucid.data.sentences import split_sentences

LONGEST = 2000
"""The most characters of a sentence; a longer one is cut, between words if it has any."""
_LINE = re.compile(r"[^\n\r\v\f\x1c-\x1e\x85\u2028\u2029]+")


@dataclass(frozen=True)
class Layout:
    """A text split into sentences; its white space and line breaks stay as they are."""

    sentences: list[str]
    """The sentences, which are translated."""
    between: list[str]
    """White space before the first sentence, between two, and after the last: one more than sentences."""

    @classmethod
    def of(cls, text: str, language: str, stays_whole: Callable[[str], bool] = lambda part: False) -> Layout:
        """Split a text into sentences.

        Args:
            text: the text.
            language: its code.
            stays_whole: whether the text, or a line of it, is not split, because a translation memory has all of it.
        """
        whole = text.strip()
        if whole and stays_whole(whole):
            start = text.index(whole)
            return cls([whole], [text[:start], text[start + len(whole) :]])
        sentences: list[str] = []
        between: list[str] = []
        gap = ""  # the white space since the last sentence
        at = 0
        for line in _LINE.finditer(text):
            start = line.start() + len(line[0]) - len(line[0].lstrip())
            gap += text[at:start]
            at = line.end()
            content = text[start:at].rstrip()
            if content and stays_whole(content):
                parts = [(content, text[start + len(content) : at])]
            else:
                parts = split_sentences(text[start:at], language)
            for sentence, after in _cut(parts):
                if sentence:
                    sentences.append(sentence)
                    between.append(gap)
                    gap = ""
                gap += after
        return cls(sentences, [*between, gap + text[at:]])

    def fill(self, translations: Sequence[str]) -> str:
        """Return the text with translations in place of the sentences."""
        parts = [self.between[0]]
        for translation, after in zip(translations, self.between[1:], strict=True):
            parts += [translation, after]
        return "".join(parts)


def _cut(sentences: list[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Cut sentences that are too long for a model, at a space in the second half of the limit if there is one."""
    for sentence, after in sentences:
        at = 0
        while len(sentence) - at > LONGEST:
            space = sentence.rfind(" ", at + LONGEST // 2, at + LONGEST)
            if space < 0:
                yield sentence[at : at + LONGEST], ""
                at += LONGEST
            else:
                yield sentence[at:space], " "
                at = space + 1
        yield sentence[at:], after
