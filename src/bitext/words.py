"""Words for term matching: a term never begins or ends within a word."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

# Scripts that write no spaces: each of their characters is a separate word.
_UNSPACED = (
    "\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
)
_WORD = re.compile(rf"[{_UNSPACED}]|[^\W{_UNSPACED}]+|[^\w\s]")
_UNSPACED_CHARACTER = re.compile(f"[{_UNSPACED}]")


LINKED_WORD = re.compile(r"[^ \t\n]+")
"""A word between which word links are: spaces, tabs and line feeds separate words, and nothing else does. No-break
spaces and invisible characters are parts of words, as in the files that aligners such as fast_align read."""


WITHOUT_SPACES = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]"
)
"""Letters of scripts without spaces between words."""
CODE_SIGNS = frozenset("%{}<>$@#&~_\\|[]")
"""Signs that may be a part of the word that they touch, as in `%sfiles`: such words are not cut."""
_VARIATION = "\ufe0e\ufe0f"
"""Characters that belong to the sign before them: it is shown as text, or as an emoji."""
_NEEDS_ZERO_WIDTH_SPACE = "\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff"
INVISIBLE = re.compile(f"[\u00ad\u2060\ufeff]|(?<![{_NEEDS_ZERO_WIDTH_SPACE}])\u200b(?![{_NEEDS_ZERO_WIDTH_SPACE}])")
"""Characters that only say where a line may end; scripts of South East Asia separate words with one of them."""


class Word(NamedTuple):
    """A word or a sign, with its offsets in a text."""

    text: str
    start: int
    end: int


def linked_words(text: str) -> list[str]:
    """Return the words of a text that word links count.

    >>> len(linked_words("Qui est Tom\N{NO-BREAK SPACE}?"))
    3
    """
    return LINKED_WORD.findall(text)


def count_characters(text: str) -> int:
    r"""Return the number of characters of a text as people count them: extended grapheme clusters (UAX 29).

    >>> count_characters("cafe\N{COMBINING ACUTE ACCENT}"), count_characters("👩\N{ZERO WIDTH JOINER}💻 🇪🇸")
    (4, 3)
    """
    if text.isascii():
        return len(text) - text.count("\r\n")
    import regex  # most texts of a command are never counted

    return sum(1 for _ in regex.finditer(r"\X", text))


def without_invisible(text: str) -> str:
    r"""Return a text without characters that only say where a line may end.

    >>> without_invisible("foot\u00adball")
    'football'
    """
    return text if text.isascii() else INVISIBLE.sub("", text)


def words_in(text: str) -> list[Word]:
    """Return the words and the signs of a text.

    >>> [word.text for word in words_in("Don't go!")]
    ['Don', "'", 't', 'go', '!']
    """
    return [Word(match[0], *match.span()) for match in _WORD.finditer(text)]


def words_without_signs(text: str) -> list[Word]:
    """Return the words of a text, which consist of letters and digits."""
    return [word for word in words_in(text) if word.text.isalnum()]


def folded(words: Iterable[Word]) -> list[str]:
    """Return the texts of words, casefolded."""
    return [word.text.casefold() for word in words]


def normalized_text(text: str) -> str:
    r"""Return a text in the form in which texts are compared: composed Unicode, with single spaces.

    Two texts are the same if their forms are equal: in cleaning, in the exclusion of validation and test pairs, in
    statistics of overlap and in memories.

    >>> normalized_text("  Save \n the\u00a0 file ")
    'Save the file'
    """
    if not text.isascii():  # Texts from JSON may have halves of surrogate pairs.
        text = unicodedata.normalize("NFC", text.encode("utf-8", "replace").decode("utf-8"))
    return " ".join(text.split())


def capitalized(text: str) -> str:
    """Return a text whose first letter is a capital."""
    return text[:1].upper() + text[1:]


def is_letter(character: str) -> bool:
    """Whether a character is a letter or a digit of a script with spaces between words."""
    return character.isalnum() and not WITHOUT_SPACES.match(character)


def unspaced(text: str) -> bool:
    """Whether a text has letters of a script without spaces between words."""
    return bool(_UNSPACED_CHARACTER.search(text))


def spaced(text: str) -> str:
    """Return a text with spaces around each letter of such a script.

    >>> spaced("我爱 Rust")
    ' 我  爱  Rust'
    """
    return text if text.isascii() else _UNSPACED_CHARACTER.sub(r" \g<0> ", text)


def without_edges(text: str, lacks: Callable[[str], bool]) -> tuple[int, int]:
    """Return the span of a text without the signs at its ends that a vocabulary `lacks`, such as bullets and quotes.

    Signs of code that touch the rest belong to it, and all signs belong to a text without letters.

    >>> without_edges("•%d one %d", "•%".__contains__)
    (1, 10)
    """
    start, end = 0, len(text)
    if not any(map(str.isalpha, text)):
        return start, end
    while text[start].isspace() or (_is_sign(text[start]) and lacks(text[start])):
        start += 1
    while text[end - 1].isspace() or (_is_sign(text[end - 1]) and lacks(text[end - 1])):
        end -= 1
    while start and text[start - 1] in CODE_SIGNS:
        start -= 1
    while end < len(text) and text[end] in CODE_SIGNS:
        end += 1
    return start, end


def _is_sign(character: str) -> bool:
    return unicodedata.category(character)[0] in "PS" or character in _VARIATION


def find_sequence(words: Sequence[str], text_words: Sequence[str]) -> list[int]:
    """Return the indices at which a sequence of words begins in another one, without overlaps."""
    starts, index, size = [], 0, len(words)
    while size and index + size <= len(text_words):
        if list(text_words[index : index + size]) == list(words):
            starts.append(index)
            index += size
        else:
            index += 1
    return starts


class SourceWord(NamedTuple):
    """A word of a text that arrives in parts, and whether there is white space before it."""

    text: str
    spaced: bool = True


def stands_alone(character: str) -> bool:
    """Whether a character is a word by itself: one of a script without spaces, or its punctuation."""
    if character.isascii():
        return False
    wide_sign = unicodedata.east_asian_width(character) in "WF" and not character.isalnum()
    return wide_sign or unspaced(character)


class WordReader:
    """Cuts a text that arrives in parts into words. A word is complete when another one or white space follows.

    White space separates words. Of scripts without spaces, each character is a word.
    """

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
    """Return the words of a whole text.

    >>> [word.text for word in words_of("I like 足球")]
    ['I', 'like', '足', '球']
    """
    reader = WordReader()
    return [*reader.read(text), *reader.rest()]


def text_of(words: Iterable[SourceWord]) -> str:
    """Return the text of words."""
    return "".join(" " * word.spaced + word.text for word in words).lstrip()
