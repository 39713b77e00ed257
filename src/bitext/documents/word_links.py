"""Word links between two texts: the run of target words that matches a source span, and the links across a cut."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import cached_property
from operator import attrgetter
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from bitext.words import LINKED_WORD

Vector: TypeAlias = NDArray[np.float64]
"""One number for each target word, `[T]`."""
Indices: TypeAlias = NDArray[np.int64]

Links = Sequence[tuple[int, int, float]]
"""Links as the index of a source word, the index of a target word, and a weight in any unit; words are
those of `linked_words`."""
Span = tuple[int, int]
"""The start and end of a range of characters."""

FAINT = 0.2
"""The share of a word's links above which it counts as translated by an element."""
PUNCTUATION = frozenset(".,;:!?…()[]\"'“”‘’„«»‹›¿¡。，、；：！？（）「」『』।")
"""Punctuation before and after words; `%`, `{` and others belong to placeholders."""
_STRIPPED = "".join(PUNCTUATION)
_HALF = 0.5
"""The share of a word that a span must cover to contain it."""
_NOISE = 1e-9
"""Sums that differ by less count as equal: their order of addition may differ."""
_NO_LINKS = np.zeros(0, np.int64), np.zeros(0)


class Word(NamedTuple):
    """A word between spaces."""

    start: int
    end: int
    core_start: int
    """The start of the word without its punctuation."""
    core_end: int


class Run(NamedTuple):
    """Adjacent target words."""

    first: int
    last: int
    low: int
    """The start of the free span that contains them, in characters of the target."""
    high: int


class FreeSpans:
    """The free spans of the target, between the spans that elements have taken; they may be empty."""

    def __init__(self, span: Span) -> None:
        """Start with all of `span` free."""
        self.lows, self.highs = [span[0]], [span[1]]

    def take(self, span: Span) -> None:
        """Split the first free span that contains a span into the parts before and after it."""
        start, end = span
        i = bisect_left(self.highs, end)
        i = min(i, len(self.lows) - 1)
        self.highs.insert(i, start)
        self.lows.insert(i + 1, end)

    def containing(self, start: int, end: int) -> Span | None:
        """Return the free span that contains a span, if there is one."""
        i = bisect_left(self.highs, end)
        if i == len(self.lows) or start < self.lows[i]:
            return None
        return self.lows[i], self.highs[i]

    def contain(self, offsets: Indices) -> NDArray[np.bool_]:
        """Return for each offset whether it is in a free span."""
        indices = np.searchsorted(self.highs, offsets)
        return np.array([*self.lows, np.inf])[indices] <= offsets

    def nearest(self, offset: int) -> int:
        """Return the nearest offset in a free span."""
        i = bisect_left(self.highs, offset)
        edges = self.highs[max(i - 1, 0) : i]
        if i < len(self.lows):
            edges.append(max(offset, self.lows[i]))
        return min(edges, key=lambda edge: abs(edge - offset))


class WordLinks:
    """Two texts and the links between their words."""

    def __init__(self, source: str, target: str, links: Links) -> None:
        """Ignore links to words that do not exist; without links, assume the same word order in both texts."""
        self.texts = source, target
        self.source, self.target = words_of(source), words_of(target)
        sizes = len(self.source), len(self.target)
        if not links and all(sizes):
            links = [(t * sizes[0] // sizes[1], t, 1.0) for t in range(sizes[1])]
        self.shares: list[dict[int, float]] = [{} for _ in self.target]
        for s, t, weight in links:
            if 0 <= s < sizes[0] and 0 <= t < sizes[1] and weight > 0:
                self.shares[t][s] = self.shares[t].get(s, 0.0) + weight
        targets_of, shares_of = defaultdict[int, list[int]](list), defaultdict[int, list[float]](list)
        for t, shares in enumerate(self.shares):
            total = sum(shares.values())
            for s in shares:
                shares[s] /= total
                targets_of[s].append(t)
                shares_of[s].append(shares[s])
        # For each source word: the target words that it is linked to, and its share of each.
        self._of_source: dict[int, tuple[Indices, Vector]] = {}
        for s, targets in targets_of.items():
            self._of_source[s] = np.array(targets, np.int64), np.array(shares_of[s])
        # The number of source words left of the last cut, and their mass: cuts move from left to right.
        self._on_left = 0, np.zeros(len(self.target))
        self.linked = np.array(list(map(bool, self.shares)), bool)
        _, _, self._starts, self._ends = columns_of(self.target)
        _, _, self._source_starts, self._source_ends = columns_of(self.source)
        self._source_middles = list(map(_middle, self.source))

    def touched(self, span: Span) -> range:
        """Return the source words that overlap a span by at least one letter."""
        return range(bisect_right(self._source_ends, span[0]), bisect_left(self._source_starts, span[1]))

    def covered_words(self, span: Span) -> set[int]:
        """Return the source words of which a span covers at least half, else the one that it covers most."""
        shares: dict[int, float] = {}
        for i in self.touched(span):
            word = self.source[i]
            covered = min(word.core_end, span[1]) - max(word.core_start, span[0])
            if covered > 0:
                shares[i] = covered / (word.core_end - word.core_start)
        words = {i for i, share in shares.items() if share >= _HALF}
        if words or not shares:
            return words
        return {max(shares, key=shares.__getitem__)}

    def mass(self, words: Iterable[int]) -> Vector:
        """Return for each target word the share of its links to the given source words."""
        mass = np.zeros(len(self.target))
        for s in words:
            targets, shares = self.shares_of(s)
            mass[targets] += shares
        return mass

    def weights(self, source_words: set[int], sibling_mass: Vector) -> Vector:
        """Return for each target word the gain of having it in an element; words with a negative gain stay outside.

        Args:
            source_words: the source words of the element.
            sibling_mass: the mass of the words of this element and its siblings.
        """
        own_mass = self.mass(source_words)
        return np.where(self.linked, 2 * own_mass - sibling_mass - _HALF, 0.0)

    def best_run(self, source_words: set[int], sibling_mass: Vector, free: FreeSpans) -> Run | None:
        """Return the run of target words with the greatest weight within one free span, if there is one.

        The run may contain words without links, but does not begin or end with one.
        """
        weights = self.weights(source_words, sibling_mass)
        best_total, run = _NOISE, None
        # Only free spans that contain a word with a gain can have a run.
        candidates = np.flatnonzero(weights > _NOISE)
        free_spans = dict.fromkeys(free.containing(self._starts[t], self._ends[t]) for t in candidates)
        for free_span in filter(None, free_spans):
            start = bisect_left(self._starts, free_span[0])
            first, last, total = _heaviest(weights[start : bisect_right(self._ends, free_span[1])])
            if total > best_total + _NOISE:
                best_total, run = total, Run(start + first, start + last, *free_span)
        if run is None:
            return self._single(source_words, free)
        unlinked = int(np.argmax(self.linked[run.first :]))
        return run._replace(first=run.first + unlinked)

    def _single(self, source_words: set[int], free: FreeSpans) -> Run | None:
        """Return the free word with the strongest links to an element, even if it has stronger links to others."""
        mass = self.mass(source_words)
        for t in np.argsort(-mass, kind="stable"):
            if mass[t] <= FAINT:
                break
            if free_span := free.containing(self._starts[t], self._ends[t]):
                return Run(int(t), int(t), *free_span)
        return None

    def grown(self, run: Run, is_first: bool, is_last: bool) -> Run:
        """Extend a run by the unlinked words before it if it is first in its parent, and after it if it is last."""
        first, last = run.first, run.last
        while is_first and first and not self.shares[first - 1] and self.target[first - 1].start >= run.low:
            first -= 1
        last_index = len(self.target) - 1
        while is_last and last < last_index and not self.shares[last + 1] and self.target[last + 1].end <= run.high:
            last += 1
        return run._replace(first=first, last=last)

    def part_of_word(self, span: Span, run: Run) -> Span | None:
        """Return the part of a target run that matches part of a source word; None if the span is not part of one word.

        If the run contains the same letters, these are the result. Otherwise, the result is as many letters at the
        beginning or end of a single target word, or the words at the same relative position in a run of several.
        """
        touched = self.touched(span)
        if len(touched) != 1:
            return None
        word = self.source[touched[0]]
        size = word.core_end - word.core_start
        before, after = span[0] - word.core_start, word.core_end - span[1]
        if before <= 0 and after <= 0:
            return None
        words = self.target[run.first : run.last + 1]
        low, high = words[0].core_start, words[-1].core_end
        source_part = self.texts[0][max(span[0], word.core_start) : min(span[1], word.core_end)]
        copy_start = self.texts[1].find(source_part, low, high)
        if copy_start >= 0 and len(source_part) > 1:
            return copy_start, copy_start + len(source_part)
        expected = low + (high - low) * max(before, 0) / size, high - (high - low) * max(after, 0) / size
        if len(words) > 1:
            first = min(words, key=lambda word: abs(word.core_start - expected[0]))
            last = min(words[words.index(first) :], key=lambda word: abs(word.core_end - expected[1]))
            return first.core_start, last.core_end
        letters = min(len(source_part), max(high - low - 1, 1))
        if before <= 0:
            return low, low + letters
        if after <= 0:
            return high - letters, high
        start = min(round(expected[0]), high - 1)
        return start, max(round(expected[1]), start + 1)

    def punctuation(self, span: Span) -> tuple[str | None, str]:
        """Return the punctuation before and after the source words in a span, limited to the span.

        The former is None if the first word has no punctuation before it.
        """
        touched = self.touched(span)
        first, last = self.source[touched[0]], self.source[touched[-1]]
        text = self.texts[0]
        opening = None
        if first.start < first.core_start:
            opening = text[max(first.start, span[0]) : first.core_start]
        return opening, text[last.core_end : min(last.end, span[1])]

    def left_of(self, offset: int) -> int:
        """Return the number of source words before an offset."""
        return bisect_right(self._source_middles, offset)

    @cached_property
    def middles(self) -> Vector:
        """The middle of each target word, in characters."""
        return np.array(list(map(_middle, self.target)))

    def crossing(self, left_count: int) -> Vector:
        """Return for each gap between target words, from the one before the first, the mass of the links that cross it.

        A link crosses the cut between the texts if only one of its words is before the cut.

        Args:
            left_count: the number of source words before the cut.
        """
        last_count, on_left = self._on_left
        if left_count < last_count:
            last_count, on_left = 0, np.zeros(len(self.target))
        on_left = on_left + self.mass(range(last_count, left_count))
        self._on_left = left_count, on_left
        # In the gap before the first target word, all links of the left words cross. In the gap after a target word,
        # its links to the left do not cross, and its links to the right do.
        return np.cumsum(np.concatenate(([on_left.sum()], self.linked - 2 * on_left)))  # [T + 1]

    def shares_of(self, source: int) -> tuple[Indices, Vector]:
        """Return the target words linked to a source word, and its share of each; none if it does not exist."""
        return self._of_source.get(source, _NO_LINKS)


def with_copies(links: Links, source: str, target: str, copies: Iterable[tuple[int, int]]) -> Links:
    """Return links in which copied words are linked to their copies only.

    Args:
        links: the links of the model; they may be empty, and then stay so.
        source: the source text.
        target: its translation.
        copies: the offsets of copied words in both texts.
    """
    if not links:
        return links
    source_words, target_words, start = words_of(source), words_of(target), attrgetter("start")
    pairs: dict[int, int] = {}
    for s, t in copies:
        pairs[bisect_right(source_words, s, key=start) - 1] = bisect_right(target_words, t, key=start) - 1
    copied = set(pairs.values())
    corrected = [link for link in links if link[0] not in pairs and link[1] not in copied]
    for s, t in pairs.items():
        corrected.append((s, t, 1.0))
    return corrected


def _heaviest(weights: Vector) -> tuple[int, int, float]:
    """Return the first and last index of the run with the greatest sum (the shortest of equal ones), and the sum."""
    sums = np.cumsum(weights)
    before = np.concatenate(([0.0], sums[:-1]))
    totals = sums - np.minimum.accumulate(before)  # the greatest sum of a run that ends here
    last = int(np.argmax(totals >= totals.max() - _NOISE))
    minimum = before[: last + 1].min() + _NOISE
    first = last - int(np.argmax(before[last::-1] <= minimum))
    return first, last, float(totals[last])


def _middle(word: Word) -> float:
    return (word.core_start + word.core_end) / 2


def columns_of(words: Iterable[Word]) -> tuple[list[int], ...]:
    """Return the starts of words, their ends, the starts of their cores, and the ends of their cores."""
    return tuple(map(list, zip(*words, strict=True))) or ([], [], [], [])


def words_of(text: str) -> list[Word]:
    """Return the words of a text, as `linked_words` separates them.

    >>> words_of("«yes» …")
    [Word(start=0, end=5, core_start=1, core_end=4), Word(start=6, end=7, core_start=6, core_end=7)]
    """
    words = []
    for match in LINKED_WORD.finditer(text):
        start, end = match.span()
        core_start = end - len(match[0].lstrip(_STRIPPED))
        core_end = start + len(match[0].rstrip(_STRIPPED))
        if core_start == end:  # punctuation alone
            core_start, core_end = start, end
        words.append(Word(start, end, core_start, core_end))
    return words
