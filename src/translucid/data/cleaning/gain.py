"""Whether the sides of a pair translate each other, according to models of both directions.

Cross-entropy in both directions separates good pairs from bad ones (Junczys-Dowmunt 2018, arXiv 1809.00197, equation
1), but it is high for short and rare sentences even if they are right. So it is compared with the cross-entropy of the
same sentence given the source of another pair. With the models f and b, and the sides x' and y' of another pair,

    gain(x, y) = 1 - (H_f(y|x) + H_b(x|y)) / (H_f(y|x') + H_b(x|y'))

is the share of the cross-entropy that the right other side removes: about 0 if the sides are unrelated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias

from bitext.pair import Pair
from translucid.data.cleaning.cleaner import MODEL, JudgedPair
from translucid.ground.iteration import batched

WINDOW = 2048
"""The number of pairs that are scored at a time; a pair is compared with the pair half a window away."""
MIN_GAIN = 0.22
"""The smallest gain of a pair that is kept; docs/cleaning.md explains the choice."""

CrossEntropy: TypeAlias = Callable[[Sequence[Pair]], Sequence[float | None]]
"""A function that returns -log p(target | source) of each pair in nats, None if the pair is too long for the model."""


def gains(pairs: Sequence[Pair], forward: CrossEntropy, backward: CrossEntropy) -> list[float | None]:
    """Return the gain of each pair, None if a pair is too long for a model.

    Args:
        pairs: at least two, because each is compared with another one.
        forward: the cross-entropy of a model from source to target.
        backward: the cross-entropy of a model from target to source; its pairs begin with the target.
    """
    half = len(pairs) // 2
    other_pairs = [*pairs[half:], *pairs[:half]]
    unrelated, unrelated_back = [], []
    for pair, other_pair in zip(pairs, other_pairs, strict=True):
        unrelated.append(Pair(other_pair.source, pair.target))
        unrelated_back.append(Pair(other_pair.target, pair.source))
    right = zip(forward(pairs), backward([pair.swapped for pair in pairs]), strict=True)
    wrong = zip(forward(unrelated), backward(unrelated_back), strict=True)
    return list(map(_gain, right, wrong))


def _gain(right: tuple[float | None, float | None], wrong: tuple[float | None, float | None]) -> float | None:
    """Return the gain of a pair from its cross-entropies (forward, backward) with the right and a wrong other side."""
    forward, backward = right
    wrong_forward, wrong_backward = wrong
    if forward is None or backward is None or wrong_forward is None or wrong_backward is None:
        return None
    return 1 - (forward + backward) / max(wrong_forward + wrong_backward, 1e-9)


def judge_by_gain(
    judged: Iterable[JudgedPair], forward: CrossEntropy, backward: CrossEntropy, min_gain: float = MIN_GAIN
) -> Iterator[JudgedPair]:
    """Yield all pairs; reject those that passed the rules but have too small a gain.

    Args:
        judged: the pairs with the results of the rules.
        forward: the cross-entropy of a model from source to target, as for `gains`.
        backward: the cross-entropy of a model from target to source.
        min_gain: the smallest gain of a pair that is kept.
    """
    for window in batched(judged, WINDOW):
        accepted = [index for index, judgement in enumerate(window) if not judgement.rule]
        if len(accepted) > 1:  # a single pair can't be compared with another one
            scores = gains([window[index].pair for index in accepted], forward, backward)
            for index, gain in zip(accepted, scores, strict=True):
                if gain is not None and gain < min_gain:
                    what = f"the sides explain {100 * max(gain, 0):.0f} % of each other"
                    window[index] = window[index]._replace(rule=MODEL, what=what)
        yield from window
