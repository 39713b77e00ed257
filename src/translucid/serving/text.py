"""A text of any shape: its sentences are translated, its white space and line breaks stay as they are."""

from __future__ import annotations

import re
from dataclasses import dataclass

from translucid.data.sentences import split_sentences

_BREAKS = re.compile(r"(\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029])")


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
        between = [""]
        for part in _BREAKS.split(text):
            if not part.strip():
                between[-1] += part
                continue
            start = len(part) - len(part.lstrip())
            between[-1] += part[:start]
            for sentence, after in split_sentences(part[start:], language):
                if sentence:
                    sentences.append(sentence)
                    between.append(after)
                else:
                    between[-1] += after
        return cls(sentences, between)

    def fill(self, translations: list[str]) -> str:
        """Put translations into the places of the sentences."""
        parts = [self.between[0]]
        for translation, after in zip(translations, self.between[1:], strict=True):
            parts += [translation, after]
        return "".join(parts)
