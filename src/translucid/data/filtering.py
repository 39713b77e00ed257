"""Filtering of sentence pairs, with counts of what is skipped, and random samples of them."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeVar

from pydantic import Field

from bitext.pair import Pair
from translucid.data.readers.corpus import TargetText
from translucid.ground.option_group import OptionGroup

Item = TypeVar("Item")


class Filter(OptionGroup):
    """The limits beyond which pairs are skipped."""

    max_characters: int = Field(2000, ge=1, le=1_000_000_000)
    """Pairs with more characters than this on either side are skipped."""
    max_ratio: float = Field(4.0, ge=1, le=1_000_000_000)
    """Pairs are skipped when one side has more than this times the other's characters, plus `ratio_slack`."""
    ratio_slack: int = Field(30, ge=0, le=1_000_000_000)
    """Characters by which the sides of short pairs may differ in any case."""


@dataclass
class Skipped:
    """The numbers of pairs, or texts, that were kept and that were skipped, by reason."""

    unit: str = "pair"
    """The name of a single item in the summary."""
    kept: int = 0
    reasons: Counter[str] = field(default_factory=Counter)

    def add(self, reason: str, count: int = 1) -> None:
        """Skip pairs that have already been counted as kept, such as those with too many tokens."""
        self.kept -= count
        self.reasons[reason] += count

    def summary(self) -> str:
        """Return a line such as `111,700 pairs; skipped 98: 90 too long, 5 unequal, 3 empty`."""
        unit = self.unit if self.kept == 1 else f"{self.unit}s"
        total = self.reasons.total()
        if not total:
            return f"{self.kept:,} {unit}; none skipped"
        counts = ", ".join(f"{count:,} {reason}" for reason, count in self.reasons.most_common())
        return f"{self.kept:,} {unit}; skipped {total:,}: {counts}"


def fault(pair: Pair, pair_filter: Filter) -> str | None:
    """Return why a pair is skipped, or None if it is kept."""
    longer = shorter = len(pair.target.strip())
    if not isinstance(pair, TargetText):  # the source of these is empty on purpose
        source_length = len(pair.source.strip())
        longer, shorter = max(longer, source_length), min(shorter, source_length)
    if not shorter:
        return "empty"
    if longer > pair_filter.max_characters:
        return "too long"
    if longer > pair_filter.max_ratio * shorter + pair_filter.ratio_slack:
        return "unequal"
    return None


def keep(pairs: Iterable[Pair], pair_filter: Filter, skipped: Skipped) -> Iterator[Pair]:
    """Yield the pairs without a fault; count those and the others in `skipped`."""
    for pair in pairs:
        if reason := fault(pair, pair_filter):
            skipped.reasons[reason] += 1
        else:
            skipped.kept += 1
            yield pair


def reservoir_sample(stream: Iterable[Item], size: int, seed: int) -> list[Item]:
    """Return a uniform random sample of `size` items, or all items if the stream has fewer (Vitter 1985)."""
    sample: list[Item] = []
    generator = random.Random(seed)
    for index, item in enumerate(stream):
        if index < size:
            sample.append(item)
            continue
        # The item enters with probability size / (index + 1), and each item in the sample is equally likely to leave.
        position = generator.randrange(index + 1)
        if position < size:
            sample[position] = item
    return sample
