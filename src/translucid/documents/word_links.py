"""Word links between two texts: the run of target words that fits a span of the source, and what a cut breaks."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

Links = Sequence[tuple[int, int, float]]
"""Source word, target word, both counted from 0, words by white space, and how much they have to do with each other, in
any unit."""
Span = tuple[int, int]
"""Characters of a text: the first, and the one behind the last."""

FAINT = 0.2
"""A word has this share of its links in an element, or none of that is there."""
_AROUND = frozenset(".,;:!?…()[]\"'“”‘’„«»‹›¿¡。，、；：！？（）「」『』।")
"""Punctuation before and behind words; `%`, `{` and others belong to placeholders."""
_HALF = 0.5
"""A word is inside of what covers so much of it."""


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
        for shares in self.shares:
            total = sum(shares.values())
            shares.update({s: weight / total for s, weight in shares.items()})

    def inside(self, span: Span) -> set[int]:
        """Return the source words that are in a span: most of each, or else the one that has most of the span."""
        shares: dict[int, float] = {}
        for i, word in enumerate(self.source):
            covered = min(word.core_end, span[1]) - max(word.core_start, span[0])
            if covered > 0:
                shares[i] = covered / (word.core_end - word.core_start)
        most = {i for i, share in shares.items() if share >= _HALF}
        return most or set(sorted(shares, key=lambda i: -shares[i])[:1])

    def weight(self, target: int, inside: set[int], elsewhere: set[int]) -> float:
        """Return how much it is worth to have a target word in an element, less than 0 to have it outside.

        Args:
            target: its number.
            inside: source words of the element.
            elsewhere: source words of the elements beside it.
        """
        shares = self.shares[target]
        if not shares:
            return 0.0
        return sum(share * ((s in inside) - (s in elsewhere)) for s, share in shares.items()) - _HALF

    def best_run(self, inside: set[int], elsewhere: set[int], free: Sequence[Span]) -> Run | None:
        """Return the run of target words of the greatest weight in one of the free places, if there is one.

        Words without a link are in it between others, but not at its ends.
        """
        best, found = 0.0, None
        for low, high in free:
            total, first = 0.0, -1
            for t, word in enumerate(self.target):
                if word.core_start < low or word.core_end > high:
                    continue
                weight = self.weight(t, inside, elsewhere)
                if total <= 0 or first < 0:
                    total, first = 0.0, t
                total += weight
                if weight and total > best + 1e-9:
                    best, found = total, Run(first, t, low, high)
        return self._trimmed(found) if found else self._single(inside, free)

    def _single(self, inside: set[int], free: Sequence[Span]) -> Run | None:
        """Return the one word that has most to do with an element, where others have more to do with all of them."""
        most = [sum(share for s, share in shares.items() if s in inside) for shares in self.shares]
        for t in sorted(range(len(most)), key=lambda t: -most[t]):
            for low, high in free:
                if most[t] > FAINT and low <= self.target[t].core_start and self.target[t].core_end <= high:
                    return Run(t, t, low, high)
        return None

    def _trimmed(self, run: Run) -> Run:
        first = next(t for t in range(run.first, run.last + 1) if self.shares[t])
        return run._replace(first=first)

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
        touched = [word for word in self.source if word.core_start < span[1] and span[0] < word.core_end]
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
        touched = [word for word in self.source if word.core_start < span[1] and span[0] < word.core_end]
        first, last = touched[0], touched[-1]
        text = self.texts[0]
        opening = text[max(first.start, span[0]) : first.core_start] if first.start < first.core_start else None
        return opening, text[last.core_end : min(last.end, span[1])]

    def left_of(self, place: int) -> int:
        """Return how many source words are before a character."""
        return sum((word.core_start + word.core_end) / 2 <= place for word in self.source)

    def before(self, place: int) -> int:
        """Return how many target words are before a character."""
        return sum((word.core_start + word.core_end) / 2 <= place for word in self.target)

    def crossing(self, left: int) -> list[float]:
        """Return for each gap between target words, from that before the first, how much of the links crosses it.

        `left`: source words on the left of the cut; a link crosses it if its target word is on the right, and likewise.
        """
        on_left = [sum(share for s, share in shares.items() if s < left) for shares in self.shares]
        costs = [sum(on_left)]
        for shares, mass in zip(self.shares, on_left, strict=True):
            costs.append(costs[-1] + sum(shares.values()) - 2 * mass)
        return costs


def words_of(text: str) -> list[Word]:
    """Cut a text at white space.

    >>> words_of("«yes» …")
    [Word(start=0, end=5, core_start=1, core_end=4), Word(start=6, end=7, core_start=6, core_end=7)]
    """
    found = []
    for match in re.finditer(r"\S+", text):
        letters = [i for i, character in enumerate(match[0]) if character not in _AROUND]
        start, end = (letters[0], letters[-1] + 1) if letters else (0, len(match[0]))
        found.append(Word(*match.span(), match.start() + start, match.start() + end))
    return found
