"""Statistics of a corpus: sizes, lengths, duplicates, leaks between splits, and unusual characters."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from hashlib import blake2b
from typing import Any

import numpy as np

from bitext.pair import Pair
from bitext.words import normalized_text
from translucid.data.filtering import Filter, fault
from translucid.data.tokenizing.normalization import ADAPTIVE, Characters

EXAMPLES = 3
"""The number of examples of each finding."""
NO_PAIRS = "no pairs"
"""The fault of lines that could not be read, which are not among the pairs."""


def digest(text: str) -> int:
    """Return a 64-bit hash of the normalized text, so that millions of texts can be compared in little memory."""
    return int.from_bytes(blake2b(normalized_text(text).encode("utf-8"), digest_size=8).digest(), "big")


def digest_pair(pair: Pair) -> int:
    """Return the digest of both normalized sides."""
    text = f"{normalized_text(pair.source)}\t{normalized_text(pair.target)}"
    return int.from_bytes(blake2b(text.encode("utf-8"), digest_size=8).digest(), "big")


@dataclass
class SideStatistics:
    """Statistics of one language of one split."""

    words: int = 0
    characters: int = 0
    lengths: Counter[int] = field(default_factory=Counter)
    """The number of sentences of each length in words."""
    vocabulary: set[int] = field(default_factory=set)
    """The digests of the distinct words."""
    scripts: dict[str, Counter[str]] = field(default_factory=dict)
    """The count of each character, by script; control characters and private ones are separate kinds."""
    first_line: dict[str, int] = field(default_factory=dict)
    """The first line with a character of each kind."""
    not_ascii: Characters = field(default_factory=Characters)
    """The counts of characters beyond ASCII, which show what normalization changes."""

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
                self.scripts.setdefault(kind, Counter())[character] += count
                self.first_line.setdefault(kind, line)

    def percentile(self, share: float) -> int:
        """Return the length in words that this share of the sentences does not exceed."""
        if not self.lengths:
            return 0
        lengths = sorted(self.lengths)
        cumulated = np.cumsum([self.lengths[length] for length in lengths])
        return lengths[int(np.searchsorted(cumulated, share * cumulated[-1]))]

    def unexpected(self) -> list[tuple[str, int, str, int]]:
        """Return (script, characters, the most frequent ones, first line) for all but the most frequent script."""
        kinds = sorted(self.scripts.items(), key=lambda item: -item[1].total())
        usual_script = next((kind for kind, _ in kinds if kind not in ("control", "private")), None)
        rows = []
        for kind, counts in kinds:
            if kind != usual_script:
                frequent = "".join(character for character, _ in counts.most_common(10))
                rows.append((kind, counts.total(), frequent, self.first_line[kind]))
        return rows

    def preserved_characters(self) -> dict[str, int]:
        """Return the counts of the characters that `nmt_nfkc` changes but the default normalization does not."""
        return {character: self.not_ascii.counts[character] for character in self.not_ascii.preserved()}

    def summary(self, sentences: int) -> dict[str, Any]:
        """Return the figures as plain values."""
        unexpected = []
        for kind, count, characters, line in self.unexpected():
            unexpected.append({"script": kind, "count": count, "characters": characters, "first_line": line})
        return {
            "words": self.words,
            "characters": self.characters,
            "distinct_words": len(self.vocabulary),
            "mean_words": round(self.words / max(sentences, 1), 2),
            "median_words": self.percentile(0.5),
            "p95_words": self.percentile(0.95),
            "p99_words": self.percentile(0.99),
            "p100_words": self.percentile(1.0),
            "unexpected": unexpected,
            "normalization_changes": self.not_ascii.changed(ADAPTIVE),
            "normalization_leaves_alone": self.preserved_characters(),
        }


@lru_cache(maxsize=65536)
def script(character: str) -> str | None:
    """Return the script of a letter (`LATIN`, `CYRILLIC`), `control`, `private`, or None if all scripts use it."""
    category = unicodedata.category(character)
    if category == "Cc":
        return "control"
    if category in ("Co", "Cn", "Cs"):
        return "private"
    if category[0] != "L":
        return None
    name = unicodedata.name(character, "")
    # The ordinal indicators of 1º and 2ª are letters that belong to no script.
    if not name or name.endswith("INDICATOR"):
        return None
    # Names begin with the script: `LATIN SMALL LETTER A`; or with two: `KATAKANA-HIRAGANA PROLONGED SOUND MARK`.
    return name.split()[0].split("-")[0]


@dataclass
class SplitStatistics:
    """Statistics of one split: training, validation or test."""

    name: str
    pairs: int = 0
    documents: int = 0
    """The number of documents, if they are read."""
    duplicate_pairs: int = 0
    duplicate_sources: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    """The number of pairs that filtering would skip, by reason."""
    source: SideStatistics = field(default_factory=SideStatistics)
    target: SideStatistics = field(default_factory=SideStatistics)
    seen_pairs: set[int] = field(default_factory=set)
    seen_sources: set[int] = field(default_factory=set)
    seen_targets: set[int] = field(default_factory=set)

    def read(self, pairs: Iterable[Pair], pair_filter: Filter) -> Iterator[int]:
        """Count all pairs; yield 1 for each, for a progress bar."""
        last_document = None
        for line, pair in enumerate(pairs, 1):
            self.pairs += 1
            if pair.document not in (None, last_document) and any(map(str.strip, pair)):
                last_document = pair.document
                self.documents += 1
            self.source.add(pair.source, line)
            self.target.add(pair.target, line)
            if reason := fault(pair, pair_filter):
                self.faults[reason] += 1
            pair_digest, source_digest = digest_pair(pair), digest(pair.source)
            self.duplicate_pairs += pair_digest in self.seen_pairs
            self.duplicate_sources += source_digest in self.seen_sources
            self.seen_pairs.add(pair_digest)
            self.seen_sources.add(source_digest)
            self.seen_targets.add(digest(pair.target))
            yield 1

    @property
    def usable(self) -> int:
        """The number of pairs that filtering keeps."""
        return self.pairs - (self.faults.total() - self.faults[NO_PAIRS])

    def summary(self) -> dict[str, Any]:
        """Return the figures as plain values."""
        return {
            "pairs": self.pairs,
            "documents": self.documents,
            "duplicate_pairs": self.duplicate_pairs,
            "duplicate_sources": self.duplicate_sources,
            "skipped": dict(self.faults),
            "source": self.source.summary(self.pairs),
            "target": self.target.summary(self.pairs),
        }


@dataclass
class Overlap:
    """What a split shares with the training data; a test split that shares something leaks."""

    split: str
    pairs: int = 0
    sources: int = 0
    targets: int = 0
    examples: list[tuple[int, str]] = field(default_factory=list)
    """Pairs of a line number of the split and its source sentence."""

    @classmethod
    def find(cls, split: str, pairs: Iterable[Pair], train: SplitStatistics) -> Overlap:
        """Compare both sides of a split with the training data, as `normalized_text`."""
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
