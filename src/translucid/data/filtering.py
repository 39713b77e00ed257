"""Which pairs of a text are used: those that teach something, the others counted; and a sample of them."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TypeVar

from pydantic import Field

from translucid.data.readers.corpus import Pair, TargetText
from translucid.ground.option_group import OptionGroup

Item = TypeVar("Item")


class Filter(OptionGroup):
    """Which pairs are skipped."""

    max_characters: int = Field(2000, ge=1, le=1_000_000_000)
    """Pairs with more characters than this on either side are skipped."""
    max_ratio: float = Field(4.0, ge=1, le=1_000_000_000)
    """Pairs are skipped when one side has more than this times the other's characters, plus `ratio_slack`."""
    ratio_slack: int = Field(30, ge=0, le=1_000_000_000)
    """Characters by which the sides of short pairs may differ in any case."""


class Skipped:
    """How many pairs, or texts, were kept, and how many were not, and why."""

    def __init__(self, unit: str = "pair") -> None:
        """Count from 0; `unit`: what one of them is called."""
        self.unit = unit
        self.kept = 0
        self.reasons: Counter[str] = Counter()

    def add(self, reason: str) -> None:
        """Count a pair that is skipped after it was kept here, such as one with too many tokens."""
        self.kept -= 1
        self.reasons[reason] += 1

    def summary(self) -> str:
        """`111,700 pairs; skipped 98: 90 too long, 5 unequal, 3 empty`."""
        total, what = self.reasons.total(), self.unit if self.kept == 1 else f"{self.unit}s"
        if not total:
            return f"{self.kept:,} {what}; none skipped"
        counts = ", ".join(f"{count:,} {reason}" for reason, count in self.reasons.most_common())
        return f"{self.kept:,} {what}; skipped {total:,}: {counts}"


def fault(pair: Pair, wanted: Filter) -> str | None:
    """Return why a pair is skipped, or None."""
    target = len(pair.target.strip())
    source = target if isinstance(pair, TargetText) else len(pair.source.strip())
    shorter, longer = sorted((source, target))
    if not shorter:
        return "empty"
    if longer > wanted.max_characters:
        return "too long"
    if longer > wanted.max_ratio * shorter + wanted.ratio_slack:
        return "unequal"
    return None


def keep(pairs: Iterable[Pair], wanted: Filter, skipped: Skipped) -> Iterator[Pair]:
    """Yield the pairs without a fault, and count both kinds in `skipped`."""
    for pair in pairs:
        if reason := fault(pair, wanted):
            skipped.reasons[reason] += 1
        else:
            skipped.kept += 1
            yield pair


def draw(stream: Iterable[Item], most: int, seed: int) -> list[Item]:
    """Return all of a stream, or `most` of it drawn uniformly (reservoir sampling, Vitter 1985)."""
    drawn: list[Item] = []
    generator = random.Random(seed)
    for seen, item in enumerate(stream):
        if seen < most:
            drawn.append(item)
        elif (place := generator.randrange(seen + 1)) < most:
            drawn[place] = item
    return drawn
