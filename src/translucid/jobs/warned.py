"""What looks wrong in the translation of a text, summed up in one line."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from pydantic import BaseModel, ConfigDict

EXAMPLES = 3
"""Lines that are named of each kind of warning."""


class Warned(BaseModel):
    """Warnings by kind, of any number of lines."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    lines: int = 0
    """That have one or more."""
    kinds: dict[str, tuple[int, list[int]]] = {}
    """How many lines have a kind, and the first of them."""
    first: list[str] = []
    """The warnings of the first line that has some."""

    def and_these(self, warnings: Iterable[tuple[int, str]]) -> Warned:
        """Return these and more: pairs of a line, counted from 1, and a warning `kind: what was seen`."""
        by_line: dict[int, list[str]] = {}
        for line, warning in warnings:
            by_line.setdefault(line, []).append(warning)
        kinds = dict(self.kinds)
        for line, theirs in by_line.items():
            for kind in dict.fromkeys(warning.partition(":")[0] for warning in theirs):
                count, examples = kinds.get(kind, (0, []))
                kinds[kind] = count + 1, [*examples, line][:EXAMPLES]
        first = self.first or next(iter(by_line.values()), [])
        return Warned(lines=self.lines + len(by_line), kinds=kinds, first=first)

    def summary(self, total: int, what: str = "line", place: Callable[[int], str] | None = None) -> str:
        """Return the line, of so many lines.

        Args:
            total: how many there are.
            what: a line is called.
            place: gives for the number of one what it is called itself; its number if not given.
        """
        if total == 1:
            return f"warning: {'; '.join(self.first)}"
        kinds = sorted(self.kinds.items(), key=lambda item: -item[1][0])
        parts = [f"{count:,} {kind} ({_named(count, examples, what, place)})" for kind, (count, examples) in kinds]
        looks = "looks" if self.lines == 1 else "look"
        more = "" if place else "; --format jsonl says what of each line"
        return f"warning: {self.lines:,} of {total:,} {what}s {looks} wrong: {', '.join(parts)}{more}"


def _named(count: int, examples: list[int], what: str, place: Callable[[int], str] | None) -> str:
    more = ", …" * (count > len(examples))
    if place:
        return ", ".join(map(place, examples)) + more
    return f"{what}{'s' * (count > 1)} " + ", ".join(f"{line:,}" for line in examples) + more
