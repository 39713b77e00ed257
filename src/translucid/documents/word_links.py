"""Word links between two texts: the run of target words that fits a span of the source, and what a cut breaks."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Vector: TypeAlias = NDArray[np.float64]
"""A number for each target word."""
Indices: TypeAlias = NDArray[np.int64]

Links = Sequence[tuple[int, int, float]]
"""Source word, target word, both counted from 0, words by white space, and how much they have to do with each other, in
any unit."""
Span = tuple[int, int]
"""Characters of a text: the first, and the one behind the last."""

FAINT = 0.2
"""A word has this share of its links in an element, or none of that is there."""
PUNCTUATION = frozenset(".,;:!?…()[]\"'“”‘’„«»‹›¿¡。，、；：！？（）「」『』।")
"""Punctuation before and behind words; `%`, `{` and others belong to placeholders."""
_HALF = 0.5
"""A word is inside of what covers so much of it."""
_NOISE = 1e-9
"""Sums that differ by less are equal."""
_NONE, _NOTHING = np.zeros(0, np.int64), np.zeros(0)


class Word(NamedTuple):
    """What stands between white space."""

    start: int
    """Characters of the text before it."""
    end: int
    core_start: int
    """Where it begins without its punctuation."""
    core_end: int


class Run(NamedTuple):
    """Target words side by side."""

    first: int
    last: int
    low: int
    """Characters of the target before the free place that they are in."""
    high: int


class FreePlaces:
    """What is left of a span of the target: places between those that are taken, even if nothing stands there."""

    def __init__(self, span: Span) -> None:
        """`span`: all of it is free yet."""
        self.lows, self.highs = [span[0]], [span[1]]

    def take(self, span: Span) -> None:
        """Part the first of the places that a span is in."""
        start, end = span
        i = bisect_left(self.highs, end)
        i = min(i, len(self.lows) - 1)
        self.highs.insert(i, start)
        self.lows.insert(i + 1, end)

    def containing(self, start: int, end: int) -> Span | None:
        """Return the place that a span is in; none if it is in none."""
        i = bisect_left(self.highs, end)
        return (self.lows[i], self.highs[i]) if i < len(self.lows) and self.lows[i] <= start else None

    def hold(self, places: Indices) -> NDArray[np.bool_]:
        """Return which of some characters there may be something before."""
        which = np.searchsorted(self.highs, places)
        return np.array([*self.lows, np.inf])[which] <= places

    def nearest(self, at: int) -> int:
        """Return the character nearest to one before which there may be something."""
        i = bisect_left(self.highs, at)
        edges = [self.highs[i - 1]] if i else []
        if i < len(self.lows):
            edges.append(max(at, self.lows[i]))
        return min(edges, key=lambda place: abs(place - at))


class WordLinks:
    """Two texts and the links between their words."""

    def __init__(self, source: str, target: str, links: Links) -> None:
        """Links to words that are not there are left out; without any, both texts are taken to have the same order."""
        self.texts = source, target
        self.source, self.target = words_of(source), words_of(target)
        sizes = len(self.source), len(self.target)
        if not links and all(sizes):
            links = [(t * sizes[0] // sizes[1], t, 1.0) for t in range(sizes[1])]
        self.shares: list[dict[int, float]] = [{} for _ in self.target]
        for s, t, weight in links:
            if 0 <= s < sizes[0] and 0 <= t < sizes[1] and weight > 0:
                self.shares[t][s] = self.shares[t].get(s, 0.0) + weight
        of_source: list[list[tuple[int, float]]] = [[] for _ in self.source]
        for t, shares in enumerate(self.shares):
            total = sum(shares.values())
            shares.update({s: weight / total for s, weight in shares.items()})
            for s, share in shares.items():
                of_source[s].append((t, share))
        self._of_source = [(np.array([t for t, _ in each], int), np.array([n for _, n in each])) for each in of_source]
        """By source word: the target words that it is linked to, and its share of each."""
        self._on_left = 0, np.zeros(len(self.target))
        """Of the last cut: source words on its left, and their mass."""
        self.linked = np.array([bool(shares) for shares in self.shares], bool)
        self._starts = [word.core_start for word in self.target]
        self._ends = [word.core_end for word in self.target]
        self._source_middles = [_middle(word) for word in self.source]
        self._source_starts = [word.core_start for word in self.source]
        self._source_ends = [word.core_end for word in self.source]

    def touched(self, span: Span) -> range:
        """Return the source words that a span has a letter of."""
        return range(bisect_right(self._source_ends, span[0]), bisect_left(self._source_starts, span[1]))

    def inside(self, span: Span) -> set[int]:
        """Return the source words that are in a span: most of each, or else the one that has most of the span."""
        shares: dict[int, float] = {}
        for i in self.touched(span):
            word = self.source[i]
            covered = min(word.core_end, span[1]) - max(word.core_start, span[0])
            if covered > 0:
                shares[i] = covered / (word.core_end - word.core_start)
        most = {i for i, share in shares.items() if share >= _HALF}
        return most or set(sorted(shares, key=lambda i: -shares[i])[:1])

    def mass(self, words: Iterable[int]) -> Vector:
        """Return how much of the links of each target word goes to some source words."""
        found = np.zeros(len(self.target))
        for s in words:
            targets, shares = self._of_source[s]
            found[targets] += shares
        return found

    def weights(self, inside: set[int], around: Vector) -> Vector:
        """Return how much it is worth to have each target word in an element, less than 0 to have it outside.

        Args:
            inside: source words of the element.
            around: mass of the words of this element and of those beside it.
        """
        own = self.mass(inside)
        return np.where(self.linked, 2 * own - around - _HALF, 0.0)

    def best_run(self, inside: set[int], around: Vector, free: FreePlaces) -> Run | None:
        """Return the run of target words of the greatest weight in one of the free places, if there is one.

        Words without a link are in it between others, but not at its ends.
        """
        if not self.target:
            return None
        weights = self.weights(inside, around)
        best, found = _NOISE, None
        # Words of the same free place are neighbours. Only places with a word worth having are looked at.
        worthy = np.flatnonzero(weights > _NOISE)
        for place in dict.fromkeys(free.containing(self._starts[t], self._ends[t]) for t in worthy):
            if place is None:
                continue
            begin = bisect_left(self._starts, place[0])
            first, last, total = _heaviest(weights[begin : bisect_right(self._ends, place[1])])
            if total > best + _NOISE:
                best, found = total, Run(begin + first, begin + last, *place)
        if found is None:
            return self._single(inside, free)
        unlinked = next(i for i, linked in enumerate(self.linked[found.first :]) if linked)
        return found._replace(first=found.first + unlinked)

    def _single(self, inside: set[int], free: FreePlaces) -> Run | None:
        """Return the one word that has most to do with an element, where others have more to do with all of them."""
        most = self.mass(inside)
        for t in np.argsort(-most, kind="stable"):
            if most[t] <= FAINT:
                break
            if place := free.containing(self._starts[t], self._ends[t]):
                return Run(int(t), int(t), *place)
        return None

    def grown(self, run: Run, leads: bool, ends: bool) -> Run:
        """Return a run with the words without links before it, if it leads, and behind it, if it ends what it is in."""
        first, last = run.first, run.last
        while leads and first and not self.shares[first - 1] and self.target[first - 1].start >= run.low:
            first -= 1
        end = len(self.target) - 1
        while ends and last < end and not self.shares[last + 1] and self.target[last + 1].end <= run.high:
            last += 1
        return run._replace(first=first, last=last)

    def part_of_word(self, span: Span, run: Run) -> Span | None:
        """Return what fits part of a source word in the run of target words that fits the word; None if it is no part.

        That is the same letters if they stand there, so many letters of the beginning or the end of one word, or the
        words that stand there in proportion.
        """
        touched = [self.source[i] for i in self.touched(span)]
        if len(touched) != 1:
            return None
        size = touched[0].core_end - touched[0].core_start
        before, after = span[0] - touched[0].core_start, touched[0].core_end - span[1]
        if before <= 0 and after <= 0:
            return None
        words = self.target[run.first : run.last + 1]
        low, high = words[0].core_start, words[-1].core_end
        part = self.texts[0][max(span[0], touched[0].core_start) : min(span[1], touched[0].core_end)]
        same = self.texts[1].find(part, low, high)
        if same >= 0 and len(part) > 1:
            return same, same + len(part)
        wanted = low + (high - low) * max(before, 0) / size, high - (high - low) * max(after, 0) / size
        if len(words) > 1:
            first = min(range(len(words)), key=lambda i: abs(words[i].core_start - wanted[0]))
            last = min(range(first, len(words)), key=lambda i: abs(words[i].core_end - wanted[1]))
            return words[first].core_start, words[last].core_end
        letters = min(len(part), max(high - low - 1, 1))
        if before <= 0:
            return low, low + letters
        if after <= 0:
            return high - letters, high
        start = min(round(wanted[0]), high - 1)
        return start, max(round(wanted[1]), start + 1)

    def punctuation(self, span: Span) -> tuple[str | None, str]:
        """Return the punctuation at both ends of the source words in a span, as far as it is in the span.

        The first is None if the first word has none before it.
        """
        touched = self.touched(span)
        first, last = self.source[touched[0]], self.source[touched[-1]]
        text = self.texts[0]
        opening = text[max(first.start, span[0]) : first.core_start] if first.start < first.core_start else None
        return opening, text[last.core_end : min(last.end, span[1])]

    def left_of(self, place: int) -> int:
        """Return how many source words are before a character."""
        return bisect_right(self._source_middles, place)

    @cached_property
    def middles(self) -> Vector:
        """Where the middle of each target word is."""
        return np.array([_middle(word) for word in self.target])

    def crossing(self, left: int) -> Vector:
        """Return for each gap between target words, from that before the first, how much of the links crosses it.

        `left`: source words on the left of the cut; a link crosses it if its target word is on the right, and likewise.
        """
        at, on_left = self._on_left
        on_left = self.mass(range(left)) if left < at else on_left + self.mass(range(at, left))
        self._on_left = left, on_left
        return np.cumsum(np.concatenate(([on_left.sum()], self.linked - 2 * on_left)))

    def shares_of(self, source: int) -> tuple[Indices, Vector]:
        """Return the target words that a source word is linked to, and its share of each; none if there is no such."""
        return self._of_source[source] if 0 <= source < len(self.source) else (_NONE, _NOTHING)


def with_copies(links: Links, source: str, target: str, copies: Iterable[tuple[int, int]]) -> Links:
    """Return links in which words that were copied are linked to their copies, and to nothing else.

    Args:
        links: those that the model has; without any there is nothing to correct.
        source: a text.
        target: its translation.
        copies: where copied words begin in both.
    """
    if not links:
        return links
    starts = [[word.start for word in words_of(text)] for text in (source, target)]
    pairs = {bisect_right(starts[0], s) - 1: bisect_right(starts[1], t) - 1 for s, t in copies}
    targets = {*pairs.values()}
    others = [link for link in links if link[0] not in pairs and link[1] not in targets]
    return [*others, *((s, t, 1.0) for s, t in pairs.items())] if pairs else links


def _heaviest(weights: Vector) -> tuple[int, int, float]:
    """Return the ends of the run with the greatest sum, of equal ones a short one, and the sum."""
    sums = np.cumsum(weights)
    before = np.concatenate(([0.0], sums[:-1]))
    totals = sums - np.minimum.accumulate(before)
    last = int(np.argmax(totals >= totals.max() - _NOISE))
    least = before[: last + 1].min() + _NOISE
    first = last - int(np.argmax(before[last::-1] <= least))
    return first, last, float(totals[last])


def _middle(word: Word) -> float:
    return (word.core_start + word.core_end) / 2


def words_of(text: str) -> list[Word]:
    """Cut a text at white space.

    >>> words_of("«yes» …")
    [Word(start=0, end=5, core_start=1, core_end=4), Word(start=6, end=7, core_start=6, core_end=7)]
    """
    found = []
    for match in re.finditer(r"\S+", text):
        letters = [i for i, character in enumerate(match[0]) if character not in PUNCTUATION]
        start, end = (letters[0], letters[-1] + 1) if letters else (0, len(match[0]))
        found.append(Word(*match.span(), match.start() + start, match.start() + end))
    return found
