"""Which sentence pairs an epoch reads, and in which order: all of one corpus, or shares of several.

Several corpora are mixed by weight, or by temperature as in multilingual models (Arivazhagan et al. 2019, arXiv
1907.05019): corpus c with n_c pairs gets the share p_c, proportional to n_c^(1/T). An epoch has as many pairs as all
corpora together, unless it is told how many, but corpus c gives p_c of them. Each is read from front to back in a
random order, and then in another one, over the epochs' ends: no pair comes twice before all of its corpus have come
once.

A random order is a keyed permutation, computed place by place: a Feistel network over the bits of the number, walked on
until the result is in range (Black and Rogaway 2002, "Ciphers with arbitrary finite domains"). So the memory needed
does not grow with the corpus, and the billionth pair of an epoch is found without the ones before it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

BLOCK = 1_000_000
"""Pairs that are sorted into batches at a time; what bounds the memory that an epoch takes."""

_ROUNDS = 4


def by_temperature(sizes: Sequence[int], temperature: float) -> list[float]:
    """Return the share of each corpus: 1 is as they are, a high temperature takes about as much of each."""
    weights = np.array(sizes, float) ** (1 / temperature)
    return (weights / weights.sum()).tolist()


def mixed_in(sizes: Sequence[int], shares: Sequence[float] | None, further: Sequence[float]) -> tuple[list[float], int]:
    """Return the share of each corpus, and how many pairs an epoch has, where the last ones are mixed into the others.

    An epoch goes through the others once, and has so much more of the last ones that these are their shares of it.

    Args:
        sizes: pairs of each corpus.
        shares: how the others are to each other, in any unit; none for each as large as it is.
        further: what share of an epoch each of the last corpora is; together less than 1.
    """
    others = sizes[: len(sizes) - len(further)]
    parts = np.array(others if shares is None else shares, float)
    left = 1 - sum(further)
    return [*(parts / parts.sum() * left).tolist(), *further], round(sum(others) / left)


def quotas(sizes: Sequence[int], shares: Sequence[float] | None, count: int | None = None) -> list[int]:
    """Return how many pairs of each corpus an epoch reads.

    Args:
        sizes: pairs of each corpus.
        shares: what part of an epoch each is to be, in any unit; none for each as large as it is.
        count: pairs of an epoch; as many as there are if not given.
    """
    if shares is None:
        return list(sizes)
    wanted = np.array(shares, float) * (np.array(sizes) > 0)
    ends = np.rint(np.cumsum(wanted) / wanted.sum() * (count or sum(sizes))).astype(int)
    return np.diff(ends, prepend=0).tolist()


class Order:
    """The pairs of one epoch as indices, block by block; a pure function of its arguments."""

    def __init__(
        self,
        sizes: Sequence[int],
        shares: Sequence[float] | None,
        count: int | None = None,
        *,
        seed: int,
        epoch: int,
        block: int = BLOCK,
    ) -> None:
        """See `quotas`; `block`: pairs in a block, at most."""
        self.sizes, self.quotas, self.seed, self.epoch = sizes, quotas(sizes, shares, count), seed, epoch
        self.plain = shares is None
        self.count = sum(self.quotas)
        self.blocks = max(1, -(-self.count // block))

    def block(self, number: int) -> NDArray[np.int64]:
        """Return the indices of a block; the whole corpus in its own order if that is one block."""
        first, end = (self.count * i // self.blocks for i in (number, number + 1))
        drawn = np.arange(first, end)
        if self.blocks > 1:
            drawn = shuffled(drawn, self.count, [self.seed, self.epoch])
        return drawn if self.plain else self._of_corpora(drawn)

    def _of_corpora(self, drawn: NDArray[np.int64]) -> NDArray[np.int64]:
        """Turn numbers of the epoch's pairs, corpus after corpus, into indices."""
        indices = np.empty_like(drawn)
        start = offset = 0
        for corpus, (size, quota) in enumerate(zip(self.sizes, self.quotas, strict=True)):
            mine = (drawn >= start) & (drawn < start + quota)
            passes, places = np.divmod(drawn[mine] - start + self.epoch * quota, max(size, 1))
            for number in np.unique(passes).tolist():
                again = passes == number
                places[again] = shuffled(places[again], size, [self.seed, corpus, number])
            indices[mine] = offset + places
            start, offset = start + quota, offset + size
        return indices


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
