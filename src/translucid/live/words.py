"""The words and the sentence ends of a text that arrives in parts.

White space separates words. Of scripts without spaces, each character is a word. Whether a sentence ends is decided by
the words read so far, so it does not depend on the parts in which they arrive.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from bitext.words import unspaced
from translucid.data.sentences import split_sentences
from translucid.data.tokenizing.pieces import SPACE

_NEXT = " A"
"""A space and a word that could begin the next sentence."""


class SourceWord(NamedTuple):
    """A word, and whether there is white space before it."""

    text: str
    spaced: bool = True


def stands_alone(character: str) -> bool:
    """Whether a character is a word by itself: one of a script without spaces, or its punctuation."""
    if character.isascii():
        return False
    wide_sign = unicodedata.east_asian_width(character) in "WF" and not character.isalnum()
    return wide_sign or unspaced(character)


class WordReader:
    """Cuts a text that arrives in parts into words. A word is complete when another one or white space follows."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self._begun = ""
        self._spaced = True

    def read(self, text: str) -> Iterator[SourceWord]:
        """Yield the words that the next part of the text completes."""
        for character in text:
            if character.isspace() or stands_alone(character):
                yield from self.rest()
            if character.isspace():
                self._spaced = True
            elif stands_alone(character):
                yield self._taken(character)
            else:
                self._begun += character

    def rest(self) -> Iterator[SourceWord]:
        """Yield the word that has begun, if there is one: nothing more belongs to it."""
        if self._begun:
            word, self._begun = self._begun, ""
            yield self._taken(word)

    def _taken(self, text: str) -> SourceWord:
        spaced, self._spaced = self._spaced, False
        return SourceWord(text, spaced)


def words_of(text: str) -> list[SourceWord]:
    """Return the words of a whole text."""
    reader = WordReader()
    return [*reader.read(text), *reader.rest()]


def text_of(words: Iterable[SourceWord]) -> str:
    """Return the text of words."""
    return "".join(" " * word.spaced + word.text for word in words).lstrip()


def ends_sentence(text: str, language: str | None) -> bool:
    """Return whether a sentence may end after a text: the next word would begin another one.

    >>> ends_sentence("I met Mr.", "en"), ends_sentence("It costs 3.5", "en"), ends_sentence("I like it.", "en")
    (False, False, True)
    """
    *_, (last, _) = split_sentences(text + _NEXT, language)
    return last == _NEXT.strip()


def words_of_pieces(pieces: Sequence[str]) -> list[int]:
    """Return for each piece of a text the word in which it ends, from 0.

    >>> words_of_pieces(["▁I", "▁lik", "e", "▁我爱"])
    [0, 1, 1, 3]
    """
    numbers, count, within = [], 0, False
    for piece in pieces:
        for character in piece.replace(SPACE, " "):
            alone = stands_alone(character)
            if not character.isspace() and (alone or not within):
                count += 1
            within = not (alone or character.isspace())
        numbers.append(max(count - 1, 0))
    return numbers
