"""The most probable tokens of teachers at each target position of an encoded corpus, memory-mapped."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from translucid.kernels.loss import SoftTargets


@dataclass(frozen=True, eq=False)
class StoredSoftTargets:
    """The soft targets of all target tokens, in the order of `EncodedCorpus.target_ids`."""

    tokens: NDArray[np.integer]
    """The tokens, the most probable one first, [tokens, K]."""
    probabilities: NDArray[np.float16]
    """Their probabilities, [tokens, K]."""

    def of(self, rows: NDArray[np.int64], offsets: NDArray[np.int64]) -> SoftTargets:
        """Return the soft targets of some pairs, at `Batch.positions`.

        Args:
            rows: the numbers of the pairs [B].
            offsets: the offset of each target sentence [pairs + 1].
        """
        spans = [np.arange(offsets[row], offsets[row + 1]) for row in rows]
        positions = np.concatenate(spans)
        probabilities = self.probabilities[positions].astype(np.float32)
        # Sixteen bits do not keep the sum of exactly 1.
        probabilities /= probabilities.sum(1, keepdims=True)
        return SoftTargets(torch.from_numpy(self.tokens[positions].astype(np.int64)), torch.from_numpy(probabilities))
