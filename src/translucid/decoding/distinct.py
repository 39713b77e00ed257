"""N-best lists without repeated texts: different tokens may spell the same text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from translucid.decoding.decoding_options import DecodingOptions
from translucid.decoding.hypothesis import Hypothesis

WIDER_SEARCHES = 3
"""Each has twice the beam of the one before."""
WIDEST_BEAM = 256
"""Beam of a wider search, at most; a wider one takes more memory than a few more alternatives are worth."""

Search: TypeAlias = Callable[[list[int], DecodingOptions], list[list[Hypothesis]]]
"""search(numbers of the sources, options) -> the hypotheses of each."""


def distinct_texts(
    found: Sequence[list[Hypothesis]],
    options: DecodingOptions,
    text_of: Callable[[int, Hypothesis], str],
    search: Search,
) -> list[list[Hypothesis]]:
    """Return n-best lists in which no text stands twice, filled by wider searches where something was dropped.

    The best hypothesis stays the one that `options` have found: a wider search only adds hypotheses of lower score.
    What was sampled is not filled up, as the number of draws was asked for.

    Args:
        found: the hypotheses of each source, best first, by `options`.
        options: how they were searched for.
        text_of: gives the text of a hypothesis of a source, which is told by its number.
        search: finds the hypotheses of some sources with other options.
    """
    if options.nbest == 1:
        return [*found]
    lists = [_distinct(i, hypotheses, text_of) for i, hypotheses in enumerate(found)]
    # A search that found less than was asked for has nothing more to find, whatever its beam.
    waiting = [
        i for i, hypotheses in enumerate(found) if len(lists[i]) < options.nbest and len(hypotheses) == options.nbest
    ]
    wide = options
    for _ in range(0 if options.sample else WIDER_SEARCHES):
        beam = min(2 * wide.beam, max(WIDEST_BEAM, options.beam))
        if not waiting or beam == wide.beam:
            break
        wide = wide.model_copy(update={"beam": beam, "nbest": beam})
        left = []
        for i, more in zip(waiting, search(waiting, wide), strict=True):
            lower = [hypothesis for hypothesis in more if hypothesis.score <= lists[i][0].score]
            lists[i] = _distinct(i, [*lists[i], *lower], text_of)
            if len(lists[i]) < options.nbest and len(more) == beam:
                left.append(i)
        waiting = left
    ordered = (sorted(hypotheses, key=lambda hypothesis: -hypothesis.score) for hypotheses in lists)
    return [hypotheses[: options.nbest] for hypotheses in ordered]


def _distinct(
    source: int, hypotheses: Sequence[Hypothesis], text_of: Callable[[int, Hypothesis], str]
) -> list[Hypothesis]:
    """Return the first hypothesis of each text."""
    first: dict[str, Hypothesis] = {}
    for hypothesis in hypotheses:
        first.setdefault(text_of(source, hypothesis).strip(), hypothesis)
    return [*first.values()]
