"""How well words are translated that the training text has seldom or never: F1 by frequency.

A word of a translation is right if its reference has it, as often as it stands there; precision and recall are over
all words of a class of frequencies, as compare-mt reckons them (Neubig et al. 2019, arXiv 1903.07926, section 2).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from translucid.evaluation.metrics import DEFAULT, bleu_metric

EDGES = (0, 1, 2, 3, 4, 5, 10, 100, 1000)
"""First frequency of each class; the last one is open."""


class FrequencyRow(NamedTuple):
    """The words of one class of frequencies."""

    times: str
    """How often the training text has such a word, such as `0`, `5-9` or `1000+`."""
    words: int
    """Such words in the references."""
    written: int
    """Such words in the translations."""
    right: int

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall, 0 to 100."""
        return 200 * self.right / max(self.words + self.written, 1)


def split_words(*, tokenize: str = DEFAULT, lowercase: bool = False) -> Callable[[str], list[str]]:
    """Return what cuts a text into words, as sacreBLEU's BLEU does with the same arguments."""
    tokens = bleu_metric(tokenize).tokenizer

    def words(text: str) -> list[str]:
        cut: str = tokens((text.lower() if lowercase else text).rstrip())
        return cut.split()

    return words


def frequencies(texts: Iterable[str], words: Callable[[str], list[str]]) -> Counter[str]:
    """Count the words of a text."""
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(words(text))
    return counts


def by_frequency(
    hypotheses: Sequence[str],
    references: Sequence[str],
    counts: Mapping[str, int],
    words: Callable[[str], list[str]],
    edges: Sequence[int] = EDGES,
) -> list[FrequencyRow]:
    """Return how well the words of each class are translated; classes that no reference has a word of are left out.

    Args:
        hypotheses: translations.
        references: one for each.
        counts: how often the training text has each word; a word that it lacks counts as 0.
        words: cuts a text into words.
        edges: the first frequency of each class, from 0.
    """
    wanted, written, right = Counter[int](), Counter[int](), Counter[int]()
    for hypothesis, reference in zip(hypotheses, references, strict=True):
        ours, theirs = Counter(words(hypothesis)), Counter(words(reference))
        for total, found in (wanted, theirs), (written, ours), (right, ours & theirs):
            for word, count in found.items():
                total[counts.get(word, 0)] += count
    rows = []
    for first, after in pairwise([*edges, None]):
        assert first is not None
        inside = [times for times in wanted | written if times >= first and (after is None or times < after)]
        sums = (sum(total[times] for times in inside) for total in (wanted, written, right))
        name = f"{first}+" if after is None else f"{first}" if after == first + 1 else f"{first}-{after - 1}"
        row = FrequencyRow(name, *sums)
        if row.words:
            rows.append(row)
    return rows
