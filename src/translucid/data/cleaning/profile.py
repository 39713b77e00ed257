"""What is usual in a corpus: its languages, its scripts, and the lengths of its translations."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from bitext.languages import Languages, short_code
from bitext.pair import Pair
from translucid.data.sentences import language_probabilities
from translucid.data.statistics import script

SAMPLE = 10_000
"""The number of pairs in the sample."""
GROUP_SIZE, MAX_GROUPS = 20, 100
"""The number of texts whose language is identified together, and the most such groups."""
MIN_SHARE = 0.05
"""The least share of the letters of a side that makes a script usual there."""
SLACK = 5
"""Characters that are added to both lengths, because the ratios of short texts vary more."""
MIN_PAIRS = 100
"""The fewest pairs from which the distribution of the ratio of lengths is estimated."""


@dataclass(frozen=True)
class Profile:
    """What is usual in a corpus."""

    languages: Languages
    scripts: tuple[frozenset[str], frozenset[str]]
    """The usual scripts of the source and of the target."""
    ratio: float = 0.0
    """The median of log(target / source characters)."""
    spread: float = math.inf
    """The standard deviation of that logarithm, from its quartiles, because bad pairs hardly change them."""

    @classmethod
    def of(cls, sample: Sequence[Pair], languages: Languages) -> Profile:
        """Return the profile of a sample; languages that are not given are identified."""
        sources = [pair.source for pair in sample if pair.source.strip()]
        targets = [pair.target for pair in sample if pair.target.strip()]
        source, target = languages
        profile = cls(
            (source or guess_language(sources), target or guess_language(targets)),
            (frozenset(_scripts(sources)), frozenset(_scripts(targets))),
        )
        ratios = [log_ratio(pair) for pair in sample if pair.source.strip() and pair.target.strip()]
        if len(ratios) < MIN_PAIRS:
            return profile
        low, ratio, high = np.quantile(ratios, (0.25, 0.5, 0.75))
        # The quartiles of a normal distribution are 1.349 standard deviations apart.
        return replace(profile, ratio=float(ratio), spread=float(high - low) / 1.349)


def log_ratio(pair: Pair) -> float:
    """Return log(target / source) of the lengths in characters, each with `SLACK`."""
    return math.log((len(pair.target.strip()) + SLACK) / (len(pair.source.strip()) + SLACK))


def guess_language(texts: Sequence[str]) -> str | None:
    """Return the language of most texts, None if they have no letters.

    Groups of texts are identified together, because the language of a short text is uncertain.
    """
    votes: Counter[str] = Counter()
    for start in range(0, min(len(texts), GROUP_SIZE * MAX_GROUPS), GROUP_SIZE):
        group = " ".join(texts[start : start + GROUP_SIZE])
        if any(map(str.isalpha, group)):
            probabilities = language_probabilities(group)
            votes[max(probabilities, key=probabilities.__getitem__)] += 1
    return votes.most_common(1)[0][0] if votes else None


def known_language(code: str | None) -> str | None:
    """Return the ISO 639 code of a language, None if `language_probabilities` does not know it."""
    language = short_code(code) if code else ""
    return language if language and language in language_probabilities("a") else None


def _scripts(texts: Sequence[str]) -> list[str]:
    letters = Counter(filter(None, map(script, "".join(texts))))
    return [kind for kind, count in letters.items() if count >= MIN_SHARE * letters.total()]
