"""What is in a corpus: sizes, lengths, duplicates, leaks between splits, and odd characters."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from hashlib import blake2b
from typing import Any

import numpy as np

from translucid.data.filtering import Filter, fault
from translucid.data.readers.corpus import Pair
from translucid.data.tokenizing.normalisation import ADAPTIVE, Characters

EXAMPLES = 3
"""Examples kept of each finding."""


def digest(text: str) -> int:
    """Return 8 bytes that stand for a text, so that millions of texts can be compared in little memory."""
    return int.from_bytes(blake2b(text.strip().encode("utf-8", "replace"), digest_size=8).digest(), "big")


def digest_pair(pair: Pair) -> int:
    """Return the digest of both sides, white space around either of them ignored."""
    return digest(f"{pair.source.strip()}\t{pair.target.strip()}")


@dataclass
class SideStatistics:
    """One language of one split."""

    words: int = 0
    characters: int = 0
    lengths: Counter[int] = field(default_factory=Counter)
    """Sentences by words."""
    vocabulary: set[int] = field(default_factory=set)
    """Digests of the distinct words."""
    scripts: Counter[str] = field(default_factory=Counter)
    """Letters by script."""
    odd: dict[str, Counter[str]] = field(default_factory=dict)
    """By script or kind, how often each of its characters stands there."""
    first_line: dict[str, int] = field(default_factory=dict)
    """Where each script or kind is met first."""
    not_ascii: Characters = field(default_factory=Characters)
    """Counts that tell what normalisation changes."""

    def add(self, text: str, line: int) -> None:
        """Count one sentence."""
        words = text.split()
        self.not_ascii.add(text)
        self.words += len(words)
        self.characters += len(text)
        self.lengths[len(words)] += 1
        self.vocabulary.update(map(digest, words))
        for character, count in Counter(text).items():
            kind = script(character)
            if kind:
                self.scripts[kind] += count
                self.odd.setdefault(kind, Counter())[character] += count
                self.first_line.setdefault(kind, line)

    def percentile(self, share: float) -> int:
        """Return the length in words that this share of the sentences does not exceed."""
        lengths = sorted(self.lengths)
        cumulated = np.cumsum([self.lengths[n] for n in lengths])
        return lengths[int(np.searchsorted(cumulated, share * cumulated[-1]))] if lengths else 0

    def unexpected(self) -> list[tuple[str, int, str, int]]:
        """Return what is not of the script of most letters: (script, characters, the commonest of them, first line)."""
        usual = next((kind for kind, _ in self.scripts.most_common() if kind not in ("control", "private")), None)
        return [
            (kind, count, "".join(c for c, _ in self.odd[kind].most_common(10)), self.first_line[kind])
            for kind, count in self.scripts.most_common()
            if kind != usual
        ]

    def left_alone(self) -> dict[str, int]:
        """Return the characters that the default normalisation leaves alone and `nmt_nfkc` changes, with counts."""
        return {character: self.not_ascii.counts[character] for character in self.not_ascii.kept()}

    def summary(self, sentences: int) -> dict[str, Any]:
        """Return the figures as plain values."""
        lengths = {f"p{round(100 * share)}": self.percentile(share) for share in (0.5, 0.95, 0.99, 1.0)}
        return {
            "words": self.words,
            "characters": self.characters,
            "distinct_words": len(self.vocabulary),
            "mean_words": round(self.words / max(sentences, 1), 2),
            **{"median_words" if name == "p50" else f"{name}_words": n for name, n in lengths.items()},
            "unexpected": [
                dict(zip(("script", "count", "characters", "first_line"), row, strict=True))
                for row in self.unexpected()
            ],
            "normalisation_changes": self.not_ascii.changed(ADAPTIVE),
            "normalisation_leaves_alone": self.left_alone(),
        }


@lru_cache(maxsize=65536)
def script(character: str) -> str | None:
    """Return the script of a letter (`LATIN`, `CYRILLIC`), `control`, `private`, or None for what any script uses."""
    category = unicodedata.category(character)
    if category == "Cc":
        return "control"
    if category in ("Co", "Cn", "Cs"):
        return "private"
    if category[0] != "L":
        return None
    name = unicodedata.name(character, "")
    # The ordinal signs of 1º and 2ª are letters of no script.
    return None if not name or name.endswith("INDICATOR") else name.split()[0].split("-")[0]


@dataclass
class SplitStatistics:
    """One split: training, validation or test."""

    name: str
    pairs: int = 0
    duplicate_pairs: int = 0
    duplicate_sources: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    """What filtering would skip, by reason."""
    source: SideStatistics = field(default_factory=SideStatistics)
    target: SideStatistics = field(default_factory=SideStatistics)
    seen_pairs: set[int] = field(default_factory=set)
    seen_sources: set[int] = field(default_factory=set)
    seen_targets: set[int] = field(default_factory=set)

    def read(self, pairs: Iterable[Pair], wanted: Filter) -> Iterator[int]:
        """Count all pairs; yields 1 for each, for a progress bar."""
        for line, pair in enumerate(pairs, 1):
            self.pairs += 1
            self.source.add(pair.source, line)
            self.target.add(pair.target, line)
            if reason := fault(pair, wanted):
                self.faults[reason] += 1
            both, one, other = digest_pair(pair), digest(pair.source), digest(pair.target)
            self.duplicate_pairs += both in self.seen_pairs
            self.duplicate_sources += one in self.seen_sources
            self.seen_pairs.add(both)
            self.seen_sources.add(one)
            self.seen_targets.add(other)
            yield 1

    def summary(self) -> dict[str, Any]:
        """Return the figures as plain values."""
        return {
            "pairs": self.pairs,
            "duplicate_pairs": self.duplicate_pairs,
            "duplicate_sources": self.duplicate_sources,
            "skipped": dict(self.faults),
            "source": self.source.summary(self.pairs),
            "target": self.target.summary(self.pairs),
        }


@dataclass
class Overlap:
    """What a split shares with the training data: a leak, if it is to be tested on."""

    split: str
    pairs: int = 0
    sources: int = 0
    targets: int = 0
    examples: list[tuple[int, str]] = field(default_factory=list)
    """(line of the split, source)."""

    @classmethod
    def find(cls, split: str, pairs: Iterable[Pair], train: SplitStatistics) -> Overlap:
        """Compare a split with the training data, side by side; white space around a sentence is ignored."""
        overlap = cls(split)
        for line, pair in enumerate(pairs, 1):
            overlap.pairs += digest_pair(pair) in train.seen_pairs
            overlap.targets += digest(pair.target) in train.seen_targets
            if digest(pair.source) in train.seen_sources:
                overlap.sources += 1
                if len(overlap.examples) < EXAMPLES:
                    overlap.examples.append((line, pair.source))
        return overlap

    def to_json(self) -> dict[str, Any]:
        """Return the figures as plain values."""
        return asdict(self)
