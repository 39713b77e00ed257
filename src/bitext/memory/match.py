"""Fuzzy matches: the similarity of two texts in percent, and the reuse of a translation."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

from bitext.memory.folding import Folded, Token, is_number, sign_and_digits, variable_spans

if TYPE_CHECKING:
    from rapidfuzz.distance import Opcodes

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
    """Return a new number with the separators of the target language.

    Args:
        target_number: the old number in the target.
        old: the old number in the source.
        new: the new number in the source.

    Returns:
        The new number in the target; None if the old one does not show which separators it needs.
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
