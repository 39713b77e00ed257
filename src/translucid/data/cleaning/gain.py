"""Whether the sides of a pair have to do with each other: what models of both directions make of it.

Cross-entropy in both directions tells good pairs from bad ones (Junczys-Dowmunt 2018, arXiv 1809.00197, equation 1),
but short and rare sentences are surprising even where they are right. So it is compared with that of the same sentence
beside a source that is another pair's. With f and b the two models and x', y' the sides of another pair,

    gain(x, y) = 1 - (H_f(y|x) + H_b(x|y)) / (H_f(y|x') + H_b(x|y'))

is the share of the surprise that the other side takes away: about 0 where the sides have nothing to do with each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import TypeAlias

from translucid.data.cleaning.cleaner import MODEL, Judged
from translucid.data.readers.corpus import Pair

WINDOW = 2048
"""Pairs that are asked about together; the other pair is half a window away."""
LEAST = 0.22
"""Of a gain that is believed; see docs/cleaning.md."""

Surprise: TypeAlias = Callable[[Sequence[Pair]], Sequence[float | None]]
"""-log p(target | source) of each pair in nats, None of one that is too long for the model."""


def gains(pairs: Sequence[Pair], forward: Surprise, backward: Surprise) -> list[float | None]:
    """Return the gain of each pair, None where a model can't tell.

    Args:
        pairs: several; one alone has no other to be compared with.
        forward: of a model from source to target.
        backward: of one from target to source; its pairs begin with the target.
    """
    half = len(pairs) // 2
    others = [*pairs[half:], *pairs[:half]]
    beside = [Pair(other.source, pair.target) for pair, other in zip(pairs, others, strict=True)]
    beside_back = [Pair(other.target, pair.source) for pair, other in zip(pairs, others, strict=True)]
    found = forward(pairs), backward([pair.swapped for pair in pairs]), forward(beside), backward(beside_back)
    return [_gain(*of_pair) for of_pair in zip(*found, strict=True)]


def _gain(forward: float | None, backward: float | None, beside: float | None, back: float | None) -> float | None:
    if forward is None or backward is None or beside is None or back is None:
        return None
    return 1 - (forward + backward) / max(beside + back, 1e-9)


def asked(judged: Iterable[Judged], forward: Surprise, backward: Surprise, least: float = LEAST) -> Iterator[Judged]:
    """Yield all, those that no rule has rejected with what the models say of them.

    Args:
        judged: what the rules have said.
        forward: see `gains`.
        backward: see `gains`.
        least: of the gain; a pair with less is rejected.
    """
    coming = iter(judged)
    while window := list(islice(coming, WINDOW)):
        kept = [at for at, one in enumerate(window) if not one.rule]
        found = gains([window[at].pair for at in kept], forward, backward) if len(kept) > 1 else []
        for at, gain in zip(kept, found, strict=False):
            if gain is not None and gain < least:
                what = f"the sides explain {100 * max(gain, 0):.0f} % of each other"
                window[at] = window[at]._replace(rule=MODEL, what=what)
        yield from window
