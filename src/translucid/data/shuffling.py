"""A random order of any number of things, without a list of them: a keyed permutation computed place by place.

A Feistel network over the bits of the number, walked on until the result is in range (Black and Rogaway 2002, "Ciphers
with arbitrary finite domains"): the memory needed does not grow with the corpus, and the billionth pair of an epoch is
found without the ones before it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

_ROUNDS = 4


def shuffled(places: NDArray[np.int64], count: int, seed: Sequence[int]) -> NDArray[np.int64]:
    """Return which of `count` things stand at `places` of a random order; another seed gives another order.

    Args:
        places: [n], within 0 .. count - 1.
        count: how many things there are, below 2^62.
        seed: any non-negative numbers.
    """
    half = np.uint64(max(1, -(-(count - 1).bit_length() // 2)))
    mask = (np.uint64(1) << half) - np.uint64(1)
    keys = np.random.SeedSequence([*seed, count]).generate_state(_ROUNDS, np.uint64)
    numbers = places.astype(np.uint64)
    outside = np.arange(len(numbers))
    while len(outside):  # the domain is less than four times as large: a few turns
        left, right = numbers[outside] >> half, numbers[outside] & mask
        for key in keys:
            left, right = right, left ^ (_mixed(right ^ key) & mask)
        numbers[outside] = (left << half) | right
        outside = outside[numbers[outside] >= count]
    return numbers.astype(np.int64)


def _mixed(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Stir 64 bits (the finaliser of SplitMix64, Steele et al. 2014)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
