"""A hypothesis: tokens and their score, as a search returns them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, Self, TypeAlias

from translucid.ground.special import SPECIAL

ScoreUnit: TypeAlias = Literal["log-probability", "expected chrF", "noisy channel"]
"""The unit of a score: nats after the length penalty, chrF from 0 to 100, or the sum that `NoisyChannel` defines.
Scores of different units are neither compared nor added."""


@dataclass(frozen=True)
class Hypothesis:
    """One output of a search, and its probability under the model."""

    tokens: list[int]
    """Token ids, without start and end token."""
    log_probability: float
    """log p(tokens, end token | source) in nats; never above 0."""
    score: float
    """The value that ranks hypotheses: the log-probability after the length penalty. CTranslate2's scores are about
    0.001 higher than PyTorch's, as its other tokens share the probability of padding, unknown and start token."""
    token_log_probabilities: list[float] = field(default_factory=list)
    """The log-probability of each token given those before it, the end token's last; empty from CTranslate2."""
    unit: ScoreUnit = "log-probability"
    """The unit of the score."""

    @property
    def with_end(self) -> list[int]:
        """The token ids with the end token, as forced decoding takes them."""
        return [*self.tokens, SPECIAL.end]

    def scored(self, score: float, unit: ScoreUnit) -> Self:
        """Return the same output with another score."""
        return replace(self, score=score, unit=unit)


def in_order(hypotheses: Iterable[Hypothesis]) -> list[Hypothesis]:
    """Sort hypotheses by score, the best first; those with equal scores keep their order."""
    return sorted(hypotheses, key=lambda hypothesis: -hypothesis.score)


def total_score(hypotheses: Sequence[Hypothesis]) -> tuple[float, ScoreUnit]:
    """Return the sum of the scores of the parts of a text, and its unit.

    Raises:
        ValueError: the scores are of different units.
    """
    units = {hypothesis.unit for hypothesis in hypotheses} or {"log-probability"}
    if len(units) > 1:
        raise ValueError(f"scores of different units are not added: {', '.join(sorted(units))}")
    return sum(hypothesis.score for hypothesis in hypotheses), units.pop()


def percent(probability: float) -> str:
    """Write a probability with as many digits as it needs: only 0 is written as 0 %, and only 1 as 100 %.

    >>> percent(0.5), percent(0.0004), percent(0.9996), percent(1.0)
    ('50%', '0.04%', '99.96%', '100%')
    """
    probability = min(probability, 1.0)  # sums of float32 may be a little more
    for digits in range(7):
        text = f"{100 * probability:.{digits}f}"
        if 0 < float(text) < 100 or probability in (0, 1):
            return f"{text}%"
    return "<0.000001%" if probability < 0.5 else ">99.999999%"


def empty_hypothesis() -> Hypothesis:
    """Return the output of an empty source: the end token alone, which is certain."""
    return Hypothesis([], 0.0, 0.0, [0.0])
