"""Which words translate which, learned from sentence pairs alone: IBM model 1 in both directions.

Brown et al. 1993 (J93-2003, section 4.1): p(t | s) = c(s, t) / sum_t c(s, t), where c counts how often t is linked to
s, and each t of a sentence is linked to its words s in proportion to p(t | s). Both directions together leave out most
wrong links (Liang et al. 2006, N06-1014, section 3.1).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from translucid.data.readers.corpus import Pair
from translucid.data.words import Word, words_in

ROUNDS = 6
"""Of expectation maximisation."""
MOST_LINKS = 20_000_000
"""Possible links between words that are learned from, at most; they take 40 bytes each."""
LIKELY = 0.2
"""p(t | s) * p(s | t) of what counts as a translation, at least, as its square root."""
COMMON = 100
"""So many of the most frequent words of a language are no terms: articles, pronouns, auxiliaries."""


class Lexicon:
    """Translations of single words, in lower case."""

    def __init__(self, likely: Mapping[str, Mapping[str, float]], common: Iterable[str] = ()) -> None:
        """`likely`: by source word, how likely its translations are; `common`: words that are no terms."""
        self.likely, self.common = likely, frozenset(common)
        self._by_ending: dict[str, list[str]] = {}
        for word in likely:
            if word not in self.common:
                self._by_ending.setdefault(word[-2:], []).append(word)

    @classmethod
    def learn(cls, pairs: Iterable[Pair]) -> Lexicon:
        """Learn from sentence pairs, from the first ones if there are very many; the same pairs give the same."""
        numbers: tuple[dict[str, int], dict[str, int]] = {}, {}
        counts: tuple[Counter[str], Counter[str]] = Counter(), Counter()
        sides: tuple[list[NDArray[np.int64]], list[NDArray[np.int64]]] = [], []
        links = 0
        for pair in pairs:
            texts = [[word.text.casefold() for word in content(text)] for text in pair]
            links += len(texts[0]) * len(texts[1])
            if links > MOST_LINKS:
                break
            for words, number, count, side in zip(texts, numbers, counts, sides, strict=True):
                count.update(words)
                side.append(np.array([number.setdefault(word, len(number)) for word in words], np.int64))
        names = [list(number) for number in numbers]
        common = (name for count in counts for name, _ in count.most_common(COMMON))
        if not links:
            return cls({})
        width = len(names[1])
        sources = np.concatenate([np.repeat(s, len(t)) for s, t in zip(*sides, strict=True)])
        targets = np.concatenate([np.tile(t, len(s)) for s, t in zip(*sides, strict=True)])
        keys, which = np.unique(sources * width + targets, return_inverse=True)
        both = keys // width, keys % width
        # Each target word of a sentence shares itself out among the source words, and the other way round.
        tokens_s, tokens_t = [], []
        total_s = total_t = 0
        for s, t in zip(*sides, strict=True):
            tokens_s.append(np.repeat(np.arange(len(s)), len(t)) + total_s)
            tokens_t.append(np.tile(np.arange(len(t)), len(s)) + total_t)
            total_s, total_t = total_s + len(s), total_t + len(t)
        forward = _learned(which, both[0], np.concatenate(tokens_t))
        backward = _learned(which, both[1], np.concatenate(tokens_s))
        likely: dict[str, dict[str, float]] = {}
        strength = np.sqrt(forward * backward)
        for at in np.flatnonzero(strength >= LIKELY):
            likely.setdefault(names[0][both[0][at]], {})[names[1][both[1][at]]] = float(strength[at])
        return cls(likely, common)

    def ending(self, word: str) -> Sequence[str]:
        """Return source words that may be terms and have the last two letters of a word; it alone if there are none."""
        return self._by_ending.get(word[-2:], [word])

    def links(self, source: Sequence[Word], target: Sequence[Word]) -> list[tuple[int, int]]:
        """Return which words of a pair translate each other: those that are the likeliest of each other there."""
        strengths = {
            (i, j): strength
            for i, one in enumerate(source)
            if (known := self.likely.get(one.text.casefold()))
            for j, other in enumerate(target)
            if (strength := known.get(other.text.casefold()))
        }
        best: list[tuple[int, int]] = []
        for link in sorted(strengths, key=lambda link: (-strengths[link], link)):
            if all(link[0] != i and link[1] != j for i, j in best):
                best.append(link)
        return sorted(best)

    def terms(self, source: Sequence[Word], target: Sequence[Word]) -> list[tuple[int, int]]:
        """Return the links between words that may be terms."""
        return [
            (i, j)
            for i, j in self.links(source, target)
            if len(source[i].text) > 2
            and source[i].text.casefold() not in self.common
            and target[j].text.casefold() not in self.common
        ]


def content(text: str) -> list[Word]:
    """Return the words of a text that have letters."""
    return [word for word in words_in(text) if word.text[0].isalpha()]


def _learned(which: NDArray[np.int64], given: NDArray[np.int64], token: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return p(word | given word) of each pair of words.

    Args:
        which: [links] the pair of words of each.
        given: [pairs] the given word of each.
        token: [links] the token that is shared out, numbered through the text.
    """
    probability = np.ones(len(given))
    for _ in range(ROUNDS):
        weight = probability[which]
        weight /= np.bincount(token, weight)[token]
        count = np.bincount(which, weight, len(given))
        probability = count / np.bincount(given, count)[given]
    return probability
