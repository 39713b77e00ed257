"""Fuzzy matches: the similarity of two texts in percent, and the reuse of a translation."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

from translucid.memory.folding import Folded, Token, is_number, sign_and_digits, variable_spans

if TYPE_CHECKING:
    from rapidfuzz.distance import Opcodes

EXACT = 100
FILLED = 99
"""The percentage of texts that differ only in numbers, placeholders or addresses, all of which were replaced."""
SAME_WORDS = 98
"""The largest percentage of texts that differ in case, punctuation or spaces as well."""
NEAR = 97
"""The largest percentage of texts that differ in words."""
LEAST = 70
"""The smallest percentage of matches that are shown."""


@dataclass(frozen=True)
class Entry:
    """A pair of a memory."""

    source: str
    target: str
    who: str = ""
    """The author of the translation, or the file that it is from; empty if unknown."""
    when: int = 0
    """The time in seconds since 1970."""


@dataclass(frozen=True)
class Match:
    """An entry, compared with the text that was looked up."""

    wanted: str
    """The text that was looked up."""
    entry: Entry

    @property
    def is_exact(self) -> bool:
        """Whether the source of the entry is this text."""
        return self.wanted == self.entry.source

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

        wanted, source = Folded(self.wanted), Folded(self.entry.source)
        alike = Levenshtein.normalized_similarity(wanted.key, source.key)
        if alike < 1 or not self.has_right_numbers:
            return min(NEAR, round(100 * alike))
        wanted_signs = [token.cased for token in wanted.every]
        source_signs = [token.cased for token in source.every]
        return FILLED if wanted_signs == source_signs else SAME_WORDS

    @property
    def has_right_numbers(self) -> bool:
        """Whether the numbers, placeholders and addresses of `target` are those of the text."""
        return self._filled is not None

    @cached_property
    def differing(self) -> list[tuple[str, str]]:
        """The words that differ: those of the text, and those of the memory in their place."""
        wanted_words = [token.text for token in Folded(self.wanted).tokens]
        source_words = [token.text for token in Folded(self.entry.source).tokens]
        differing = []
        for step in _edit_steps(wanted_words, source_words):
            if step.tag != "equal":
                wanted_part = " ".join(wanted_words[step.src_start : step.src_end])
                differing.append((wanted_part, " ".join(source_words[step.dest_start : step.dest_end])))
        return differing

    @cached_property
    def _filled(self) -> str | None:
        """The translation with all numbers and placeholders replaced; None if that is impossible."""
        if self.is_exact:
            return self.entry.target
        if _meanings(self.wanted) != _meanings(self.entry.source):
            return None
        changes = self._changes()
        return None if changes is None else filled(self.entry.target, changes)

    def _changes(self) -> list[tuple[str, str]] | None:
        """Return the numbers and placeholders of equal words, as in the memory and as in the text.

        Return None if one is added, missing or in another place among different words.
        """
        wanted, source = Folded(self.wanted), Folded(self.entry.source)
        changes = list[tuple[str, str]]()
        for step in _edit_steps(source.key, wanted.key):
            old = _variables(source.tokens[step.src_start : step.src_end])
            new = _variables(wanted.tokens[step.dest_start : step.dest_end])
            if step.tag == "equal":
                changes += zip(old, new, strict=True)
            elif old != new:
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
    return [token.text for token in Folded(text).every if token.has_meaning]


def filled(target: str, changes: Iterable[tuple[str, str]]) -> str | None:
    """Return a target with numbers and placeholders replaced; None if the replacements are not clear.

    They are not if equal numbers of the source get different replacements: the target may have another order.

    >>> filled("Página 3 de 10", [("3", "4"), ("10", "12")])
    'Página 4 de 12'
    >>> filled("Cuesta 1.250,50 euros", [("1,250.50", "3,000.75")])
    'Cuesta 3.000,75 euros'

    Args:
        target: the translation.
        changes: the numbers and placeholders of its source, in order, each with its replacement, which may be equal.
    """
    replacements = defaultdict[str, set[str]](set)
    written: dict[str, str] = {}
    for old, new in changes:
        replacements[_plain(old)].add(new)
        written[_plain(old)] = old
    places = defaultdict[str, list[tuple[str, int]]](list)
    for variable, at in variable_spans(target):
        places[_plain(variable)].append((variable, at))
    edits = []
    for plain, different in replacements.items():
        if different == {written[plain]}:
            continue
        if len(different) > 1 or not places[plain]:
            return None
        (new,) = different
        for variable, at in places[plain]:
            adapted = _written_as(variable, written[plain], new)
            if adapted is None:
                return None
            edits.append((at, variable, adapted))
    for at, variable, adapted in sorted(edits, reverse=True):
        target = target[:at] + adapted + target[at + len(variable) :]
    return target


def _plain(variable: str) -> str:
    """Return a placeholder, or a number as its sign and digits: languages group digits differently."""
    if not is_number(variable):
        return variable
    sign, number = sign_and_digits(variable)
    return sign + "".join(filter(str.isdigit, number))


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
    (_, target_number), (_, old), (sign, new) = map(sign_and_digits, (target_number, old, new))
    separators: dict[str, str | int | None] = {}
    if len(target_number) == len(old):  # Else the languages group digits differently.
        separators = {
            source_sign: target_sign
            for source_sign, target_sign in zip(old, target_number, strict=True)
            if source_sign in ".,"
        }
    if any(separator in new and separator not in separators for separator in ".,"):
        return None
    return sign + new.translate(str.maketrans(separators))
