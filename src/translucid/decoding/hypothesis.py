"""A hypothesis: tokens and their score, as a search returns them; and n-best lists, without repeated texts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol, Self, TypeAlias

from bitext.pair import Pair
from translucid.decoding.decoding_options import DecodingOptions
from translucid.ground.special import SPECIAL

ScoreUnit: TypeAlias = Literal["log-probability", "expected chrF", "noisy channel"]
"""The unit of a score: nats after the length penalty, chrF from 0 to 100, or the sum that `NoisyChannel` defines.
Scores of different units are neither compared nor added."""
WIDER_SEARCHES = 3
"""The largest number of wider searches, each of which has twice the beam of the one before."""
WIDEST_BEAM = 256
"""The largest beam of a wider search; more memory is not worth a few more alternatives."""


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
    free: Hypothesis | None = None
    """The output of the search without terminology constraints, if terms have changed it. The model did not choose the
    terms, so that the free output shows how certain it is: the best constrained output has the score and the
    log-probability of the free one, and other constrained outputs keep their distance from it."""
    forced: frozenset[int] = frozenset()
    """The numbers of the tokens that belong to terms which the free output lacks."""
    retrieved: tuple[Pair, ...] = ()
    """The similar pairs of a memory from which the search has retrieved, the most similar first."""

    @property
    def judged(self) -> Hypothesis:
        """The output whose probability shows how certain the model is: the free one, or this one itself."""
        return self.free or self

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


Search: TypeAlias = Callable[[list[int], DecodingOptions], list[list[Hypothesis]]]
"""search(numbers of the sources, options) -> the hypotheses of each."""


def distinct_texts(
    nbest_lists: Sequence[list[Hypothesis]],
    options: DecodingOptions,
    text_of: Callable[[int, Hypothesis], str],
    search: Search,
) -> list[list[Hypothesis]]:
    """Return n-best lists without repeated texts, filled up by wider searches where a hypothesis was dropped.

    The best hypothesis of `options` stays the best: a wider search only adds hypotheses of lower scores. Random samples
    are not filled up, since their number is that of the samples.

    Args:
        nbest_lists: the hypotheses of each source that a search with `options` has found, the best first.
        options: the options of that search.
        text_of: returns the text of a hypothesis, given the number of its source.
        search: finds the hypotheses of some sources, given by their numbers, with other options.
    """
    if options.nbest == 1:
        return [*nbest_lists]
    lists = [_distinct(i, hypotheses, text_of) for i, hypotheses in enumerate(nbest_lists)]
    incomplete = []
    for i, hypotheses in enumerate(nbest_lists):
        # A search that returned fewer hypotheses than requested has no more, whatever its beam.
        if len(lists[i]) < options.nbest == len(hypotheses):
            incomplete.append(i)
    wider = options
    for _ in range(0 if options.sample else WIDER_SEARCHES):
        beam = min(2 * wider.beam, max(WIDEST_BEAM, options.beam))
        if not incomplete or beam == wider.beam:
            break
        wider = wider.model_copy(update={"beam": beam, "nbest": beam})
        still_incomplete = []
        for i, candidates in zip(incomplete, search(incomplete, wider), strict=True):
            lower = [hypothesis for hypothesis in candidates if hypothesis.score <= lists[i][0].score]
            lists[i] = _distinct(i, [*lists[i], *lower], text_of)
            if len(lists[i]) < options.nbest and len(candidates) == beam:
                still_incomplete.append(i)
        incomplete = still_incomplete
    return [in_order(hypotheses)[: options.nbest] for hypotheses in lists]


def _distinct(
    source: int, hypotheses: Sequence[Hypothesis], text_of: Callable[[int, Hypothesis], str]
) -> list[Hypothesis]:
    """Return the first hypothesis of each text."""
    by_text: dict[str, Hypothesis] = {}
    for hypothesis in hypotheses:
        by_text.setdefault(text_of(source, hypothesis).strip(), hypothesis)
    return [*by_text.values()]


class Output(Protocol):
    """One output."""

    @property
    def text(self) -> str:
        """The text of the output."""

    @property
    def score(self) -> float:
        """The value that ranks the outputs."""


class NBest:
    """A result with its alternatives."""

    nbest: Sequence[Output]
    """The outputs, the best first, at least one."""

    @property
    def text(self) -> str:
        """The text of the best output."""
        return self.nbest[0].text

    @property
    def score(self) -> float:
        """The score of the best output; for a text that was translated in several pieces, the sum over them."""
        return self.nbest[0].score

    @property
    def alternatives(self) -> list[str]:
        """The texts of the n-best list, the best first."""
        return [output.text for output in self.nbest]
