"""Quality estimation: the probability that a translation is good, from features of it without a reference.

Log-probabilities of tokens and their spread, attention and dropout follow Fomicheva et al. 2020 (arXiv 2005.10608,
sections 3.1 to 3.3), the share of the source that is ignored Berard et al. 2019 and Guerreiro et al. 2023 (arXiv
2208.05309, section 4). Lengths are logarithms, so that double and half the length are equally far from the usual.

Confidence calibration fits an estimator (logistic regression, then Platt scaling) to translations of known quality, and
tests it on held-out ones. All is in float64.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pydantic import AliasChoices, BaseModel, Field

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


STEPS, TOLERANCE = 100, 1e-10
"""The maximum number of Newton steps, and the size of a step at which they end."""


def sigmoid(z: Figures) -> Figures:
    """Return 1 / (1 + exp(-z)), without overflow."""
    return 0.5 * (1 + np.tanh(0.5 * z))


def cross_entropy(z: Figures, truth: Figures) -> Figures:
    """Return -t log s(z) - (1 - t) log(1 - s(z)) for each [n], in nats; s is the sigmoid."""
    return np.logaddexp(0, z) - truth * z


def logistic(x: Figures, truth: Figures, penalty: float) -> Figures:
    """Return the weights [k] of standardized features and then the offset, fitted by Newton's method.

        argmin_w,b  sum_i cross_entropy(w x_i + b, t_i) + penalty / 2 |w|^2

    Args:
        x: [n, k].
        truth: [n], the target probability, 0 to 1.
        penalty: the penalty of the weights; the offset has none.
    """
    design = np.column_stack([x, np.ones(len(x))])
    penalties = penalty * np.diag([*np.ones(x.shape[1]), 0.0])
    weights = np.zeros(design.shape[1])

    def cost(w: Figures) -> float:
        return float(cross_entropy(design @ w, truth).sum() + 0.5 * w @ penalties @ w)

    for _ in range(STEPS):
        p = sigmoid(design @ weights)
        slope = design.T @ (p - truth) + penalties @ weights
        # The bound keeps the matrix invertible where all probabilities are near 0 or 1.
        curvature = (design * np.maximum(p * (1 - p), 1e-12)[:, None]).T @ design + penalties
        step = np.linalg.solve(curvature, slope)
        # A Newton step may overshoot where the cost is flat; a shorter step decreases it, too.
        while np.abs(step).max() > TOLERANCE and cost(weights - step) > cost(weights):
            step = step / 2
        weights = weights - step
        if np.abs(step).max() <= TOLERANCE:
            break
    return weights


def platt(z: Figures, good: NDArray[np.bool_]) -> tuple[float, float]:
    """Return slope and offset that make sigmoid(slope z + offset) a calibrated probability.

    Platt 1999 (Probabilistic outputs for support vector machines, section 2.2). The targets are slightly inside 0 and
    1, so that separable examples do not lead to certainty.

    Args:
        z: [n], scores of held-out examples.
        good: [n], whether each is good.
    """
    counts = good.sum(), len(good) - good.sum()
    truth = np.where(good, (counts[0] + 1) / (counts[0] + 2), 1 / (counts[1] + 2))
    scale = float(z.std()) or 1.0
    slope, offset = logistic(z[:, None] / scale, truth, 0.0)
    return float(slope / scale), float(offset)


class _Record(BaseModel, frozen=True, extra="forbid", allow_inf_nan=False):
    """Values in the file of a run."""


Bounded: TypeAlias = Annotated[float, Field(ge=-1e6, le=1e6)]
"""A bounded number, so that a confidence is finite whatever is in the file."""


class Weight(_Record):
    """The weight of a feature, which is standardized by the mean and the deviation of the pairs."""

    mean: Bounded
    deviation: float = Field(ge=1e-9, le=1e6)
    weight: Bounded


class Bin(_Record):
    """A bin of translations with similar confidence."""

    # The files of older runs have the keys `said` and `seen`.
    mean_confidence: float = Field(validation_alias=AliasChoices("mean_confidence", "said"))
    """The mean confidence."""
    share_good: float = Field(validation_alias=AliasChoices("share_good", "seen"))
    """The share of good translations."""
    count: int


class Figure(_Record):
    """The scores of a kind of features on held-out pairs."""

    kind: Kind
    cross_entropy: float
    """The cross-entropy of good and bad, in nats per translation; lower is better."""
    calibration_error: float
    """The mean distance between confidence and the share of good translations (Guo et al. 2017, arXiv 1706.04599,
    equation 3)."""
    lift: float
    """The rate of bad translations in the fifth with the lowest confidence, relative to the rate of all: 1 is chance, 5
    the maximum."""


class Detached(_Record):
    """The limit from which attention is spread over the source more than in nearly all translations: the model guesses.

    The usual entropy for a source of S tokens is offset + slope log S.
    """

    offset: Bounded
    slope: Bounded
    limit: Bounded
    """The difference from the usual entropy that is rare."""

    def about(self, translation: Measurements) -> list[str]:
        """Return a warning if the attention of a translation is detached from its source."""
        assert translation.attention is not None
        usual, actual = self.offset + self.slope * math.log(translation.attention.shape[1]), entropy(translation)
        if actual - usual <= self.limit:
            return []
        return [f"detached attention: it is spread over the source (entropy {actual:.1f}, {usual:.1f} is usual)"]


class Estimator(_Record):
    """Estimates the probability that a translation is good: sigmoid(slope (w x + offset) + shift)."""

    threshold: float
    """A translation is good if its chrF against the reference is at least this, 0 to 100."""
    pairs: int
    bad: int
    """The number of pairs with bad translations, among those of the fit."""
    kind: Kind
    """The kind of features."""
    passes: int = Field(0, ge=0, le=1000)
    """The number of passes with dropout."""
    weights: dict[str, Weight]
    """The weights by feature."""
    offset: Bounded
    slope: Bounded
    shift: Bounded
    figures: list[Figure] = []
    """The scores of each kind of features."""
    reliability: list[Bin] = []
    """The bins of the chosen kind, the least confident translations first."""
    detached: Detached | None = None
    """None if the model has no attention."""

    def __call__(self, translations: Sequence[Measurements]) -> Figures:
        """Return the probability [n] that each translation is good; `translations` has what `kind` needs."""
        rows = [(weight.mean, weight.deviation, weight.weight) for weight in self.weights.values()]
        mean, deviation, weight = map(np.array, zip(*rows, strict=True))
        score = (feature_matrix(translations, list(self.weights)) - mean) / deviation @ weight + self.offset
        return sigmoid(self.slope * score + self.shift)

    def is_complete(self) -> bool:
        """Return whether the estimator has all features of its kind, and no others."""
        return set(self.weights) == set(KINDS[self.kind])


FOLDS = 5
PENALTY = 1.0
"""The penalty of the weights of standardized features, comparable to the weight of one example."""
LOSS_TOLERANCE = 0.05
"""The excess of the cross-entropy of cheaper features, relative to the lowest, that is accepted."""
CALIBRATION_BINS = 15
"""The number of bins of the expected calibration error, as in Guo et al. 2017."""
BINS = 10
REVIEWED_SHARE = 0.2
"""The share of translations, the least confident ones, that a person would review."""
OUTLIER_SHARE = 0.005
"""The share of the pairs' translations whose attention is beyond the limit."""


@dataclass(frozen=True)
class Fit:
    """A fit of one kind of features."""

    kind: Kind
    weights: dict[str, Weight]
    offset: float
    slope: float
    shift: float
    confidence: Figures
    """[n], the confidence of each translation, by a fit to other translations."""
    losses: Figures
    """[n], the cross-entropy of each translation."""

    def figure(self, good: NDArray[np.bool_]) -> Figure:
        """Return the scores of the fit."""
        return Figure(
            kind=self.kind,
            cross_entropy=float(self.losses.mean()),
            calibration_error=calibration_error(self.confidence, good),
            lift=lift(self.confidence, ~good),
        )


def fit(kind: Kind, x: Figures, good: NDArray[np.bool_], folds: NDArray[np.int64]) -> Fit:
    """Fit one kind of features.

    Args:
        kind: the kind of features, which names the columns.
        x: the features [n, k].
        good: [n], whether each translation is good.
        folds: [n], the fold 0 .. `FOLDS` - 1 of each translation, whose scores are fitted to the other folds.
    """
    truth = good.astype(np.float64)
    # A constant feature must not divide by zero; its weight does not matter.
    mean, deviation = x.mean(0), np.where(x.std(0) > 1e-9, x.std(0), 1.0)
    x = (x - mean) / deviation
    score = np.empty(len(x))
    for fold in range(FOLDS):
        held_out = folds == fold
        *weights, offset = logistic(x[~held_out], truth[~held_out], PENALTY)
        score[held_out] = x[held_out] @ weights + offset
    # Scores of the folds are calibrated; the weights of the estimator are then fitted to all translations.
    slope, shift = platt(score, good)
    z = slope * score + shift
    *weights, offset = logistic(x, truth, PENALTY)
    rows = zip(KINDS[kind], mean, deviation, weights, strict=True)
    named_weights = {name: Weight(mean=float(m), deviation=float(d), weight=float(w)) for name, m, d, w in rows}
    return Fit(kind, named_weights, float(offset), slope, shift, sigmoid(z), cross_entropy(z, truth))


def cheapest(fits: Sequence[Fit]) -> Fit:
    """Return the first fit whose cross-entropy is hardly above the lowest."""
    losses = [float(fit.losses.mean()) for fit in fits]
    accepted = (1 + LOSS_TOLERANCE) * min(losses)
    return next(fit for fit, loss in zip(fits, losses, strict=True) if loss <= accepted)


def estimator(
    translations: Sequence[Measurements], chrf: Figures, threshold: float, kinds: Sequence[Kind], *, passes: int = 0
) -> Estimator:
    """Fit kinds of features to translations, and return the cheapest that is as good as the best.

    Args:
        translations: the translations, with what the kinds need.
        chrf: the chrF of each translation against its reference, 0 to 100.
        threshold: the chrF from which a translation is good; there must be good and bad ones.
        kinds: the kinds of features, the cheapest first.
        passes: the number of passes with dropout, for the kind that has them.
    """
    good = chrf >= threshold
    folds = folds_of([translation.source for translation in translations])
    fits = [fit(kind, feature_matrix(translations, KINDS[kind]), good, folds) for kind in kinds]
    best = cheapest(fits)
    return Estimator(
        threshold=threshold,
        pairs=len(translations),
        bad=int((~good).sum()),
        kind=best.kind,
        passes=passes if best.kind == "dropout" else 0,
        weights=best.weights,
        offset=best.offset,
        slope=best.slope,
        shift=best.shift,
        figures=[fitted.figure(good) for fitted in fits],
        reliability=bins(best.confidence, good),
        detached=detached(translations),
    )


def folds_of(sources: Sequence[Hashable]) -> NDArray[np.int64]:
    """Return the fold of each source [n], 0 .. `FOLDS` - 1 in turn; equal sources are in the same fold."""
    numbers: dict[Hashable, int] = {}
    folds = [numbers.setdefault(source, len(numbers)) % FOLDS for source in sources]
    return np.array(folds, np.int64)


def bins(confidence: Figures, good: NDArray[np.bool_], count: int = BINS) -> list[Bin]:
    """Return up to `count` bins of similar size, the least confident translations first."""
    order = np.argsort(confidence, kind="stable")
    result = []
    for rows in np.array_split(order, count):
        if len(rows):
            mean_confidence, share = float(confidence[rows].mean()), float(good[rows].mean())
            result.append(Bin(mean_confidence=mean_confidence, share_good=share, count=len(rows)))
    return result


def lift(confidence: Figures, bad: NDArray[np.bool_]) -> float:
    """Return the rate of bad translations in the fifth with the lowest confidence, relative to the rate of all."""
    worst = np.argsort(confidence, kind="stable")[: max(round(REVIEWED_SHARE * len(bad)), 1)]
    return float(bad[worst].mean() / max(bad.mean(), 1e-12))


def detached(attention: Sequence[Measurements]) -> Detached | None:
    """Fit the usual entropy of attention by least squares, if any translation has attention."""
    lengths, entropies = [], []
    for translation in attention:
        if translation.attention is not None:
            # The entropy of uniform attention over S tokens is log S.
            lengths.append(math.log(translation.attention.shape[1]))
            entropies.append(entropy(translation))
    if not lengths:
        return None
    rows = np.column_stack([np.ones(len(lengths)), lengths])
    weights = np.linalg.lstsq(rows, np.array(entropies))[0]
    limit = np.quantile(entropies - rows @ weights, 1 - OUTLIER_SHARE)
    return Detached(offset=float(weights[0]), slope=float(weights[1]), limit=float(limit))


def calibration_error(
    confidence: NDArray[np.floating], correct: NDArray[np.bool_], bins: int = CALIBRATION_BINS
) -> float:
    """Return sum_b n_b / n |accuracy in b - mean confidence in b| over bins b of equal width.

    Args:
        confidence: [n], the probability of each prediction.
        correct: [n], whether it is correct.
        bins: the number of bins.
    """
    bin_indices = np.clip(np.ceil(confidence * bins).astype(int) - 1, 0, bins - 1)
    gaps = np.bincount(bin_indices, correct.astype(float) - confidence, bins)
    return float(np.abs(gaps).sum() / len(confidence))
