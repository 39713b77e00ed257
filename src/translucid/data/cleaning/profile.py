"""What is usual in a corpus: its languages, its scripts, and how long translations are."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from translucid.data.languages import Languages, parts
from translucid.data.readers.corpus import Pair
from translucid.data.sentences import language_probabilities
from translucid.data.statistics import script

SAMPLE = 10_000
"""Pairs that are looked at."""
TOGETHER, VOTES = 20, 100
"""Texts that are told a language of together, and how often that is done."""
USUAL = 0.05
"""Share of a side's letters that a script has which is usual there."""
SLACK = 5
"""Characters that both lengths are taken longer by, as those of short texts differ more."""
FEWEST = 100
"""Pairs that a distribution of lengths can be learned from."""


@dataclass(frozen=True)
class Profile:
    """What is usual in a corpus, source first."""

    languages: Languages
    scripts: tuple[frozenset[str], frozenset[str]]
    ratio: float = 0.0
    """Median of log(target / source characters)."""
    spread: float = math.inf
    """The same one's standard deviation, from its quartiles, which rubbish does not move."""

    @classmethod
    def of(cls, sample: Sequence[Pair], languages: Languages) -> Profile:
        """Look at a sample; languages that are given are not guessed."""
        sides = [[pair[side] for pair in sample if pair[side].strip()] for side in (0, 1)]
        source, target = (given or guess_language(texts) for given, texts in zip(languages, sides, strict=True))
        scripts = frozenset(_scripts(sides[0])), frozenset(_scripts(sides[1]))
        ratios = [log_ratio(pair) for pair in sample if pair.source.strip() and pair.target.strip()]
        if len(ratios) < FEWEST:
            return cls((source, target), scripts)
        low, ratio, high = np.quantile(ratios, (0.25, 0.5, 0.75))
        return cls((source, target), scripts, float(ratio), float(high - low) / 1.349)


def log_ratio(pair: Pair) -> float:
    """Return log(target / source) of the lengths in characters, each with `SLACK`."""
    return math.log((len(pair.target.strip()) + SLACK) / (len(pair.source.strip()) + SLACK))


def guess_language(texts: Sequence[str]) -> str | None:
    """Return the language that most texts are in, some of them together at a time."""
    groups = [" ".join(texts[at : at + TOGETHER]) for at in range(0, min(len(texts), TOGETHER * VOTES), TOGETHER)]
    votes: Counter[str] = Counter()
    for group in groups:
        if any(map(str.isalpha, group)):
            probabilities = language_probabilities(group)
            votes[max(probabilities, key=lambda code: probabilities[code])] += 1
    return votes.most_common(1)[0][0] if votes else None


def known_language(code: str | None) -> str | None:
    """Return the ISO 639 code that a language is told by, None if the identifier does not know it."""
    short = parts(code)[0] if code else None
    return short if short and short in language_probabilities("a") else None


def _scripts(texts: Sequence[str]) -> list[str]:
    letters = Counter(filter(None, map(script, "".join(texts))))
    return [kind for kind, count in letters.items() if count >= USUAL * letters.total()]
