"""Fuzzy matches: the similarity of two texts in percent, and which parts of a translation can be reused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from rapidfuzz.distance import Levenshtein, Opcodes

from translucid.memory.filling import filled
from translucid.memory.folding import Folded, Token

EXACT = 100
FILLED = 99
"""Percent of what differs in numbers, placeholders or addresses alone, all of which were replaced."""
SAME_WORDS = 98
"""Percent of what differs in case, punctuation or spaces as well, at most."""
NEAR = 97
"""Percent of what differs in words, at most."""
LEAST = 70
"""Percent from which on matches are shown."""


@dataclass(frozen=True)
class Entry:
    """A pair of a memory."""

    source: str
    target: str
    who: str = ""
    """Who has translated or corrected it, or the file that it is from; empty if nobody said."""
    when: int = 0
    """Seconds since 1970."""


@dataclass(frozen=True)
class Match:
    """An entry beside the text that was looked up."""

    wanted: str
    """The text."""
    entry: Entry

    @property
    def is_exact(self) -> bool:
        """Whether the entry is of this very text."""
        return self.wanted == self.entry.source

    @property
    def target(self) -> str:
        """The translation, with the numbers and placeholders of the text as far as these could be replaced."""
        return self.entry.target if self._filled is None else self._filled

    @cached_property
    def percent(self) -> int:
        """100 for the same text; else what part of the words is the same, by their edit distance."""
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
        """The words that are not the same: those of the text, and those that the memory has in their place."""
        mine, theirs = Folded(self.wanted).tokens, Folded(self.entry.source).tokens
        steps = Levenshtein.opcodes([token.text for token in mine], [token.text for token in theirs])
        return [
            (
                " ".join(token.text for token in mine[step.src_start : step.src_end]),
                " ".join(token.text for token in theirs[step.dest_start : step.dest_end]),
            )
            for step in steps
            if step.tag != "equal"
        ]

    @cached_property
    def _filled(self) -> str | None:
        """The translation with everything replaced; None if something could not be."""
        if self.is_exact:
            return self.entry.target
        if self._moved or _meanings(self.wanted) != _meanings(self.entry.source):
            return None
        return filled(self.entry.target, self._changes)

    @cached_property
    def _changes(self) -> list[tuple[str, str]]:
        """What may differ in words that are the same: as the memory has it, and as the text has it."""
        mine, theirs = Folded(self.wanted), Folded(self.entry.source)
        changes = list[tuple[str, str]]()
        for step in self._steps:
            if step.tag == "equal":
                old, new = theirs.tokens[step.src_start : step.src_end], mine.tokens[step.dest_start : step.dest_end]
                for before, after in zip(old, new, strict=True):
                    changes += zip(before.variables, after.variables, strict=True)
        return changes

    @property
    def _moved(self) -> bool:
        """Whether a number or placeholder is added, missing or in another place among other words."""
        mine, theirs = Folded(self.wanted).tokens, Folded(self.entry.source).tokens
        return any(
            _variables(theirs[step.src_start : step.src_end]) != _variables(mine[step.dest_start : step.dest_end])
            for step in self._steps
            if step.tag != "equal"
        )

    @cached_property
    def _steps(self) -> Opcodes:
        """What makes the words of the text of those of the memory."""
        return Levenshtein.opcodes(Folded(self.entry.source).key, Folded(self.wanted).key)

    def record(self) -> dict[str, Any]:
        """Return what is told of it as JSON."""
        when = datetime.fromtimestamp(self.entry.when, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        differing = [list(pair) for pair in self.differing]
        record = {"percent": self.percent, "source": self.entry.source, "target": self.target, "differing": differing}
        return record | {"who": self.entry.who, "when": when}


def similarity(one: str, other: str) -> float:
    """Return 1 - d / n of two keys, d their edit distance and n the words of the longer one."""
    return Levenshtein.normalized_similarity(one, other)


def _variables(tokens: Sequence[Token]) -> list[str]:
    return [variable for token in tokens for variable in token.variables]


def _meanings(text: str) -> list[str]:
    """Return the signs of a text that change what its numbers say, in order."""
    return [token.text for token in Folded(text).every if token.has_meaning]
