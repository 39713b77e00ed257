"""The sentence pairs of an epoch and their order: all pairs of one corpus, or shares of several corpora.

Several corpora are mixed by weight, or by temperature as in multilingual models (Arivazhagan et al. 2019, arXiv
1907.05019): corpus c with n_c pairs gets the share p_c, proportional to n_c^(1/T). By default, an epoch has as many
pairs as all corpora together; corpus c provides the share p_c of them. Each corpus is read to its end in a random
order, then again in another one, across the ends of epochs: no pair is repeated before all pairs of its corpus have
been read.

A random order is a keyed permutation, computed position by position: a Feistel network over the bits of the number,
repeated until the result is in range (Black and Rogaway 2002, "Ciphers with arbitrary finite domains"). So memory does
not grow with the corpus, and the billionth pair of an epoch is found without the pairs before it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

BLOCK = 1_000_000
"""The number of pairs that are sorted into batches at a time; it bounds the memory of an epoch."""

_ROUNDS = 4
"""Rounds of the Feistel network; with ideal round functions, four are enough (Luby and Rackoff 1988)."""


def by_temperature(sizes: Sequence[int], temperature: float) -> list[float]:
    """Return the share of each corpus: proportional to its size at temperature 1, more equal at higher ones."""
    weights = np.array(sizes, float) ** (1 / temperature)
    return (weights / weights.sum()).tolist()


def directions_by_temperature(sizes: Sequence[int], directions: Sequence[object], temperature: float) -> list[float]:
    """Return the share of each corpus if directions, not corpora, are weighted by temperature.

    Args:
        sizes: the number of pairs of each corpus.
        directions: the direction of each corpus. Corpora of one direction share its weight by their sizes.
        temperature: T in the weights of `by_temperature`.
    """
    totals = Counter[object]()
    for size, direction in zip(sizes, directions, strict=True):
        totals[direction] += size
    weights = dict(zip(totals, by_temperature([*totals.values()], temperature), strict=True))
    shares = []
    for size, direction in zip(sizes, directions, strict=True):
        shares.append(weights[direction] * size / max(totals[direction], 1))
    return shares


def mixed_in(
    sizes: Sequence[int], shares: Sequence[float] | None, mixed_shares: Sequence[float]
) -> tuple[list[float], int]:
    """Return the share of each corpus, and the pairs of an epoch, if the last corpora are mixed into the others.

    An epoch reads the others once, and as many pairs of the last corpora as their shares require.

    Args:
        sizes: the number of pairs of each corpus.
        shares: the weights of the other corpora, in any unit; None for their sizes.
        mixed_shares: the share of an epoch that each of the last corpora gets; together less than 1.
    """
    main_sizes = sizes[: len(sizes) - len(mixed_shares)]
    weights = np.array(main_sizes if shares is None else shares, float)
    main_share = 1 - sum(mixed_shares)
    return [*(weights / weights.sum() * main_share).tolist(), *mixed_shares], round(sum(main_sizes) / main_share)


def quotas(sizes: Sequence[int], shares: Sequence[float] | None, count: int | None = None) -> list[int]:
    """Return how many pairs of each corpus an epoch reads.

    Args:
        sizes: the number of pairs of each corpus.
        shares: the weight of each corpus in an epoch, in any unit; None to read each corpus once.
        count: the number of pairs of an epoch; by default the sum of the sizes.
    """
    if shares is None:
        return list(sizes)
    weights = np.array(shares, float) * (np.array(sizes) > 0)
    # Rounding the cumulated shares makes the quotas add up to `count` exactly.
    ends = np.rint(np.cumsum(weights) / weights.sum() * (count or sum(sizes))).astype(int)
    return np.diff(ends, prepend=0).tolist()


class Order:
    """The pairs of one epoch as indices, block by block; they depend on nothing but the arguments."""

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
        """Compute the quotas of the corpora, with the arguments of `quotas`; a block has at most `block` pairs."""
        self.sizes, self.quotas, self.seed, self.epoch = sizes, quotas(sizes, shares, count), seed, epoch
        self.is_unmixed = shares is None
        self.count = sum(self.quotas)
        self.blocks = max(1, -(-self.count // block))

    def block(self, number: int) -> NDArray[np.int64]:
        """Return the indices of a block. A single one is not shuffled here: `bucketed_batches` shuffles its batches."""
        start = self.count * number // self.blocks
        end = self.count * (number + 1) // self.blocks
        positions = np.arange(start, end)
        if self.blocks > 1:
            positions = shuffled(positions, self.count, [self.seed, self.epoch])
        return positions if self.is_unmixed else self._corpus_indices(positions)

    def _corpus_indices(self, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the indices of pairs that are numbered within the epoch, corpus after corpus."""
        indices = np.empty_like(positions)
        start = offset = 0
        for corpus, (size, quota) in enumerate(zip(self.sizes, self.quotas, strict=True)):
            in_corpus = (positions >= start) & (positions < start + quota)
            # Reading continues where the previous epoch ended; each pass over a corpus has its own order.
            passes, pass_positions = np.divmod(positions[in_corpus] - start + self.epoch * quota, max(size, 1))
            for number in np.unique(passes).tolist():
                in_pass = passes == number
                pass_positions[in_pass] = shuffled(pass_positions[in_pass], size, [self.seed, corpus, number])
            indices[in_corpus] = offset + pass_positions
            start, offset = start + quota, offset + size
        return indices


def shuffled(positions: NDArray[np.int64], count: int, seed: Sequence[int]) -> NDArray[np.int64]:
    """Return which of `count` items are at some positions of a random order; the seed determines the order.

    Args:
        positions: [n], within 0 .. count - 1.
        count: the number of items, below 2^62.
        seed: non-negative numbers.
    """
    # The network permutes numbers of 2 * half bits, the fewest that hold all items.
    half = np.uint64(max(1, -(-(count - 1).bit_length() // 2)))
    mask = (np.uint64(1) << half) - np.uint64(1)
    keys = np.random.SeedSequence([*seed, count]).generate_state(_ROUNDS, np.uint64)
    numbers = positions.astype(np.uint64)
    outside = np.arange(len(numbers))
    # Cycle walking: permute each result that is not an item again. The domain is less than four times as large as the
    # number of items, so a few rounds are enough.
    while len(outside):
        left, right = numbers[outside] >> half, numbers[outside] & mask
        for key in keys:
            left, right = right, left ^ (mixed(right ^ key) & mask)
        numbers[outside] = (left << half) | right
        outside = outside[numbers[outside] >= count]
    return numbers.astype(np.int64)


def hashed(numbers: NDArray[np.int64], seed: Sequence[int]) -> NDArray[np.int64]:
    """Return a random number below 2^32 for each number, which depends on nothing but that number and the seed."""
    (key,) = np.random.SeedSequence(seed).generate_state(1, np.uint64)
    return (mixed(mixed(numbers.astype(np.uint64)) ^ key) >> np.uint64(32)).astype(np.int64)


def mixed(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return numbers that depend on all bits of the given ones, which are overwritten (SplitMix64, Steele 2014)."""
    numbers ^= numbers >> np.uint64(30)
    numbers *= np.uint64(0xBF58476D1CE4E5B9)
    numbers ^= numbers >> np.uint64(27)
    numbers *= np.uint64(0x94D049BB133111EB)
    numbers ^= numbers >> np.uint64(31)
    return numbers
