"""What a search returns."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Hypothesis:
    """One output sequence that the search found, and how likely the model thinks it is."""

    tokens: list[int]
    """Token ids, without start and end token."""
    log_probability: float
    """log p(tokens, end token | source) in nats; never above 0."""
    score: float
    """What hypotheses are ranked by: the log-probability after the length penalty."""
    token_log_probabilities: list[float] = field(default_factory=list)
    """The log-probability of each token given those before it, the end token's last; of our own search only."""


def empty_hypothesis() -> Hypothesis:
    """Return the output of an empty source: nothing but the end token, which is certain."""
    return Hypothesis([], 0.0, 0.0, [0.0])
