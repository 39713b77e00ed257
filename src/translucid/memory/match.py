"""Fuzzy matches: the similarity of two texts in percent, and the reuse of a translation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

from translucid.memory.filling import filled
from translucid.memory.folding import Folded, Token

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
        """100 for the same text, else the similarity of the words by their edit distance."""
        if self.is_exact:
            return EXACT
        mine, theirs = Folded(self.wanted), Folded(self.entry.source)
        alike = similarity(mine.key, theirs.key)
        if alike < 1 or not self.has_right_numbers:
            return min(NEAR, round(100 * alike))
        same_signs = [token.cased for token in mine.every] == [token.cased for token in theirs.every]
        return FILLED if same_signs else SAME_WORDS

    @property
    def has_right_numbers(self) -> bool:
        """Whether the numbers, placeholders and addresses of `target` are those of the text."""
        return self._filled is not None

    @cached_property
    def differing(self) -> list[tuple[str, str]]:
        """The words that differ: those of the text, and those of the memory in their place."""
        mine = [token.text for token in Folded(self.wanted).tokens]
        theirs = [token.text for token in Folded(self.entry.source).tokens]
        differing = []
        for step in _edit_steps(mine, theirs):
            if step.tag != "equal":
                ours = " ".join(mine[step.src_start : step.src_end])
                differing.append((ours, " ".join(theirs[step.dest_start : step.dest_end])))
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
        mine, theirs = Folded(self.wanted), Folded(self.entry.source)
        changes = list[tuple[str, str]]()
        for step in _edit_steps(theirs.key, mine.key):
            old = _variables(theirs.tokens[step.src_start : step.src_end])
            new = _variables(mine.tokens[step.dest_start : step.dest_end])
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


def similarity(one: str, other: str) -> float:
    """Return 1 - d / n of two keys, where d is their edit distance and n the number of words of the longer one."""
    from rapidfuzz.distance import Levenshtein  # 60 ms that translating without a memory does not need

    return Levenshtein.normalized_similarity(one, other)


def _edit_steps(one: Sequence[str], other: Sequence[str]) -> Opcodes:
    """Return the shortest list of steps that turns one sequence of words into another."""
    from rapidfuzz.distance import Levenshtein

    return Levenshtein.opcodes(one, other)


def _variables(tokens: Sequence[Token]) -> list[str]:
    return [variable for token in tokens for variable in token.variables]


def _meanings(text: str) -> list[str]:
    """Return the signs of a text that change the meaning of its numbers, in order."""
    return [token.text for token in Folded(text).every if token.has_meaning]
