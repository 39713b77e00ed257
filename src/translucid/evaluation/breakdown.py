"""Scores by the length of the source sentence, and by the frequency of words in the training text.

Each occurrence of a word that translation and reference share is correct. Precision and recall are over all words of a
class of frequencies, as in compare-mt (Neubig et al. 2019, arXiv 1903.07926, section 2).
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from bitext.words import spaced
from translucid.evaluation.metrics import DEFAULT, ReferenceSets, bleu_metric

LENGTHS = (1, 6, 11, 16, 21, 31, 41, 61)
"""The smallest source length, in words, of each bucket; the last bucket is open."""
FREQUENCIES = (0, 1, 2, 3, 4, 5, 10, 100, 1000)
"""The lowest frequency of each class; the last class is open."""


class LengthRow(NamedTuple):
    """The sentences of one bucket."""

    words: str
    """The source lengths, such as `6-10` or `61+`."""
    sentences: int
    bleu: float
    chrf: float
    length_ratio: float
    """The number of words per word of the first reference."""

    def value(self, metric: str) -> float:
        """Return the score of `BLEU` or `chrF`."""
        return self.bleu if metric == "BLEU" else self.chrf


def by_length(
    sources: Sequence[str],
    hypotheses: Sequence[str],
    references: ReferenceSets,
    *,
    tokenize: str = DEFAULT,
    lowercase: bool = False,
) -> list[LengthRow]:
    """Score the sentences of each bucket of source lengths; empty buckets are left out."""
    from sacrebleu.metrics.chrf import CHRF

    bleu, chrf = bleu_metric(tokenize, lowercase=lowercase), CHRF(lowercase=lowercase)
    # Lengths below the first edge belong to no bucket.
    buckets = defaultdict[int, list[int]](list)
    for i, source in enumerate(sources):
        buckets[bisect_right(LENGTHS, _words(source)) - 1].append(i)
    rows = []
    for bucket, name in enumerate(interval_names(LENGTHS)):
        indices = buckets[bucket]
        if not indices:
            continue
        texts = list(map(hypotheses.__getitem__, indices))
        reference_texts = [list(map(reference.__getitem__, indices)) for reference in references]
        scores = bleu.corpus_score(texts, reference_texts).score, chrf.corpus_score(texts, reference_texts).score  # type: ignore[arg-type]
        ratio = sum(map(_words, texts)) / max(sum(map(_words, reference_texts[0])), 1)
        rows.append(LengthRow(name, len(indices), *scores, ratio))
    return rows


def interval_names(edges: Sequence[int]) -> list[str]:
    """Return the names of the intervals between whole numbers, such as `0`, `5-9` and, for the last, `1000+`."""
    names = []
    for start, end in pairwise(edges):
        names.append(f"{start}-{end - 1}" if end - start > 1 else f"{start}")
    return [*names, f"{edges[-1]}+"]


def _words(text: str | None) -> int:
    return len(spaced(text or "").split())


class FrequencyRow(NamedTuple):
    """The words of one class of frequencies."""

    times: str
    """The frequency of the words in the training text, such as `0`, `5-9` or `1000+`."""
    words: int
    """The number of such words in the references."""
    written: int
    """The number of such words in the translations."""
    right: int
    """The number of correct words."""

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall, 0 to 100."""
        return 200 * self.right / max(self.words + self.written, 1)


def split_words(*, tokenize: str = DEFAULT, lowercase: bool = False) -> Callable[[str], list[str]]:
    """Return a function that splits a text into words, as sacreBLEU's BLEU does with the same arguments."""
    tokenizer = bleu_metric(tokenize).tokenizer

    def words(text: str) -> list[str]:
        if lowercase:
            text = text.lower()
        tokenized: str = tokenizer(text.rstrip())
        return tokenized.split()

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
    edges: Sequence[int] = FREQUENCIES,
) -> list[FrequencyRow]:
    """Return a row for each class of frequencies with words in the references.

    Args:
        hypotheses: the translations.
        references: one reference for each.
        counts: the count of each word in the training text.
        words: a function that splits a text into words.
        edges: the lowest frequency of each class, from 0.
    """
    # The numbers of words by the index of their class.
    reference_counts, hypothesis_counts, correct_counts = Counter[int](), Counter[int](), Counter[int]()
    for hypothesis, reference in zip(hypotheses, references, strict=True):
        # The intersection of counters has the smaller count of each word.
        in_hypothesis, in_reference = Counter(words(hypothesis)), Counter(words(reference))
        counters = (
            (reference_counts, in_reference),
            (hypothesis_counts, in_hypothesis),
            (correct_counts, in_hypothesis & in_reference),
        )
        for total, counter in counters:
            for word, count in counter.items():
                total[bisect_right(edges, counts.get(word, 0)) - 1] += count
    rows = []
    for index, name in enumerate(interval_names(edges)):
        if reference_counts[index]:
            rows.append(FrequencyRow(name, reference_counts[index], hypothesis_counts[index], correct_counts[index]))
    return rows
