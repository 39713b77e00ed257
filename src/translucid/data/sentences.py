"""Language identification and sentence segmentation.

`sentencex` splits a line into sentences, which can then be translated one by one. `py3langid`, with the model that it
contains, identifies the language of a text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import sentencex

from bitext.languages import short_code

WINDOW = 5000
"""The number of characters that sentencex splits at a time. Its time grows with their square: 100,000 ideographs with
as many full stops take four seconds, ten times as many take minutes."""

_END = re.compile(r"[.!?;)]")
_NEXT_WORD = re.compile(r"\s\S")
_BREAK = re.compile(r"[\n\r\v\f\x1c-\x1e]")


def split_sentences(text: str, language: str | None = None) -> list[tuple[str, str]]:
    """Return the sentences of a text, each with the white space that follows it; joined, they are the text.

    Args:
        text: any text. White space at its beginning belongs to the first sentence; a blank text is one empty sentence.
        language: a code such as `en` or `pt-BR`, whose abbreviations are respected; by default, and if the language is
            unknown, those of English.
    """
    # Most lines are one ASCII sentence; this test saves the 10 microseconds of sentencex.
    boundaries = []
    if not text.isascii() or _may_have_two_sentences(text):
        boundaries = _boundaries(text, language)
    sentences, start = [], 0
    for end in [*boundaries, len(text)]:
        sentence = text[start:end].rstrip()
        sentences.append((sentence, text[start + len(sentence) : end]))
        start = end
    return sentences


def _may_have_two_sentences(text: str) -> bool:
    """Whether an ASCII text may have two sentences: it has a line break, or a word after the end of a sentence."""
    if _BREAK.search(text):
        return True
    end = _END.search(text)
    return end is not None and _NEXT_WORD.search(text, end.end()) is not None


def _boundaries(text: str, language: str | None) -> list[int]:
    """Return the offsets at which the sentences after the first begin."""
    # sentencex counts bytes, and panics at some white space of more than one byte; it does not take lone surrogates.
    # Replacing each such character by one other character keeps the offsets.
    ascii_spaced = re.sub(r"[^\S\n]", " ", text).encode("utf-8", "replace").decode("utf-8")
    code = short_code(language or "en")
    boundaries, end = [], 0
    text_start = len(ascii_spaced) - len(ascii_spaced.lstrip())
    for piece in _segments(code, ascii_spaced):
        end += len(piece)
        if end == len(ascii_spaced) or ascii_spaced[end].isspace() or end <= text_start:
            continue
        # "Node.JS", "file.TXT": only the full stops of other scripts end a sentence without a space after them.
        if ascii_spaced[end - 1].isspace() or not ascii_spaced[end - 1].isascii():
            boundaries.append(end)
    return boundaries


def _segments(code: str, text: str) -> Iterator[str]:
    """Yield the sentences of a text, window by window; a window begins with the last sentence of the one before it.

    That sentence may have been cut off by the end of the window.
    """
    start = 0
    while start < len(text):
        sentences = list(sentencex.segment(code, text[start : start + WINDOW]))
        if start + WINDOW < len(text) and len(sentences) > 1:
            sentences.pop()
        start += sum(map(len, sentences))
        yield from sentences


def language_probabilities(text: str) -> dict[str, float]:
    """Return the probability of each of 140 languages, by ISO 639 code; the first call takes a second."""
    identifier = _identifier()
    probabilities: dict[str, float] = {}
    for code, probability in zip(identifier.nb_classes, identifier._decide(text).tolist(), strict=True):
        # Some codes are listed twice; the first entry has their whole probability.
        probabilities.setdefault(code, probability)
    return probabilities


@cache
def _identifier() -> Any:
    from py3langid.langid import _load_identifier

    return _load_identifier(norm_probs=True)
