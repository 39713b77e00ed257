"""N-best lists without repeated texts: different tokens may spell the same text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from translucid.decoding.decoding_options import DecodingOptions
from translucid.decoding.hypothesis import Hypothesis, in_order

WIDER_SEARCHES = 3
"""The largest number of wider searches, each of which has twice the beam of the one before."""
WIDEST_BEAM = 256
"""The largest beam of a wider search; more memory is not worth a few more alternatives."""

Search: TypeAlias = Callable[[list[int], DecodingOptions], list[list[Hypothesis]]]
"""search(numbers of the sources, options) -> the hypotheses of each."""


def distinct_texts(
    found: Sequence[list[Hypothesis]],
    options: DecodingOptions,
    text_of: Callable[[int, Hypothesis], str],
    search: Search,
) -> list[list[Hypothesis]]:
    """Return n-best lists without repeated texts, filled up by wider searches where a hypothesis was dropped.

    The best hypothesis of `options` stays the best: a wider search only adds hypotheses of lower scores. Random samples
    are not filled up, since their number is that of the samples.

    Args:
        found: the hypotheses of each source that a search with `options` has found, the best first.
        options: the options of that search.
        text_of: returns the text of a hypothesis, given the number of its source.
        search: finds the hypotheses of some sources, given by their numbers, with other options.
    """
    if options.nbest == 1:
        return [*found]
    lists = [_distinct(i, hypotheses, text_of) for i, hypotheses in enumerate(found)]
    waiting = []
    for i, hypotheses in enumerate(found):
        # A search that found less than was asked for has nothing more to find, whatever its beam.
        if len(lists[i]) < options.nbest == len(hypotheses):
            waiting.append(i)
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
    return [in_order(hypotheses)[: options.nbest] for hypotheses in lists]


def _distinct(
    source: int, hypotheses: Sequence[Hypothesis], text_of: Callable[[int, Hypothesis], str]
) -> list[Hypothesis]:
    """Return the first hypothesis of each text."""
    first: dict[str, Hypothesis] = {}
    for hypothesis in hypotheses:
        first.setdefault(text_of(source, hypothesis).strip(), hypothesis)
    return [*first.values()]
