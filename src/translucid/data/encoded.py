"""A corpus as token ids: four flat arrays, small enough for millions of pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Self

import numpy as np
from numpy.typing import NDArray

from translucid.data.corpus import Pair
from translucid.data.filtering import Skipped
from translucid.data.tokenizer import EOS, Tokenizer

# Pairs that are held as lists of Python integers at a time, which take ten times the space.
_CHUNK = 100_000


@dataclass(frozen=True, eq=False)
class EncodedCorpus:
    """Sentence pairs as ids. Sentence `i` of a side is `ids[offsets[i] : offsets[i + 1]]`, end token included."""

    source_ids: NDArray[np.int32]
    """All source sentences, one after the other."""
    source_offsets: NDArray[np.int64]
    """[pairs + 1], where each begins."""
    target_ids: NDArray[np.int32]
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

    def select(self, kept: NDArray[np.bool_]) -> Self:
        """Return the corpus without the pairs where `kept` [pairs] is False."""
        if kept.all():
            return self
        sides = (self.source_ids, self.source_lengths), (self.target_ids, self.target_lengths)
        arrays = [(ids[np.repeat(kept, n)], np.concatenate([[0], np.cumsum(n[kept])])) for ids, n in sides]
        return type(self)(*arrays[0], *arrays[1])

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

    def source(self, i: int) -> NDArray[np.int32]:
        """Return the ids of source sentence `i`, end token included."""
        return self.source_ids[self.source_offsets[i] : self.source_offsets[i + 1]]

    def target(self, i: int) -> NDArray[np.int32]:
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
        with_end = chain.from_iterable((*sentence, EOS) for sentence in sentences)
        self.ids.append(np.fromiter(with_end, np.int32, int(lengths.sum())))

    def arrays(self) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        return np.concatenate(self.ids), np.cumsum(np.concatenate(self.lengths))
