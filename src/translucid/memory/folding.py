"""Texts made comparable: words without case, with one sign for every number and one for whatever must stay as it is."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import cached_property, lru_cache
from hashlib import blake2b
from itertools import pairwise

from translucid.data.non_translatable import fixed_parts

FIXED = "\0"
"""Stands for a placeholder, a tag or an address; no entry of a memory has it."""
UNWRITABLE = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that no XML document may have, not even as a number, and so no .tmx: NUL, most control characters."""
_SIGN = r"[-−+±]"
# A sign belongs to a number only where nothing stands before it that it could join to that: `2010-2020` has none.
_SIGNED = rf"(?:(?<![\w.,)\]%]){_SIGN}(?=\d))"
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_SIGNED_NUMBER = re.compile(rf"{_SIGNED}?{_NUMBER.pattern}")
_SINGLE = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"  # Thai, Lao, Burmese, Khmer
    "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # Japanese, Chinese
)
_TOKEN = re.compile(rf"[{_SINGLE}]|{_SIGNED}?[^\W{_SINGLE}](?:[^\s{_SINGLE}]*[^\W{_SINGLE}])?|[^\s\w]")
"""A word, with what stands within it and the sign of a number, a sign of punctuation, or a character of a script
without spaces."""
_MEANS = frozenset("%‰°")
"""Signs that change what a number says, besides those of mathematics and currencies."""
PAIRS = 1 << 17
"""Some pairs have the same number: there are few enough that lists of them are long enough to be kept well."""
_EDGE = 1
_MIXING = 0x9E3779B97F4A7C15
_CHARACTERS = 0x110000 - 0x1000
"""Different words have one of so many characters each; where two share one, a percentage is off by a little."""


@dataclass(frozen=True)
class Token:
    """A word or a sign of a text."""

    text: str
    """As it stands there."""
    folded: str
    """As it is compared."""

    @property
    def is_word(self) -> bool:
        """Whether it has a letter, a vowel sign or a number, or is a placeholder."""
        return self.folded == FIXED or _has_letter(self.folded)

    @property
    def cased(self) -> str:
        """The same, but with the case that it has."""
        return FIXED if self.folded == FIXED else _SIGNED_NUMBER.sub("0", self.text)

    @property
    def variables(self) -> list[str]:
        """What in it may differ while the words are the same: its numbers, or all of a placeholder."""
        return [self.text] if self.folded == FIXED else _SIGNED_NUMBER.findall(self.text)

    @property
    def has_meaning(self) -> bool:
        """Whether it is a sign that changes what a number says, such as `<` or `%`."""
        return self.text in _MEANS or (len(self.text) == 1 and unicodedata.category(self.text) in ("Sm", "Sc"))


@dataclass(frozen=True)
class Folded:
    """A text, as far as it is compared with others."""

    text: str

    @cached_property
    def every(self) -> list[Token]:
        """Its words and signs."""
        found, at = list[Token](), 0
        for part in fixed_parts(self.text):
            place = self.text.index(part, at)
            found += _tokens(self.text[at:place])
            found.append(Token(part, FIXED))
            at = place + len(part)
        return found + _tokens(self.text[at:])

    @cached_property
    def tokens(self) -> list[Token]:
        """What is compared: the words; of a text that has none, the signs."""
        return [token for token in self.every if token.is_word] or self.every

    @cached_property
    def key(self) -> str:
        """A character for each of the tokens, so that a distance of strings is one of words."""
        return "".join(_character(token.folded) for token in self.tokens)

    @cached_property
    def pairs(self) -> set[int]:
        """A number below `PAIRS` for each pair of neighbours, the beginning and the end being neighbours too."""
        hashes = [_EDGE, *(_hashed(token.folded) for token in self.tokens), _EDGE]
        return {(31 * one + other) * _MIXING % (1 << 64) * PAIRS >> 64 for one, other in pairwise(hashes)}


def variable_spans(text: str) -> list[tuple[str, int]]:
    """Return numbers, placeholders, tags and addresses of a text, each with the place of its first character.

    >>> variable_spans("Page 3 of {count}")
    [('3', 5), ('{count}', 10)]
    """
    found, at = list[tuple[str, int]](), 0
    for part in (*fixed_parts(text), None):
        place = len(text) if part is None else text.index(part, at)
        found += ((match[0], match.start()) for match in _SIGNED_NUMBER.finditer(text, at, place))
        if part is not None:
            found.append((part, place))
            at = place + len(part)
    return found


def found_in(text: str, *, whole_words: bool = False) -> re.Pattern[str] | None:
    r"""Return a pattern for a text within others as `spaced` leaves them, whatever its case; None for a blank one.

    >>> found_in("FILE", whole_words=True).findall("the file, a profile")
    ['file']
    """
    wanted = spaced(text)
    if not wanted:
        return None
    before, after = "", ""
    if whole_words:  # a sign at an end of the text is where no word goes on
        before, after = (r"(?<!\w)" if wanted[0].isalnum() else ""), (r"(?!\w)" if wanted[-1].isalnum() else "")
    return re.compile(before + re.escape(wanted) + after, re.IGNORECASE)


def _tokens(text: str) -> list[Token]:
    return [Token(found, _folded(found)) for found in _TOKEN.findall(text)]


def is_number(variable: str) -> bool:
    """Whether it is a number, not a placeholder, a tag or an address."""
    return bool(_SIGNED_NUMBER.fullmatch(variable))


def sign_and_digits(number: str) -> tuple[str, str]:
    """Return the sign of a number, `-` if it is a minus of any kind, and the rest of it."""
    sign = number[0] if number[0] in "-−+±" else ""
    return sign.replace("−", "-"), number[len(sign) :]


@lru_cache(1 << 16)
def _folded(word: str) -> str:
    return _SIGNED_NUMBER.sub("0", unicodedata.normalize("NFC", word.casefold()))


@lru_cache(1 << 16)
def _has_letter(word: str) -> bool:
    return any(unicodedata.category(character)[0] in "LMN" for character in word)


@lru_cache(1 << 16)
def _hashed(word: str) -> int:
    """Return 64 bits."""
    return int.from_bytes(blake2b(word.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


@lru_cache(1 << 16)
def _character(word: str) -> str:
    """Return one of the characters that no surrogate is."""
    number = _hashed(word) % _CHARACTERS + 0x100
    return chr(number if number < 0xD800 else number + 0x800)


def spaced(text: str) -> str:
    r"""Return a text as it is looked up and kept: composed, with single spaces.

    >>> spaced("  Save \n the  file ")
    'Save the file'
    """
    whole = text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")  # JSON can say half surrogates
    return " ".join(unicodedata.normalize("NFC", whole).split())
