"""A text split into sentences, which keeps its white space and line breaks."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from translucid.data.sentences import split_sentences

LONGEST = 2000
"""The maximum number of characters in a sentence; a longer one is cut, between words if it has any."""
_LINE = re.compile(r"[^\n\r\v\f\x1c-\x1e\x85\u2028\u2029]+")


@dataclass(frozen=True)
class Layout:
    """A text split into sentences; its white space and line breaks stay as they are."""

    sentences: list[str]
    """The sentences, which are translated."""
    between: list[str]
    """White space before the first sentence, between two, and after the last: one more than sentences."""

    @classmethod
    def of(cls, text: str, language: str, is_in_memory: Callable[[str], bool] = lambda part: False) -> Layout:
        """Split a text into sentences.

        Args:
            text: the text.
            language: its code.
            is_in_memory: returns whether a translation memory has the whole text or line, which is then not split.
        """
        stripped = text.strip()
        if stripped and is_in_memory(stripped):
            start = text.index(stripped)
            return cls([stripped], [text[:start], text[start + len(stripped) :]])
        sentences: list[str] = []
        between: list[str] = []
        gap = ""  # the white space since the last sentence
        position = 0
        for line in _LINE.finditer(text):
            start = line.start() + len(line[0]) - len(line[0].lstrip())
            gap += text[position:start]
            position = line.end()
            content = text[start:position].rstrip()
            if content and is_in_memory(content):
                parts = [(content, text[start + len(content) : position])]
            else:
                parts = split_sentences(text[start:position], language)
            for sentence, after in _cut(parts):
                if sentence:
                    sentences.append(sentence)
                    between.append(gap)
                    gap = ""
                gap += after
        return cls(sentences, [*between, gap + text[position:]])

    def fill(self, translations: Sequence[str]) -> str:
        """Return the text with translations in place of the sentences."""
        parts = [self.between[0]]
        for translation, space in zip(translations, self.between[1:], strict=True):
            parts += [translation, space]
        return "".join(parts)


def _cut(sentences: list[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Cut sentences that are too long for a model, at a space in the second half of the limit if there is one."""
    for sentence, after in sentences:
        start = 0
        while len(sentence) - start > LONGEST:
            space = sentence.rfind(" ", start + LONGEST // 2, start + LONGEST)
            if space < 0:
                yield sentence[start : start + LONGEST], ""
                start += LONGEST
            else:
                yield sentence[start:space], " "
                start = space + 1
        yield sentence[start:], after
