"""A text of any shape: its sentences are translated, its white space and line breaks stay as they are."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from translucid.data.sentences import split_sentences

_LINE = re.compile(r"[^\n\r\v\f\x1c-\x1e\x85\u2028\u2029]+")
LONGEST = 2000
"""Characters of what is translated as one sentence, at most; a longer one is cut between words where it has some."""


@dataclass(frozen=True)
class Layout:
    """What is to be translated, and what stands around it."""

    sentences: list[str]
    between: list[str]
    """White space before the first sentence, between two, and after the last: one more than sentences."""

    @classmethod
    def of(cls, text: str, language: str) -> Layout:
        """Take a text apart."""
        sentences: list[str] = []
        between: list[str] = []
        gap: list[str] = []  # the white space since the last sentence, in parts
        at = 0
        for line in _LINE.finditer(text):
            start = line.start() + len(line[0]) - len(line[0].lstrip())
            gap.append(text[at:start])
            at = line.end()
            for sentence, after in _cut(split_sentences(text[start:at], language)):
                if sentence:
                    sentences.append(sentence)
                    between.append("".join(gap))
                    gap.clear()
                gap.append(after)
        gap.append(text[at:])
        return cls(sentences, [*between, "".join(gap)])

    def fill(self, translations: list[str]) -> str:
        """Put translations into the places of the sentences."""
        parts = [self.between[0]]
        for translation, after in zip(translations, self.between[1:], strict=True):
            parts += [translation, after]
        return "".join(parts)


def _cut(sentences: list[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Cut what is too long to be a sentence."""
    for sentence, after in sentences:
        at = 0
        while len(sentence) - at > LONGEST:
            space = sentence.rfind(" ", at + LONGEST // 2, at + LONGEST)
            end = at + LONGEST if space < 0 else space
            yield sentence[at:end], "" if space < 0 else " "
            at = end + (space >= 0)
        yield sentence[at:], after
