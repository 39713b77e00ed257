"""Language identification and sentence segmentation.

A line of several sentences is split so that each can be translated by itself, by the rules of `sentencex`. Languages
are told apart by py3langid, with the model that comes with it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import sentencex

from translucid.data.languages import short_code

WINDOW = 5000
"""Characters that are looked at together, as sentencex takes time that grows with their square: of 100,000 ideographs
with as many full stops four seconds, of ten times that minutes."""

_END = re.compile(r"[.!?;)]")
_NEXT_WORD = re.compile(r"\s\S")
_BREAK = re.compile(r"[\n\r\v\f\x1c-\x1e]")


def split_sentences(text: str, language: str | None = None) -> list[tuple[str, str]]:
    """Return the sentences of a text, each with the white space that follows it; joined, they are the text again.

    Args:
        text: any text. White space at its beginning stays with the first sentence; a blank text is one empty sentence.
        language: a code such as `en` or `pt-BR`, for its abbreviations; English ones if it is unknown or not given.
    """
    sentences, start = [], 0
    if text.isascii() and not _maybe_two(text):  # most lines: no need to ask for 10 microseconds
        return [(sentence := text.rstrip(), text[len(sentence) :])]
    for end in [*_boundaries(text, language), len(text)]:
        sentence = text[start:end].rstrip()
        sentences.append((sentence, text[start + len(sentence) : end]))
        start = end
    return sentences


def _maybe_two(text: str) -> bool:
    """Whether an ASCII text may have two sentences: a break, or a word after one that may end a sentence."""
    end = _END.search(text)
    return bool((end and _NEXT_WORD.search(text, end.end())) or _BREAK.search(text))


def _boundaries(text: str, language: str | None) -> list[int]:
    """Return where sentences after the first begin."""
    # sentencex counts bytes and panics at some white space that takes more than one; half surrogates it can't take.
    # Exchanging one character for one keeps the places.
    plain = re.sub(r"[^\S\n]", " ", text).encode("utf-8", "replace").decode("utf-8")
    code = short_code(language or "en")
    boundaries, end = [], 0
    first = len(plain) - len(plain.lstrip())
    for piece in _segments(code, plain):
        end += len(piece)
        if end == len(plain) or plain[end].isspace() or end <= first:
            continue
        # "Node.JS", "file.TXT": only the full stops of other scripts end a sentence without a space after them.
        if plain[end - 1].isspace() or not plain[end - 1].isascii():
            boundaries.append(end)
    return boundaries


def _segments(code: str, text: str) -> Iterator[str]:
    """Yield what sentencex makes of a text, window by window; the next one begins where the last sentence begins."""
    start = 0
    while start < len(text):
        found = list(sentencex.segment(code, text[start : start + WINDOW]))
        if start + WINDOW < len(text) and len(found) > 1:
            found.pop()
        start += sum(map(len, found))
        yield from found


def language_probabilities(text: str) -> dict[str, float]:
    """Return how likely a text is in each of 140 languages, by ISO 639 code; the first call takes a second."""
    identifier = _identifier()
    found: dict[str, float] = {}
    for code, probability in zip(identifier.nb_classes, identifier._decide(text).tolist(), strict=True):
        found.setdefault(code, probability)  # of a code that stands there twice, the first has all
    return found


@cache
def _identifier() -> Any:
    from py3langid.langid import _load_identifier

    return _load_identifier(norm_probs=True)
