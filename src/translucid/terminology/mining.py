"""Translations of words, learned from sentence pairs alone: IBM model 1 in both directions.

Brown et al. 1993 (J93-2003, section 4.1): p(t | s) = c(s, t) / sum_t c(s, t), where c counts how often t is linked to
s, and each t of a sentence is linked to its words s in proportion to p(t | s). The product of both directions excludes
most wrong links (Liang et al. 2006, N06-1014, section 3.1).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from bitext.pair import Pair
from bitext.words import Word, folded, words_in

ROUNDS = 6
"""The number of rounds of expectation maximization."""
MOST_LINKS = 20_000_000
"""The largest number of possible links between words to learn from; each takes 40 bytes."""
LIKELY = 0.2
"""The smallest geometric mean of p(t | s) and p(s | t) of a translation."""
COMMON = 100
"""The number of most frequent words of each language that are not terms: articles, pronouns, auxiliaries."""


class Lexicon:
    """Translations of single words, in lower case."""

    def __init__(self, likely: Mapping[str, Mapping[str, float]], common: Iterable[str] = ()) -> None:
        """Create a lexicon.

        Args:
            likely: for each source word, the strengths of its translations.
            common: words that are not terms.
        """
        self.likely, self.common = likely, frozenset(common)
        self._by_ending: dict[str, list[str]] = {}
        for word in likely:
            if word not in self.common:
                self._by_ending.setdefault(word[-2:], []).append(word)

    @classmethod
    def learn(cls, pairs: Iterable[Pair]) -> Lexicon:
        """Learn from sentence pairs; stop at `MOST_LINKS` possible links."""
        source_side, target_side = _Side(), _Side()
        # For each possible link: its source and target word, and the tokens that it links.
        source_words, target_words, source_tokens, target_tokens = [], [], [], []
        links = source_total = target_total = 0
        for pair in pairs:
            sources, targets = folded(content(pair.source)), folded(content(pair.target))
            if links + len(sources) * len(targets) > MOST_LINKS:
                break
            links += len(sources) * len(targets)
            s, t = source_side.add(sources), target_side.add(targets)
            source_words.append(np.repeat(s, len(t)))
            target_words.append(np.tile(t, len(s)))
            source_tokens.append(np.repeat(np.arange(len(s)), len(t)) + source_total)
            target_tokens.append(np.tile(np.arange(len(t)), len(s)) + target_total)
            source_total, target_total = source_total + len(s), target_total + len(t)
        if not links:
            return cls({})
        width = len(target_side.numbers)
        keys, pair_of_link = np.unique(
            np.concatenate(source_words) * width + np.concatenate(target_words), return_inverse=True
        )
        pair_sources, pair_targets = keys // width, keys % width
        # Each target token distributes its count over the source words of its sentence, and vice versa.
        forward = _translation_probability(pair_of_link, pair_sources, np.concatenate(target_tokens))
        backward = _translation_probability(pair_of_link, pair_targets, np.concatenate(source_tokens))
        strength = np.sqrt(forward * backward)
        likely: dict[str, dict[str, float]] = {}
        source_names, target_names = list(source_side.numbers), list(target_side.numbers)
        for index in np.flatnonzero(strength >= LIKELY):
            source_word, target_word = source_names[pair_sources[index]], target_names[pair_targets[index]]
            likely.setdefault(source_word, {})[target_word] = float(strength[index])
        return cls(likely, source_side.common() | target_side.common())

    def ending(self, word: str) -> Sequence[str]:
        """Return the source words that may be terms and end with the same two letters; `word` if there are none."""
        return self._by_ending.get(word[-2:], [word])

    def links(self, source: Sequence[Word], target: Sequence[Word]) -> list[tuple[int, int]]:
        """Return links between words of a sentence pair, at most one for each word; stronger links are chosen first."""
        strengths: dict[tuple[int, int], float] = {}
        targets = folded(target)
        for i, word in enumerate(source):
            translations = self.likely.get(word.text.casefold(), {})
            for j, target_word in enumerate(targets):
                if strength := translations.get(target_word):
                    strengths[i, j] = strength
        chosen: list[tuple[int, int]] = []
        for link in sorted(strengths, key=lambda link: (-strengths[link], link)):
            if all(link[0] != i and link[1] != j for i, j in chosen):
                chosen.append(link)
        return sorted(chosen)

    def terms(self, source: Sequence[Word], target: Sequence[Word]) -> list[tuple[int, int]]:
        """Return the links between words that may be terms."""
        links = []
        for i, j in self.links(source, target):
            words = {source[i].text.casefold(), target[j].text.casefold()}
            if len(source[i].text) > 2 and self.common.isdisjoint(words):
                links.append((i, j))
        return links


class _Side:
    """The words of one language, numbered in the order of their first occurrence."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}
        self.counts: Counter[str] = Counter()

    def add(self, words: list[str]) -> NDArray[np.int64]:
        """Count the words of a sentence, and return their numbers."""
        self.counts.update(words)
        return np.array([self.numbers.setdefault(word, len(self.numbers)) for word in words], np.int64)

    def common(self) -> set[str]:
        return {word for word, _ in self.counts.most_common(COMMON)}


def content(text: str) -> list[Word]:
    """Return the words of a text that begin with a letter."""
    return [word for word in words_in(text) if word.text[0].isalpha()]


def _translation_probability(
    pair_of_link: NDArray[np.int64], condition: NDArray[np.int64], token: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return p(word | given word) of each pair of words.

    Args:
        pair_of_link: [links] the pair of words of each link.
        condition: [pairs] the given word of each pair.
        token: [links] the token whose count is distributed, numbered through all sentences.
    """
    probability = np.ones(len(condition))
    for _ in range(ROUNDS):
        weight = probability[pair_of_link]
        weight /= np.bincount(token, weight)[token]
        count = np.bincount(pair_of_link, weight, len(condition))
        probability = count / np.bincount(condition, count)[condition]
    return probability
