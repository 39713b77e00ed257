"""Packed batches of sentence pairs: all sources are in one row and all targets in another.

All batches of a training have one shape, so a GPU can reuse one graph for all of them. Pairs are taken in random order
while they fit; the rest of a row is filled with padding.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from translucid.data.batching import Batch, LinkedPieces
from translucid.ground.special import SPECIAL
from translucid.kernels.loss import SoftTargets
from translucid.kernels.packing import Packing, Sentences

TOKENS, SENTENCES = 1.03, 1.25
"""How much room a batch has beyond the mean, on its shorter side and for its pairs: the ratio of the sides varies, and
room for pairs costs nothing."""
MULTIPLE = 8
"""Sizes are multiples of this, as the tensor cores of GPUs need."""


class PackedShape(NamedTuple):
    """The shape of packed batches."""

    pairs: int
    """The largest number of pairs of a batch."""
    source: int
    """The length of the row of sources."""
    target: int
    """The length of the row of targets."""
    longest: int
    """The largest number of tokens of a sentence."""

    @classmethod
    def of(
        cls, source: NDArray[np.integer], target: NDArray[np.integer], batch_tokens: int, longest: int
    ) -> PackedShape:
        """Return a shape for pairs of these lengths, with a row of `batch_tokens` on the side that has more tokens."""
        means = [float(lengths.mean()) if len(lengths) else 1.0 for lengths in (source, target)]
        count = batch_tokens / max(means)
        rows = [min(batch_tokens, _rounded_up(TOKENS * count * mean)) for mean in means]
        return cls(_rounded_up(SENTENCES * count), rows[0], rows[1], longest)

    @property
    def fillers(self) -> int:
        """The number of sentences that share the rest of a row, each with 1 to `longest` tokens."""
        return -(-max(self.source, self.target) // self.longest)

    def shared(self, processes: int) -> PackedShape:
        """Return the shape of each of several processes, which share the pairs of a batch."""
        if processes == 1:
            return self
        rows = [_rounded_up(row / processes + self.longest) for row in (self.source, self.target)]
        return PackedShape(_rounded_up(self.pairs / processes), rows[0], rows[1], self.longest)


def _rounded_up(size: float) -> int:
    return -int(-size // MULTIPLE) * MULTIPLE


def packed_batches(
    source_lengths: NDArray[np.integer],
    target_lengths: NDArray[np.integer],
    shape: PackedShape,
    *,
    seed: int,
    epoch: int,
    block: int = 0,
) -> list[NDArray[np.int64]]:
    """Return the batches of a block as arrays of sentence indices; each index is in exactly one.

    The order is random. A batch takes the next pairs while they fit; a pair that fits into none makes a batch by
    itself, in a larger shape. The result depends on nothing but the arguments.
    """
    order = np.random.default_rng(np.random.SeedSequence([seed, epoch, block])).permutation(len(source_lengths))
    ends = [np.cumsum(lengths[order]) for lengths in (source_lengths, target_lengths)]
    batches, start = [], 0
    while start < len(order):
        end = start + shape.pairs
        for side_ends, size in zip(ends, (shape.source, shape.target), strict=True):
            before = side_ends[start - 1] if start else 0
            end = min(end, int(np.searchsorted(side_ends, before + size - shape.fillers, side="right")))
        end = max(end, start + 1)
        batches.append(order[start:end])
        start = end
    return batches


def pack(batch: Batch, shape: PackedShape | None = None) -> Batch:
    """Return a padded batch of ids as a packed one, filled up to a shape, or without filling.

    A batch that is too large for the shape makes it larger.
    """
    is_source, is_target = batch.source.ne(SPECIAL.pad), batch.targets_in.ne(SPECIAL.pad)
    lengths = is_source.sum(1), is_target.sum(1)
    sizes = (shape.source, shape.target) if shape else (0, 0)
    packing = Packing(*(_sentences(side, size, shape) for side, size in zip(lengths, sizes, strict=True)))
    source = _row(batch.source[is_source], packing.source)
    targets_in, labels = (_row(ids[is_target], packing.target) for ids in (batch.targets_in, batch.labels))
    links = batch.links
    if links:
        # From indices in the weights [B, T, S] of the padded batch to those in the weights [1, T, S] of the rows.
        row, column = links.positions // batch.source.size(1), links.positions % batch.source.size(1)
        target_index = (is_target.flatten().cumsum(0) - 1)[row]
        pair = row // batch.labels.size(1)
        source_index = packing.source.offsets.long()[pair] + column
        links = LinkedPieces(target_index * source.size(1) + source_index, links.weights)
    soft = batch.soft_targets
    if soft:  # at all positions; nothing is expected at those of the filling
        rest = labels.size(1) - len(soft.tokens)
        soft = SoftTargets(*(F.pad(part, (0, 0, 0, rest)) for part in soft))
    return Batch(source, targets_in, labels, links=links, soft_targets=soft, packing=packing)


def _sentences(lengths: Tensor, size: int, shape: PackedShape | None) -> Sentences:
    """Return the sentences of one side, followed by those that fill the row of this size, and by empty ones.

    The rest of a row is not one sentence, because no sentence may be longer than `longest`. It is not left over either,
    because the attention of a GPU leaves tokens outside of sentences uninitialized.
    """
    if shape is None:
        return Sentences.of(lengths, int(lengths.max()))
    rest = max(size - int(lengths.sum()), shape.fillers)
    filling = rest // shape.fillers + (torch.arange(shape.fillers) < rest % shape.fillers).long()
    empty = lengths.new_zeros(max(shape.pairs - len(lengths), 0))
    longest = max(shape.longest, int(lengths.max()))
    return Sentences.of(torch.cat([lengths, filling, empty]), longest)


def _row(ids: Tensor, sentences: Sentences) -> Tensor:
    """Return ids [n] in a row [1, N], padded on the right."""
    row = ids.new_full((1, len(sentences.number)), SPECIAL.pad)
    row[0, : len(ids)] = ids
    return row
