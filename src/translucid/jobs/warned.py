"""What looks wrong in the translation of a text, summed up in one line."""

from __future__ import annotations

from collections.abc import Iterable

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

    def summary(self, total: int) -> str:
        """Return the line, of a text of so many lines."""
        if total == 1:
            return f"warning: {'; '.join(self.first)}"
        kinds = sorted(self.kinds.items(), key=lambda item: -item[1][0])
        parts = [f"{count:,} {kind} ({_lines(count, examples)})" for kind, (count, examples) in kinds]
        looks = "looks" if self.lines == 1 else "look"
        return (
            f"warning: {self.lines:,} of {total:,} lines {looks} wrong: {', '.join(parts)}; "
            "--format jsonl says what of each line"
        )


def _lines(count: int, examples: list[int]) -> str:
    numbers = ", ".join(f"{line:,}" for line in examples)
    return f"line {numbers}" if count == 1 else f"lines {numbers}" + ", …" * (count > len(examples))
