"""The words of a source that contribute to a word of its translation, those of previous sentences included."""

from __future__ import annotations

from typing import NamedTuple

from translucid.decoding.hypothesis import percent
from translucid.inspection.inspected import Inspected
from translucid.inspection.words import span_ranges, span_words, sum_ranges

LARGE = 0.15
"""The smallest share of a target word for which a word of a previous sentence is named."""


class WordContribution(NamedTuple):
    """The contribution of a source word to a target word."""

    source: str
    target: str
    share: float
    """From 0 to 1; NaN if it is undefined."""

    def __str__(self) -> str:
        """Describe the contribution in one line."""
        return f"“{self.source}” of a previous sentence contributes {percent(self.share)} to “{self.target}”"


def word_contributions(inspected: Inspected, word: int) -> list[WordContribution]:
    """Return the contribution of each source word to a target word: context words first, then the sentence's.

    Shares are summed over the pieces of a source word, and averaged over those of the target word. They sum to less
    than 1: the rest comes from the target prefix, separators, language tokens and the end token.

    Args:
        inspected: an inspection with contributions; `Translation.inspect(contributions=True, with_context=True)`.
        word: the position of the target word, from 0.

    Raises:
        ValueError: contributions were not computed.
        IndexError: there is no such word.
    """
    target, start, end = inspected.target_spans[word]
    spans = [*inspected.context_spans, *inspected.source_spans[:-1]]
    shares = sum_ranges(inspected.with_contributions.source[start:end], span_ranges(spans)).mean(0)
    contributions = []
    for source, share in zip(span_words(spans), shares.tolist(), strict=True):
        contributions.append(WordContribution(source, target, share))
    return contributions


def largest_context_contribution(inspected: Inspected) -> WordContribution | None:
    """Return the largest contribution of a word of a previous sentence, if it is large.

    Raises:
        ValueError: contributions were not computed.
    """
    count = len(inspected.context_spans)
    candidates = []
    for word in range(len(inspected.target_words) - 1):
        for contribution in word_contributions(inspected, word)[:count]:
            if contribution.share >= LARGE:  # False for NaN
                candidates.append(contribution)
    return max(candidates, key=lambda contribution: contribution.share, default=None)
