"""Features of one translation without a reference, in float64, to which confidence is fitted.

Log-probabilities of tokens and their spread, attention and dropout follow Fomicheva et al. 2020 (arXiv 2005.10608,
sections 3.1 to 3.3), the share of the source that is ignored Berard et al. 2019 and Guerreiro et al. 2023 (arXiv
2208.05309, section 4). Lengths are logarithms, so that double and half the length are equally far from the usual.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

UNSURE = 0.3
"""The probability below which the model is not sure of a token."""
IGNORED = 0.2
"""A source token with less attention than this, summed over the target, is ignored."""

Figures: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True)
class Measurements:
    """One translation of T target tokens, including the end token, and the measurements of its search."""

    source: str
    target: str
    tokens: int
    """T, without tokens that name a language."""
    log_probability: float
    """log p(target | source) in nats."""
    token_log_probs: Figures | None = None
    """[T], the log-probability of each token given those before."""
    attention: Figures | None = None
    """[T, S], the attention averaged over layers and heads."""
    opening: int = 0
    """The number of source tokens before the words; after them is the end token."""
    dropout_log_probs: Figures | None = None
    """[N], log p(target | source) in N passes with dropout."""

    def merged_with(self, other: Measurements) -> Measurements:
        """Return these measurements, with missing ones taken from other measurements of the same translation."""
        measurements = {}
        for name in ("token_log_probs", "attention", "dropout_log_probs"):
            if getattr(self, name) is not None:
                measurements[name] = getattr(self, name)
        return replace(other, **measurements)


def _words(text: str) -> int:
    return max(len(text.split()), 1)


def _tokens(translation: Measurements) -> Figures:
    assert translation.token_log_probs is not None
    return translation.token_log_probs


def _attention(translation: Measurements) -> Figures:
    """Return the attention of all target tokens except the end token, if there are others."""
    assert translation.attention is not None
    return translation.attention[:-1] if len(translation.attention) > 1 else translation.attention


def _dropout_log_probs(translation: Measurements) -> Figures:
    assert translation.dropout_log_probs is not None
    return translation.dropout_log_probs / translation.tokens


def entropy(translation: Measurements) -> float:
    """Return the mean entropy of the attention of the target tokens, in nats."""
    weights = _attention(translation)
    return float(-(weights * np.log(np.maximum(weights, 1e-12))).sum(1).mean())


def _coverage(translation: Measurements) -> float:
    """Return the share of source tokens that are not ignored; 1 if the source has no words."""
    received = _attention(translation)[:, translation.opening : -1].sum(0)
    return float((received >= IGNORED).mean()) if received.size else 1.0


def _elsewhere(translation: Measurements) -> float:
    """Return the mean share of attention that target tokens pay to no word of the source."""
    weights = _attention(translation)
    return float((weights[:, : translation.opening].sum(1) + weights[:, -1]).mean())


FEATURES: Mapping[str, Callable[[Measurements], float]] = {
    "mean": lambda translation: translation.log_probability / translation.tokens,
    "length": lambda translation: math.log(translation.tokens),
    "length_ratio": lambda translation: math.log(translation.tokens / _words(translation.source)),
    "letters_ratio": lambda translation: math.log(max(len(translation.target), 1) / max(len(translation.source), 1)),
    "pieces_a_word": lambda translation: math.log(translation.tokens / _words(translation.target)),
    "mean_probability": lambda translation: float(np.exp(_tokens(translation)).mean()),
    "lowest": lambda translation: float(_tokens(translation).min()),
    "spread": lambda translation: float(_tokens(translation).std()),
    "unsure": lambda translation: float((np.exp(_tokens(translation)) < UNSURE).mean()),
    "entropy": entropy,
    "coverage": _coverage,
    "elsewhere": _elsewhere,
    "dropout_mean": lambda translation: float(_dropout_log_probs(translation).mean()),
    "dropout_spread": lambda translation: float(_dropout_log_probs(translation).std()),
}
"""The features by name: mean log-probability of tokens; number of tokens; tokens per source word; characters per source
character; tokens per word; mean probability of tokens; lowest log-probability; standard deviation of log-probabilities;
share of tokens below `UNSURE`; entropy of attention; share of source tokens that are not ignored; attention on no word
of the source; mean and standard deviation of the mean log-probability over passes with dropout."""

Kind: TypeAlias = Literal["search", "tokens", "attention", "dropout"]
"""What the features need: the result of any search, log-probabilities of tokens, attention, or passes with dropout."""

_OF_SEARCH = ("mean", "length", "length_ratio", "letters_ratio", "pieces_a_word")
_OF_TOKENS = (*_OF_SEARCH, "mean_probability", "lowest", "spread", "unsure")
KINDS: Mapping[Kind, Sequence[str]] = {
    "search": _OF_SEARCH,
    "tokens": _OF_TOKENS,
    "attention": (*_OF_TOKENS, "entropy", "coverage", "elsewhere"),
    "dropout": (*_OF_TOKENS, "dropout_mean", "dropout_spread"),
}
"""The features of each kind, the cheapest first."""


def feature_matrix(translations: Sequence[Measurements], names: Sequence[str]) -> Figures:
    """Return features of translations [n, k].

    Raises:
        KeyError: there is no feature of that name.
    """
    features = np.empty((len(translations), len(names)), np.float64)
    for column, name in enumerate(names):
        features[:, column] = list(map(FEATURES[name], translations))
    return features
