"""A table of several multilingual systems: their scores in each direction, trained and zero-shot directions apart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import numpy as np
from rich.console import RenderableType

from translucid.evaluation.metrics import METRICS
from translucid.evaluation.system_table import (
    Score,
    SystemTable,
    latex_table,
    markdown_table,
    notes_of,
    score_of,
    text_table,
    with_p_value,
)
from translucid.ground.console import unbroken

SIGNIFICANT = 0.05
"""The p-value below which a score is marked."""
SHOWN = METRICS[:2]
"""The metrics of the printed tables."""


@dataclass(frozen=True)
class DirectionTable:
    """The scores of several systems in several directions."""

    directions: Mapping[str, SystemTable]
    """The scores in each direction, such as `en-fr`; each has the same systems."""
    zero_shot: Mapping[str, Sequence[str]]
    """The systems for which a direction is zero-shot, by direction; others have learned it."""

    def groups(self) -> dict[str, list[str]]:
        """Return the directions that all systems have learned, and the others."""
        groups: dict[str, list[str]] = {"trained": [], "zero-shot": []}
        for direction in self.directions:
            groups["zero-shot" if self.zero_shot.get(direction) else "trained"].append(direction)
        return {name: directions for name, directions in groups.items() if directions}

    def mean(self, metric: str, directions: Sequence[str]) -> list[Score]:
        """Return the mean of each system over some directions, with its interval and p-value."""
        means: list[Score] = []
        tables = [self.directions[direction] for direction in directions]
        for number in range(len(tables[0].systems)):
            scores = [table.systems[number].scores[metric] for table in tables]
            runs = [fmean(values) for values in zip(*(score.runs for score in scores), strict=True)]
            samples = [score.samples for score in scores if score.samples is not None]
            score = score_of(runs, np.mean(samples, axis=0) if samples else None)
            tested = any(score.p_value is not None for score in scores)
            means.append(with_p_value(score, means[0]) if means and tested else score)
        return means

    def to_json(self) -> dict[str, Any]:
        """Return everything as plain values."""
        means: dict[str, Any] = {}
        names = [row.name for row in next(iter(self.directions.values())).systems]
        for group, directions in self.groups().items():
            by_system: dict[str, dict[str, Any]] = {name: {} for name in names}
            for metric in METRICS:
                for name, score in zip(names, self.mean(metric, directions), strict=True):
                    by_system[name][metric] = score.to_json()
            means[group] = by_system
        directions_json = {name: table.to_json() for name, table in self.directions.items()}
        zero_shot = {name: list(systems) for name, systems in self.zero_shot.items() if systems}
        return {"directions": directions_json, "zero_shot": zero_shot, "mean": means}

    def cells(self, metric: str) -> tuple[list[str], list[list[str]]]:
        """Return the header and the rows of the table of a metric: a row for each direction and each mean."""
        systems = next(iter(self.directions.values())).systems
        header = [metric, "sentences", *(row.label for row in systems)]
        rows = []
        for group, directions in self.groups().items():
            for direction in directions:
                table = self.directions[direction]
                scores = [row.scores[metric] for row in table.systems]
                rows.append([self._name(direction), f"{table.sentences:,}", *map(_cell, scores)])
            if len(directions) > 1:
                means = map(_cell, self.mean(metric, directions))
                rows.append([f"mean of {len(directions)} {group}", "", *means])
        return header, rows

    def _name(self, direction: str) -> str:
        """Return a direction with the systems for which it is zero-shot."""
        systems = self.zero_shot.get(direction, ())
        if not systems:
            return direction
        if len(systems) == len(self.directions[direction].systems):
            return f"{direction} (zero-shot)"
        return f"{direction} (zero-shot for {', '.join(systems)})"

    def notes(self) -> list[str]:
        """Return what the figures mean, and the signatures of each direction, which may differ in the tokenizer."""
        scores: list[Score] = []
        for table in self.directions.values():
            for row in table.systems:
                scores += row.scores.values()
        several = any(row.runs > 1 for row in next(iter(self.directions.values())).systems)
        notes = notes_of(scores, several)
        if any(score.p_value is not None for score in scores):
            notes.append(f"*: p < {SIGNIFICANT}")
        by_signature: dict[str, list[str]] = {}
        for direction, table in self.directions.items():
            for metric in SHOWN:
                by_signature.setdefault(f"{metric}|{table.signatures[metric]}", []).append(direction)
        for signature, directions in by_signature.items():
            everywhere = len(directions) == len(self.directions)
            notes.append(signature if everywhere else f"{signature} ({', '.join(directions)})")
        return notes

    def render(self) -> Iterator[RenderableType]:
        """Yield tables and notes for people."""
        for metric in SHOWN:
            yield text_table(*self.cells(metric))
            yield ""
        yield from map(unbroken, self.notes())

    def markdown(self) -> str:
        """Return the tables in Markdown, with the notes below."""
        tables = [markdown_table(*self.cells(metric)) for metric in SHOWN]
        return "\n".join([*tables, f"{'; '.join(self.notes())}\n"])

    def latex(self) -> str:
        """Return the tables in LaTeX for the package booktabs, with the notes in comments."""
        notes = "".join(f"% {note}\n" for note in self.notes())
        return notes + "\n".join(latex_table(*self.cells(metric)) for metric in SHOWN)


def _cell(score: Score) -> str:
    """Return a score with its margin, marked if it differs from that of the first system."""
    is_significant = score.p_value is not None and score.p_value < SIGNIFICANT
    return f"{score.text}*" if is_significant else score.text
