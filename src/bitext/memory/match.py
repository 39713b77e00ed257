"""Fuzzy matches: the similarity of two texts in percent, and the reuse of a translation.

Texts are compared in a form with words without case, one sign for all numbers, and one for placeholders.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property, lru_cache
from hashlib import blake2b
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from bitext.protected_spans import fixed_parts
from bitext.words import normalized_text

if TYPE_CHECKING:
    from rapidfuzz.distance import Opcodes

FIXED = "\0"
"""The form of a placeholder, a tag or an address; no entry of a memory contains this character."""
UNWRITABLE = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML, and so a .tmx, cannot even represent by their numbers: NUL and most control characters."""
_MINUS = "-\u2010\u2011\u2012\u2013−－﹣"
"""The characters that are written as a minus: hyphens, figure and en dash, and the minus in every width."""
_PLUS = "+＋﹢"
_SIGN = rf"[{_MINUS}{_PLUS}±]"
# After a word or a number, it is a hyphen, not a sign, as in `2010-2020`.
_SIGNED = rf"(?:(?<![\w.,)\]%]){_SIGN}(?=\d))"
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_SIGNED_NUMBER = re.compile(rf"{_SIGNED}?{_NUMBER.pattern}")
_SINGLE = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"  # Thai, Lao, Burmese, Khmer
    "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # Japanese, Chinese
)
_TOKEN = re.compile(rf"[{_SINGLE}]|{_SIGNED}?[^\W{_SINGLE}](?:[^\s{_SINGLE}]*[^\W{_SINGLE}])?|[^\s\w]")
"""A word with the characters within it and the sign of a number; a punctuation mark; or a character of a script
without spaces."""
_MEANS = frozenset("%‰°℃℉")
"""Signs that change the meaning of a number, besides those of mathematics and currencies."""
_UNITS = {"'": "′", "’": "′", "′": "′", '"': "″", "”": "″", "″": "″", "‴": "‴"}
"""Signs that are units after a digit, such as feet and inches, by the usual form."""
_OPERATORS = frozenset(f"{_MINUS}\u2014/:*^")
"""Signs that make another number of two numbers, such as a difference, a range or a ratio."""
PAIRS = 1 << 17
"""The number of different hashes of word pairs: small enough that lists of segments are long and stored efficiently."""
_EDGE = 1
_MIXING = 0x9E3779B97F4A7C15  # 2^64 divided by the golden ratio, for multiplicative hashing
_CHARACTERS = 0x110000 - 0x1000
"""The number of characters that represent words; if two words share one, a percentage is slightly wrong."""


@dataclass(frozen=True)
class Token:
    """A word or a sign of a text."""

    text: str
    folded: str
    """The form for comparisons."""
    meaning: str = ""
    """The usual form of a sign that changes the meaning of a number, such as `<`, `%` or `″` after a digit."""

    @property
    def is_word(self) -> bool:
        """Whether it has a letter, a vowel sign or a number, or is a placeholder."""
        return self.folded == FIXED or _has_letter(self.folded)

    @property
    def cased(self) -> str:
        """The form for comparisons that respect case."""
        return FIXED if self.folded == FIXED else _SIGNED_NUMBER.sub("0", self.text)

    @property
    def variables(self) -> list[str]:
        """The parts that may differ in equal words: the numbers, or all of a placeholder."""
        return [self.text] if self.folded == FIXED else _SIGNED_NUMBER.findall(self.text)


@dataclass(frozen=True)
class Folded:
    """A text in the form for comparisons."""

    text: str

    @cached_property
    def all_tokens(self) -> list[Token]:
        """All words and signs, in order."""
        tokens, start = list[Token](), 0
        for part in fixed_parts(self.text):
            offset = self.text.index(part, start)
            tokens += _tokens(self.text[start:offset])
            tokens.append(Token(part, FIXED))
            start = offset + len(part)
        return tokens + _tokens(self.text[start:])

    @cached_property
    def tokens(self) -> list[Token]:
        """The tokens to compare: the words, or the signs of a text without words."""
        return [token for token in self.all_tokens if token.is_word] or self.all_tokens

    @cached_property
    def key(self) -> str:
        """One character for each token, so that the edit distance of keys is that of words."""
        return "".join(_character(token.folded) for token in self.tokens)

    @cached_property
    def pairs(self) -> set[int]:
        """A hash below `PAIRS` for each pair of adjacent tokens, including the beginning and the end of the text."""
        hashes = [_EDGE, *(_hashed(token.folded) for token in self.tokens), _EDGE]
        return {(31 * left + right) * _MIXING % (1 << 64) * PAIRS >> 64 for left, right in pairwise(hashes)}


def variable_spans(text: str) -> list[tuple[str, int]]:
    """Return the numbers, placeholders, tags and addresses of a text, each with its offset.

    >>> variable_spans("Page 3 of {count}")
    [('3', 5), ('{count}', 10)]
    """
    variables, start = list[tuple[str, int]](), 0
    for part in (*fixed_parts(text), None):  # None is the end of the text.
        offset = len(text) if part is None else text.index(part, start)
        variables += ((match[0], match.start()) for match in _SIGNED_NUMBER.finditer(text, start, offset))
        if part is not None:
            variables.append((part, offset))
            start = offset + len(part)
    return variables


def search_pattern(text: str, *, whole_words: bool = False) -> re.Pattern[str] | None:
    r"""Return a pattern that finds a text in normalized texts, ignoring case; None for a blank text.

    >>> search_pattern("FILE", whole_words=True).findall("the file, a profile")
    ['file']
    """
    spaced_text = normalized_text(text)
    if not spaced_text:
        return None
    pattern = re.escape(spaced_text)
    # A punctuation mark at an end of the text is already the edge of a word.
    if whole_words and spaced_text[0].isalnum():
        pattern = rf"(?<!\w){pattern}"
    if whole_words and spaced_text[-1].isalnum():
        pattern = rf"{pattern}(?!\w)"
    return re.compile(pattern, re.IGNORECASE)


def _tokens(text: str) -> list[Token]:
    tokens = []
    for match in _TOKEN.finditer(text):
        word = match[0]
        tokens.append(Token(word, _folded(word), _meaning(text, match.start()) if len(word) == 1 else ""))
    return tokens


def _meaning(text: str, position: int) -> str:
    """Return the usual form of a sign of a text that changes the meaning of a number; "" for any other character."""
    sign = text[position]
    if sign in _OPERATORS and _digit_beside(text, position, -1) and _digit_beside(text, position, 1):
        return "-" if sign in _MINUS else sign
    if sign in _UNITS and text[position - 1 : position].isdigit():
        return _UNITS[sign]
    if sign in _PLUS:
        return "+"
    is_symbol = sign in _MEANS or unicodedata.category(sign) in ("Sm", "Sc")
    return sign if is_symbol else ""


def _digit_beside(text: str, position: int, step: int) -> bool:
    """Whether the next character in a direction, white space aside, is a digit."""
    position += step
    while 0 <= position < len(text) and text[position].isspace():
        position += step
    return 0 <= position < len(text) and text[position].isdigit()


def is_number(variable: str) -> bool:
    """Whether a variable is a number, not a placeholder, a tag or an address."""
    return bool(_SIGNED_NUMBER.fullmatch(variable))


def sign_and_digits(number: str) -> tuple[str, str]:
    """Return the sign of a number, `-` for a minus of any kind, and the rest of the number."""
    first, rest = number[0], number[1:]
    if first in _MINUS:
        return "-", rest
    if first in _PLUS:
        return "+", rest
    return ("±", rest) if first == "±" else ("", number)


@lru_cache(1 << 16)
def _folded(word: str) -> str:
    return _SIGNED_NUMBER.sub("0", unicodedata.normalize("NFC", word.casefold()))


@lru_cache(1 << 16)
def _has_letter(word: str) -> bool:
    return any(unicodedata.category(character)[0] in "LMN" for character in word)


@lru_cache(1 << 16)
def _hashed(word: str) -> int:
    """Return a hash of 64 bits that is the same in all processes."""
    return int.from_bytes(blake2b(word.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


@lru_cache(1 << 16)
def _character(word: str) -> str:
    """Return a character for a word; surrogates, which have no encoding, are left out."""
    number = _hashed(word) % _CHARACTERS + 0x100
    return chr(number if number < 0xD800 else number + 0x800)


EXACT = 100
FILLED = 99
"""The percentage of texts that differ only in numbers, placeholders or addresses, if all could be replaced."""
SAME_WORDS = 98
"""The largest percentage of texts that differ in case, punctuation or spaces as well."""
NEAR = 97
"""The largest percentage of texts that differ in words."""
MIN_PERCENT = 70
"""The smallest percentage of matches that are shown."""


@dataclass(frozen=True)
class Entry:
    """A pair of a memory."""

    source: str
    target: str
    who: str = ""
    """The author of the translation, or the file that it comes from; empty if unknown."""
    when: int = 0
    """The time in seconds since 1970."""


@dataclass(frozen=True)
class Match:
    """An entry, compared with the text that was looked up."""

    query: str
    """The text that was looked up."""
    entry: Entry

    @property
    def is_exact(self) -> bool:
        """Whether the source of the entry is this text."""
        return self.query == self.entry.source

    @property
    def target(self) -> str:
        """The translation, with the numbers and placeholders of the text if all could be replaced."""
        return self.entry.target if self._filled is None else self._filled

    @cached_property
    def percent(self) -> int:
        """100 for the same text, else the similarity of the words: 1 - d / n of their edit distance d.

        n is the number of words of the longer text.
        """
        if self.is_exact:
            return EXACT
        from rapidfuzz.distance import Levenshtein  # 60 ms that exact matches do not need

        query, source = Folded(self.query), Folded(self.entry.source)
        similarity = Levenshtein.normalized_similarity(query.key, source.key)
        if similarity < 1 or not self.has_right_numbers:
            return min(NEAR, round(100 * similarity))
        query_signs = [token.cased for token in query.all_tokens]
        source_signs = [token.cased for token in source.all_tokens]
        return FILLED if query_signs == source_signs else SAME_WORDS

    @property
    def has_right_numbers(self) -> bool:
        """Whether the numbers, placeholders and addresses of `target` are those of the text."""
        return self._filled is not None

    @cached_property
    def differing(self) -> list[tuple[str, str]]:
        """The words that differ: those of the text, and those of the memory instead."""
        query_words = [token.text for token in Folded(self.query).tokens]
        source_words = [token.text for token in Folded(self.entry.source).tokens]
        differing = []
        for step in _edit_steps(query_words, source_words):
            if step.tag != "equal":
                query_part = " ".join(query_words[step.src_start : step.src_end])
                differing.append((query_part, " ".join(source_words[step.dest_start : step.dest_end])))
        return differing

    @cached_property
    def _filled(self) -> str | None:
        """The translation with all numbers and placeholders replaced; None if that is impossible."""
        if self.is_exact:
            return self.entry.target
        if _meanings(self.query) != _meanings(self.entry.source):
            return None
        changes = self._changes()
        return None if changes is None else filled(self.entry.target, changes)

    def _changes(self) -> list[tuple[str, str]] | None:
        """Return the numbers and placeholders of equal words, as in the memory and as in the text.

        Return None if the words that differ have different numbers or placeholders.
        """
        query, source = Folded(self.query), Folded(self.entry.source)
        changes = list[tuple[str, str]]()
        for step in _edit_steps(source.key, query.key):
            source_variables = _variables(source.tokens[step.src_start : step.src_end])
            query_variables = _variables(query.tokens[step.dest_start : step.dest_end])
            if step.tag == "equal":
                changes += zip(source_variables, query_variables, strict=True)
            elif source_variables != query_variables:
                return None
        return changes

    def record(self) -> dict[str, Any]:
        """Return the match for JSON."""
        when = datetime.fromtimestamp(self.entry.when, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        record: dict[str, Any] = {"percent": self.percent, "source": self.entry.source, "target": self.target}
        return record | {"differing": list(map(list, self.differing)), "who": self.entry.who, "when": when}


def _edit_steps(old: Sequence[str], new: Sequence[str]) -> Opcodes:
    """Return the shortest list of steps that turns one sequence of words into another."""
    from rapidfuzz.distance import Levenshtein

    return Levenshtein.opcodes(old, new)


def _variables(tokens: Sequence[Token]) -> list[str]:
    return [variable for token in tokens for variable in token.variables]


def _meanings(text: str) -> list[str]:
    """Return the signs of a text that change the meaning of its numbers, in order."""
    return [token.meaning for token in Folded(text).all_tokens if token.meaning]


def filled(target: str, changes: Iterable[tuple[str, str]]) -> str | None:
    """Return a target with numbers and placeholders replaced; None if the replacements are ambiguous.

    They are ambiguous if equal numbers of the source have different replacements: the target may have another order.

    >>> filled("Página 3 de 10", [("3", "4"), ("10", "12")])
    'Página 4 de 12'
    >>> filled("Cuesta 1.250,50 euros", [("1,250.50", "3,000.75")])
    'Cuesta 3.000,75 euros'

    Args:
        target: the translation.
        changes: the numbers and placeholders of its source, in order, each with its replacement, which may be the same.
    """
    replacements = defaultdict[str, set[str]](set)
    originals: dict[str, str] = {}
    for old, new in changes:
        replacements[_plain(old)].add(new)
        originals[_plain(old)] = old
    occurrences = defaultdict[str, list[tuple[str, int]]](list)
    for variable, offset in variable_spans(target):
        occurrences[_plain(variable)].append((variable, offset))
    edits = []
    for plain, candidates in replacements.items():
        if candidates == {originals[plain]}:
            continue
        if len(candidates) > 1 or not occurrences[plain]:
            return None
        (new,) = candidates
        for variable, offset in occurrences[plain]:
            adapted = _written_as(variable, originals[plain], new)
            if adapted is None:
                return None
            edits.append((offset, variable, adapted))
    for offset, variable, adapted in sorted(edits, reverse=True):
        target = target[:offset] + adapted + target[offset + len(variable) :]
    return target


def _plain(variable: str) -> str:
    """Return a placeholder, or a number as its sign and digits: languages group digits differently."""
    if not is_number(variable):
        return variable
    sign, digits = sign_and_digits(variable)
    return sign + "".join(filter(str.isdigit, digits))


def _written_as(target_number: str, old: str, new: str) -> str | None:
    """Return a new number with the separators of the target language; `old` and `new` are those of the source.

    Return None if the old number in the target does not show which separators the new one needs.
    """
    if not is_number(target_number):
        return new
    target_sign, new_sign = target_number[:1], new[:1]
    (old_sign, target_number), (_, old), (sign, new) = map(sign_and_digits, (target_number, old, new))
    if sign:  # The minus of the target may be another character.
        sign = target_sign if sign == old_sign else new_sign
    separators: dict[str, str | int | None] = {}
    if len(target_number) == len(old):  # Otherwise, the languages group digits differently.
        separators = {
            source_sign: target_sign
            for source_sign, target_sign in zip(old, target_number, strict=True)
            if source_sign in ".,"
        }
    if any(separator in new and separator not in separators for separator in ".,"):
        return None
    return sign + new.translate(str.maketrans(separators))
