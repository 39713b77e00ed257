"""Test sentences that are in a training text, or within one or two words of a sentence of it.

The distance is the number of words that are inserted, deleted or replaced (Levenshtein 1966), without case and
punctuation. A sentence and another one are at a distance of at most 2 if they are equal after some words have been
deleted, and words at the same places replaced by a hole, in both together at most two. So each sentence has about 2 L^2
variants, of L words, whose hashes are compared: the time grows linearly with both texts. The variants of the test
sentences are in memory, those of the training sentences are not (deletion neighborhoods: Bocek et al. 2007, Fast
Similarity Search in Large Dictionaries).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import RenderableType

from bitext.pair import Pair
from bitext.words import normalized_text, spaced
from translucid.data.readers.corpus import sources_of, targets_of
from translucid.data.sampler import mixed
from translucid.data.seen_sentences import Hashes, hashes_of, pair_hashes
from translucid.ground.console import table_of
from translucid.ground.iteration import batched

FARTHEST = 2
"""The largest distance."""
MOST_WORDS = 100
"""Longer sentences are only compared as a whole."""
LONG = 5
"""Sentences with as many words are also counted apart: two words are most of a shorter one."""
_WORD = re.compile(r"[^\W_]+")
_VARIANTS = 1 << 21
"""The number of variants of training sentences in memory at a time."""
_ENTRIES = 1 << 24
"""The number of variants of test sentences in memory at a time; more take another pass over the training text."""
_CHUNK = 8192
_FILTER_BITS = 24
_ODD, _HOLE = 0x9E3779B97F4A7C15, 0xD1B54A32D192ED03


def words_of(text: str) -> list[str]:
    """Return the words that are compared.

    >>> words_of("Don't go, Tom!")
    ['don', 't', 'go', 'tom']
    """
    return _WORD.findall(spaced(normalized_text(text)).casefold())


def _variants(words: Hashes) -> Iterator[tuple[int, int, Hashes]]:
    """Yield the variants of sentences of the same length with some edits: holes, deletions, and their hashes [B, n].

    Args:
        words: a number for each word, [B, L].
    """
    count = words.shape[1]
    positions = np.arange(count, dtype=np.uint64) * np.uint64(_ODD)
    # The words at their places, and where they are after one or two deletions before them.
    at = [mixed(words + positions - _modular(shift * _ODD)) for shift in range(FARTHEST + 1)]
    holes = [mixed(positions + _modular(_HOLE - shift * _ODD)) for shift in range(FARTHEST)]
    before = [np.concatenate([np.zeros((len(words), 1), np.uint64), part.cumsum(1)], axis=1) for part in at]
    whole = before[0][:, -1:]
    replaced = [hole - part for hole, part in zip(holes, at, strict=False)]
    first, second = np.triu_indices(count, 1)
    one = np.arange(count)
    deleted = before[0][:, one] + before[1][:, -1:] - before[1][:, one + 1]
    yield 0, 0, _ended(whole, count)
    yield 1, 0, _ended(whole + replaced[0], count)
    yield 0, 1, _ended(deleted, count - 1)
    yield 2, 0, _ended(whole + replaced[0][:, first] + replaced[0][:, second], count)
    # A hole before the deleted word, and one after it, whose place is one lower.
    yield 1, 1, _ended(deleted[:, second] + replaced[0][:, first], count - 1)
    yield 1, 1, _ended(deleted[:, first] + replaced[1][:, second], count - 1)
    middle = before[1][:, second] - before[1][:, first + 1]
    yield 0, 2, _ended(before[0][:, first] + middle + before[2][:, -1:] - before[2][:, second + 1], count - 2)


def _ended(sums: Hashes, length: int) -> Hashes:
    return mixed(sums + _modular((length + 2) * _HOLE))


def _modular(number: int) -> np.uint64:
    return np.uint64(number % (1 << 64))


class _Side:
    """The variants of the test sentences of one side, and the nearest training sentence of each."""

    def __init__(self, texts: Sequence[str]) -> None:
        """Compute the variants of sentences with 1 to `MOST_WORDS` words."""
        self.vocabulary: dict[str, int] = {}
        by_length: dict[int, list[tuple[int, list[int]]]] = {}
        for row, text in enumerate(texts):
            words = words_of(text)
            if 0 < len(words) <= MOST_WORDS:
                ids = [self.vocabulary.setdefault(word, len(self.vocabulary) + 1) for word in words]
                by_length.setdefault(len(words), []).append((row, ids))
        self.lengths = {length + more for length in by_length for more in range(-FARTHEST, FARTHEST + 1)}
        keys, rows, edits = [np.empty(0, np.uint64)], [np.empty(0, np.int32)], [np.empty(0, np.uint8)]
        for sentences in by_length.values():
            numbers = mixed(np.array([words for _, words in sentences], np.uint64))
            for holes, deletions, hashes in _variants(numbers):
                keys.append(hashes.ravel())
                rows.append(np.repeat(np.array([row for row, _ in sentences], np.int32), hashes.shape[1]))
                edits.append(np.full(hashes.size, holes + deletions, np.uint8))
        all_keys = np.concatenate(keys)
        order = np.argsort(all_keys)
        self.rows, self.edits = np.concatenate(rows)[order], np.concatenate(edits)[order]
        all_keys = all_keys[order]
        is_new = np.append(True, all_keys[1:] != all_keys[:-1])[: len(all_keys)]
        self.keys, self.key_of = all_keys[is_new], np.cumsum(is_new) - 1
        self.deletions = np.full(len(self.keys), FARTHEST + 1, np.uint8)
        """The fewest deletions in a training sentence that lead to each key."""
        self.lines = np.zeros(len(self.keys), np.int64)
        self.may_have = np.zeros(1 << _FILTER_BITS, np.bool_)
        self.may_have[self.keys >> np.uint64(64 - _FILTER_BITS)] = True
        self.waiting: dict[int, list[tuple[int, list[int]]]] = {}

    def add(self, line: int, text: str) -> None:
        """Compare a training sentence."""
        words = words_of(text)
        if len(words) not in self.lengths or not 0 < len(words) <= MOST_WORDS + FARTHEST:
            return
        numbers = [self.vocabulary.get(word, 0) for word in words]
        if numbers.count(0) > FARTHEST:
            return
        sentences = self.waiting.setdefault(len(words), [])
        sentences.append((line, numbers))
        if len(sentences) * 2 * len(words) ** 2 >= _VARIANTS:
            self._compare(self.waiting.pop(len(words)))

    def finish(self) -> None:
        for sentences in self.waiting.values():
            self._compare(sentences)
        self.waiting = {}

    def _compare(self, sentences: list[tuple[int, list[int]]]) -> None:
        lines = np.array([line for line, _ in sentences])
        numbers = mixed(np.array([words for _, words in sentences], np.uint64))
        for _, deletions, hashes in _variants(numbers):
            row, column = np.nonzero(self.may_have[hashes >> np.uint64(64 - _FILTER_BITS)])
            candidates = hashes[row, column]
            index = np.minimum(np.searchsorted(self.keys, candidates), len(self.keys) - 1)
            better = (self.keys[index] == candidates) & (self.deletions[index] > deletions)
            self.deletions[index[better]] = deletions
            self.lines[index[better]] = lines[row[better]]

    def nearest(self, count: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the distance of each test sentence [count], `FARTHEST` + 1 if it is larger, and the training line."""
        distances, lines = np.full(count, FARTHEST + 1), np.zeros(count, np.int64)
        found = self.edits + self.deletions[self.key_of].astype(np.int64)
        for distance in range(FARTHEST, -1, -1):
            entries = np.flatnonzero(found == distance)
            distances[self.rows[entries]] = distance
            lines[self.rows[entries]] = self.lines[self.key_of[entries]]
        return distances, lines


class _Hits:
    """Those of some hashes that occur among others; each of these takes a binary search."""

    def __init__(self, hashes: Hashes) -> None:
        self.hashes = hashes
        self.distinct, self._rows = np.unique(hashes, return_inverse=True)
        self._found = np.zeros(len(self.distinct), np.bool_)

    def add(self, others: Hashes) -> None:
        if len(self.distinct):
            places = np.minimum(np.searchsorted(self.distinct, others), len(self.distinct) - 1)
            self._found[places[self.distinct[places] == others]] = True

    @property
    def rows(self) -> NDArray[np.bool_]:
        """Whether each hash has occurred; that of a blank text never has."""
        return self._found[self._rows] & (self.hashes != 0)


@dataclass(frozen=True)
class SideOverlap:
    """What one side of a test set shares with the training text."""

    equal: NDArray[np.bool_]
    """The sentences that are there, but for case and spaces, [n]."""
    distances: NDArray[np.int64]
    """The distance in words of the nearest training sentence, [n]; `FARTHEST` + 1 if it is larger."""
    lines: NDArray[np.int64]
    """The line of that sentence, from 1, [n]; 0 if there is none."""
    is_long: NDArray[np.bool_]
    """The sentences of `LONG` words or more, [n]."""

    @classmethod
    def joined(cls, parts: Sequence[SideOverlap]) -> SideOverlap:
        """Join those of the consecutive parts of a test set."""
        return cls(
            np.concatenate([part.equal for part in parts]),
            np.concatenate([part.distances for part in parts]),
            np.concatenate([part.lines for part in parts]),
            np.concatenate([part.is_long for part in parts]),
        )

    def within(self, distance: int) -> NDArray[np.bool_]:
        """Return the sentences that are at most a distance from a training sentence, [n]."""
        return self.equal | (self.distances <= distance)


@dataclass(frozen=True)
class Overlap:
    """What a test set shares with a training text."""

    sources: SideOverlap
    targets: SideOverlap
    pairs: NDArray[np.bool_]
    """The pairs that are there, [n]."""

    @classmethod
    def find(
        cls,
        train: Callable[[], Iterable[Pair]],
        test: Sequence[Pair],
        on_pairs: Callable[[int], None] = lambda _: None,
    ) -> Overlap:
        """Compare a test set with a training text.

        Args:
            train: a function that reads the training text; once more for each 16 million variants of test sentences.
            test: the test set.
            on_pairs: called with the number of training pairs read since the last call.
        """
        parts: list[Overlap] = []
        part: list[Pair] = []
        variants = 0
        for pair in test:
            part.append(pair)
            variants += sum(2 * min(len(words_of(text)), MOST_WORDS) ** 2 + 1 for text in pair)
            if variants >= _ENTRIES:
                parts.append(_overlap(train, part, on_pairs))
                part, variants = [], 0
        if part or not parts:
            parts.append(_overlap(train, part, on_pairs))
        sources = SideOverlap.joined([part.sources for part in parts])
        targets = SideOverlap.joined([part.targets for part in parts])
        return cls(sources, targets, np.concatenate([part.pairs for part in parts]))

    @property
    def _sides(self) -> dict[str, SideOverlap]:
        return {"sources": self.sources, "targets": self.targets}

    def to_json(self) -> dict[str, Any]:
        """Return the figures as plain values, with all sentences that have a near copy."""
        record: dict[str, Any] = {"pairs": len(self.pairs), "equal_pairs": int(self.pairs.sum())}
        for name, side in self._sides.items():
            within, long = {}, {}
            for distance in range(FARTHEST + 1):
                near = side.within(distance)
                within[str(distance)], long[str(distance)] = int(near.sum()), int((near & side.is_long).sum())
            hits = []
            for row in np.flatnonzero(side.within(FARTHEST)).tolist():
                distance, line = int(side.distances[row]), int(side.lines[row])
                is_near = distance <= FARTHEST
                hit = {"line": row + 1, "equal": bool(side.equal[row])}
                hits.append({**hit, "distance": distance if is_near else None, "train_line": line or None})
            record[name] = {
                "equal": int(side.equal.sum()),
                "within_words": within,
                f"of_{LONG}_words_or_more": {"sentences": int(side.is_long.sum()), "within_words": long},
                "hits": hits,
            }
        return record

    def render(self) -> Iterator[RenderableType]:
        """Yield a table and a text for people."""
        count = len(self.pairs)
        table = table_of("side", figures=("sentences", "equal", "same words", "1 word", "2 words"), overflow="fold")
        for name, side in self._sides.items():
            for label, kept in ((name, np.ones(count, np.bool_)), (f"{LONG} words or more", side.is_long)):
                total = int(kept.sum())
                cells = [_share(int((side.equal & kept).sum()), total)]
                for distance in range(FARTHEST + 1):
                    cells.append(_share(int((side.within(distance) & kept).sum()), total))
                table.add_row(label, f"{total:,}", *cells)
        yield table
        yield "equal, or at most that far from a sentence of the training text, by words inserted, deleted or replaced"
        yield f"{int(self.pairs.sum()):,} of {count:,} pairs are in the training text"


def _share(count: int, total: int) -> str:
    return f"{count:,} ({count / max(total, 1):.1%})"


def _overlap(train: Callable[[], Iterable[Pair]], test: Sequence[Pair], on_pairs: Callable[[int], None]) -> Overlap:
    """Compare a test set whose variants fit into the memory."""
    texts = sources_of(test), targets_of(test)
    sides = [_Side(side) for side in texts]
    hashes = [hashes_of(side) for side in texts]
    hits = [_Hits(side) for side in (*hashes, pair_hashes(*hashes))]
    line = 0
    for chunk in batched(train(), _CHUNK):
        train_texts = sources_of(chunk), targets_of(chunk)
        train_hashes = [hashes_of(side) for side in train_texts]
        for hit, of_train in zip(hits, (*train_hashes, pair_hashes(*train_hashes)), strict=True):
            hit.add(of_train)
        for index, side in enumerate(sides):
            for number, text in enumerate(train_texts[index], line + 1):
                side.add(number, text)
        line += len(chunk)
        on_pairs(len(chunk))
    overlaps = []
    for side, side_texts, hit in zip(sides, texts, hits, strict=False):
        side.finish()
        is_long = np.array([len(words_of(text)) >= LONG for text in side_texts], np.bool_)
        overlaps.append(SideOverlap(hit.rows, *side.nearest(len(test)), is_long))
    both = (hashes[0] != 0) & (hashes[1] != 0)
    return Overlap(overlaps[0], overlaps[1], hits[2].rows & both)
