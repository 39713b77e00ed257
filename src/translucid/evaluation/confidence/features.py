"""Figures of one translation that are seen without a reference, in float64; what a confidence is fitted on.

Log-probabilities of tokens and their spread, attention and dropout as in Fomicheva et al. 2020 (arXiv 2005.10608,
sections 3.1 to 3.3); what of the source is ignored as in Berard et al. 2019 and Guerreiro et al. 2023 (arXiv
2208.05309, section 4). Lengths are logarithms, so that twice as long is as far as half as long.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

UNSURE = 0.3
"""A token below this probability is one that the model is not sure of."""
IGNORED = 0.2
"""A source token that gets less attention than this, summed over the target, is ignored."""

Figures: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True)
class Seen:
    """One translation, and what was seen while it was made. T target tokens, the end token the last."""

    source: str
    target: str
    tokens: int
    """T, without what names a language."""
    log_probability: float
    """log p(target | source) in nats."""
    token_log_probs: Figures | None = None
    """[T], of each token given those before it."""
    attention: Figures | None = None
    """[T, S], averaged over layers and heads."""
    opening: int = 0
    """So many of the first of the S source tokens are no words; nor is the last, the end token."""
    dropped: Figures | None = None
    """[N], log p(target | source) in N passes with dropout."""

    def and_also(self, other: Seen) -> Seen:
        """Return what was seen here or, if not here, when the same translation was looked at another time."""
        seen = {name: getattr(self, name) for name in ("token_log_probs", "attention", "dropped")}
        return replace(other, **{name: value for name, value in seen.items() if value is not None})


def _words(text: str) -> int:
    return max(len(text.split()), 1)


def _tokens(seen: Seen) -> Figures:
    assert seen.token_log_probs is not None
    return seen.token_log_probs


def _looks(seen: Seen) -> Figures:
    """Return the attention of all target tokens but the end token, if there are others."""
    assert seen.attention is not None
    return seen.attention[:-1] if len(seen.attention) > 1 else seen.attention


def _dropped(seen: Seen) -> Figures:
    assert seen.dropped is not None
    return seen.dropped / seen.tokens


def entropy(seen: Seen) -> float:
    """Return the entropy of where a target token looks, in nats, in the mean of the target tokens."""
    weights = _looks(seen)
    return float(-(weights * np.log(np.maximum(weights, 1e-12))).sum(1).mean())


def _coverage(seen: Seen) -> float:
    """Return the share of source tokens that are not ignored; 1 where the source has no words."""
    got = _looks(seen)[:, seen.opening : -1].sum(0)
    return float((got >= IGNORED).mean()) if got.size else 1.0


def _elsewhere(seen: Seen) -> float:
    """Return the attention that goes to no word of the source, in the mean of the target tokens."""
    weights = _looks(seen)
    return float((weights[:, : seen.opening].sum(1) + weights[:, -1]).mean())


FEATURES: Mapping[str, Callable[[Seen], float]] = {
    "mean": lambda seen: seen.log_probability / seen.tokens,
    "length": lambda seen: math.log(seen.tokens),
    "length_ratio": lambda seen: math.log(seen.tokens / _words(seen.source)),
    "letters_ratio": lambda seen: math.log(max(len(seen.target), 1) / max(len(seen.source), 1)),
    "pieces_a_word": lambda seen: math.log(seen.tokens / _words(seen.target)),
    "mean_probability": lambda seen: float(np.exp(_tokens(seen)).mean()),
    "lowest": lambda seen: float(_tokens(seen).min()),
    "spread": lambda seen: float(_tokens(seen).std()),
    "unsure": lambda seen: float((np.exp(_tokens(seen)) < UNSURE).mean()),
    "entropy": entropy,
    "coverage": _coverage,
    "elsewhere": _elsewhere,
    "dropout_mean": lambda seen: float(_dropped(seen).mean()),
    "dropout_spread": lambda seen: float(_dropped(seen).std()),
}
"""By name: log-probability of a token in the mean; tokens; tokens for each source word; letters for each of the source;
tokens for each word; probability of a token in the mean; the lowest log-probability; the standard deviation; the share
of tokens below `UNSURE`; `entropy`; the share of source tokens that are not ignored; the attention on no word of the
source; mean and standard deviation of the mean log-probability over passes with dropout."""

Kind: TypeAlias = Literal["search", "tokens", "attention", "dropout"]
"""What has to be looked at: what every search tells; each token; attention; passes with dropout."""

_OF_SEARCH = ("mean", "length", "length_ratio", "letters_ratio", "pieces_a_word")
_OF_TOKENS = (*_OF_SEARCH, "mean_probability", "lowest", "spread", "unsure")
KINDS: Mapping[Kind, Sequence[str]] = {
    "search": _OF_SEARCH,
    "tokens": _OF_TOKENS,
    "attention": (*_OF_TOKENS, "entropy", "coverage", "elsewhere"),
    "dropout": (*_OF_TOKENS, "dropout_mean", "dropout_spread"),
}
"""The features of each kind, the cheapest first."""


def measured(seen: Sequence[Seen], names: Sequence[str]) -> Figures:
    """Return features of translations [n, k].

    Raises:
        KeyError: there is no feature of that name.
    """
    columns = [FEATURES[name] for name in names]
    return np.array([[feature(one) for feature in columns] for one in seen], np.float64).reshape(len(seen), len(names))
