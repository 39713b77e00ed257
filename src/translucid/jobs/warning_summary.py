"""A summary of the warnings about the translation of a text in one line."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from csv import DictReader
from importlib.resources import files

from pydantic import BaseModel, ConfigDict

from bitext.protected_spans import PlaceholderSyntax, kept_parts

EXAMPLES = 10
"""The number of lines that are named for each kind of warning."""
with files(__package__).joinpath("warning_sentences.tsv").open(encoding="utf-8") as _file:
    _SENTENCES = {row["kind"]: row for row in DictReader(_file, dialect="excel-tab")}
"""The sentences for one warning and for several, by kind."""
_COUNTED_KINDS = frozenset({"lost", "invented", "placed"})
"""The kinds whose warnings list parts of the text, such as placeholders; these parts are counted."""
_NUMBERED = re.compile(r"(?P<unit>[a-z]+) (?P<number>[0-9]+)")
"""The usual name of a place in a document, such as `line 15` or `paragraph 2`."""


class WarningSummary(BaseModel):
    """The warnings of any number of lines, by kind."""

    model_config = ConfigDict(extra="forbid")

    lines: int = 0
    """The number of lines with warnings."""
    kinds: dict[str, tuple[int, list[int]]] = {}
    """The number of lines with each kind, and the first of these lines."""
    counts: dict[str, int] = {}
    """The count of each kind: the number of lost placeholders, for example."""
    first: list[str] = []
    """The warnings of the first line with warnings."""

    def with_warnings(self, warnings: Iterable[tuple[int, str]]) -> WarningSummary:
        """Return a summary with more warnings: pairs of a line, counted from 1, and a warning `kind: details`."""
        by_line: dict[int, list[str]] = {}
        for line, warning in warnings:
            by_line.setdefault(line, []).append(warning)
        kinds, counts = dict(self.kinds), dict(self.counts)
        for line, line_warnings in by_line.items():
            line_counts: Counter[str] = Counter()
            for warning in line_warnings:
                kind, _, details = warning.partition(":")
                line_counts[kind] += _count(details) if kind in _COUNTED_KINDS else 1
            for kind, line_count in line_counts.items():
                count, examples = kinds.get(kind, (0, []))
                kinds[kind] = count + 1, [*examples, line][:EXAMPLES]
                # A record of an older version has no counts, but one for each line.
                counts[kind] = counts.get(kind, count) + line_count
        first = self.first or next(iter(by_line.values()), [])
        return WarningSummary(lines=self.lines + len(by_line), kinds=kinds, counts=counts, first=first)

    def summary(self, total: int, unit: str = "line", place: Callable[[int], str] | None = None) -> str:
        """Return the summary as one line; an empty text if there are no warnings.

        Args:
            total: the number of all lines.
            unit: the name of a line.
            place: a function that returns the name of a line by its number; `unit` and the number if not given.
        """
        if not self.lines:
            return ""
        if total == 1:
            return f"warning: {'; '.join(self.first)}"
        looks = "looks" if self.lines == 1 else "look"
        sentences = [f"{self.lines:,} of {total:,} {unit}s {looks} wrong"]
        for kind, (count, examples) in sorted(self.kinds.items(), key=lambda item: -item[1][0]):
            names = [f"{unit} {line}" for line in examples]
            if place:
                names = list(map(place, examples))
            sentences.append(f"{self._sentence(kind)}: {_listed(names, count - len(examples))}")
        if not place:
            sentences.append("--format jsonl shows the warnings of each line")
        return f"warning: {'. '.join(sentences)}."

    def _sentence(self, kind: str) -> str:
        count = self.counts.get(kind, self.kinds[kind][0])
        sentences = _SENTENCES.get(kind, {"one": f"1 warning ({kind})", "several": f"{{count}} warnings ({kind})"})
        return sentences["one"] if count == 1 else sentences["several"].format(count=f"{count:,}")


def _count(details: str) -> int:
    """Return the number of placeholders, tags and numbers in a warning, which are separated by spaces."""
    count, gaps, end = 0, [], 0
    for _, start, stop in kept_parts(details, PlaceholderSyntax.message):
        count += 1
        gaps.append(details[end:start])
        end = stop
    return max(1, count + len(" ".join([*gaps, details[end:]]).split()))


def _listed(names: Sequence[str], omitted: int) -> str:
    """Return a list of different places, grouped by their unit, such as `lines 15, 22 and 4 more`."""
    by_unit: dict[str, list[str]] = {}
    for name in dict.fromkeys(names):
        if match := _NUMBERED.fullmatch(name):
            by_unit.setdefault(match["unit"], []).append(f"{int(match['number']):,}")
        else:
            by_unit.setdefault("", []).append(name)
    parts = []
    for unit, labels in by_unit.items():
        if not unit:
            parts += labels
            continue
        plural = "s" if len(labels) > 1 else ""
        parts.append(f"{unit}{plural} {', '.join(labels)}")
    listing = "; ".join(parts)
    return f"{listing} and {omitted:,} more" if omitted else listing
