"""A corpus as token ids: four flat arrays, in memory or mapped into it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Self

import numpy as np
from numpy.typing import NDArray

from translucid.data.corpus import Pair
from translucid.data.filtering import Skipped
from translucid.data.tokenizer import Tokenizer
from translucid.ground.special import SPECIAL

# Pairs that are held as lists of Python integers at a time, which take ten times the space.
_CHUNK = 100_000


@dataclass(frozen=True, eq=False)
class EncodedCorpus:
    """Sentence pairs as ids. Sentence `i` of a side is `ids[offsets[i] : offsets[i + 1]]`, end token included."""

    source_ids: NDArray[np.integer]
    """All source sentences, one after the other."""
    source_offsets: NDArray[np.int64]
    """[pairs + 1], where each begins."""
    target_ids: NDArray[np.integer]
    """All target sentences, one after the other."""
    target_offsets: NDArray[np.int64]
    """[pairs + 1], where each begins."""

    @classmethod
    def encode(
        cls,
        pairs: Sequence[Pair],
        tokenizer: Tokenizer,
        *,
        max_tokens: int,
        skipped: Skipped | None = None,
    ) -> Self:
        """Encode sentence pairs, and append the end token to both sides.

        Args:
            pairs: the text.
            tokenizer: for both sides.
            max_tokens: a pair with more tokens on either side, end token included, is skipped.
            skipped: counts the pairs left out, as "too long".
        """
        sources, targets = _Side(), _Side()
        for start in range(0, len(pairs), _CHUNK):
            chunk = pairs[start : start + _CHUNK]
            source = tokenizer.encode_source([pair.source for pair in chunk])
            target = tokenizer.encode_target([pair.target for pair in chunk])
            kept = [max(len(s), len(t)) < max_tokens for s, t in zip(source, target, strict=True)]
            sources.append([ids for ids, keep in zip(source, kept, strict=True) if keep])
            targets.append([ids for ids, keep in zip(target, kept, strict=True) if keep])
            if skipped is not None:
                for _ in range(kept.count(False)):
                    skipped.add("too long")
        return cls(*sources.arrays(), *targets.arrays())

    def __len__(self) -> int:
        """Return the number of pairs."""
        return len(self.source_offsets) - 1

    @property
    def source_lengths(self) -> NDArray[np.int64]:
        """[pairs], in tokens, end token included."""
        return np.diff(self.source_offsets)

    @property
    def target_lengths(self) -> NDArray[np.int64]:
        """[pairs], in tokens, end token included."""
        return np.diff(self.target_offsets)

    def lengths_of(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the lengths of the source and the target sentences `rows` [n], end tokens included."""
        sides = self.source_offsets, self.target_offsets
        source, target = (offsets[rows + 1] - offsets[rows] for offsets in sides)
        return source, target

    def source(self, i: int) -> NDArray[np.integer]:
        """Return the ids of source sentence `i`, end token included."""
        return self.source_ids[self.source_offsets[i] : self.source_offsets[i + 1]]

    def target(self, i: int) -> NDArray[np.integer]:
        """Return the ids of target sentence `i`, end token included."""
        return self.target_ids[self.target_offsets[i] : self.target_offsets[i + 1]]


class _Side:
    """One language while its chunks are coming in."""

    def __init__(self) -> None:
        self.ids = [np.empty(0, np.int32)]
        self.lengths = [np.zeros(1, np.int64)]

    def append(self, sentences: list[list[int]]) -> None:
        lengths = np.fromiter(map(len, sentences), np.int64, len(sentences)) + 1
        self.lengths.append(lengths)
        with_end = chain.from_iterable((*sentence, SPECIAL.end) for sentence in sentences)
        self.ids.append(np.fromiter(with_end, np.int32, int(lengths.sum())))

    def arrays(self) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        return np.concatenate(self.ids), np.cumsum(np.concatenate(self.lengths))
