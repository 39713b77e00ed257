"""The data loader: epochs of the training data, prepared ahead.

The batches of an epoch depend on nothing but the seed and its number.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from translucid.data.batching import Batch, BatchedCorpus, VariedBatches, bucketed_batches
from translucid.data.packing import PackedShape, pack, packed_batches
from translucid.data.sampler import BLOCK, Order
from translucid.ground.errors import UserError
from translucid.training.hardware.ddp import Workers

Item = TypeVar("Item")

AHEAD = 8
"""The number of batches that are prepared while the model computes."""


class SharedBatch(NamedTuple):
    """A batch whose rows are distributed over the processes."""

    rows: Batch | None
    """The rows of this process; None if there are fewer rows than processes."""
    target_tokens: int
    """The target tokens of all processes."""
    rate: float = 1.0
    """The factor of the learning rate for this batch."""


class DataLoader(Protocol):
    """Passes over the training data."""

    def size(self, epoch: int) -> int:
        """Return the number of batches of an epoch, or an estimate of it."""

    def done(self, epoch: int, batch: int) -> float:
        """Return the share of an epoch that is over before batch `batch`."""

    def batches(self, epoch: int, first: int = 0) -> Iterator[SharedBatch]:
        """Yield the batches of an epoch from batch `first` on, prepared in the background."""


def prefetched(make: Callable[[Item], SharedBatch], items: Iterable[Item]) -> Iterator[SharedBatch]:
    """Yield make(item) for each item in order, computed in a thread, up to `AHEAD` items before it is needed."""
    futures: deque[Future[SharedBatch]] = deque()
    with ThreadPoolExecutor(1) as thread:
        for item in items:
            futures.append(thread.submit(make, item))
            if len(futures) > AHEAD:
                yield futures.popleft().result()
        while futures:
            yield futures.popleft().result()


class PairDataLoader:
    """Epochs over a corpus, with batches in a new order each time and, with subword dropout, in new pieces."""

    def __init__(
        self,
        corpus: BatchedCorpus | VariedBatches,
        sizes: Sequence[int],
        *,
        shares: Sequence[float] | None = None,
        count: int | None = None,
        max_tokens: int | None = None,
        batch_tokens: int,
        seed: int,
        workers: Workers | None = None,
        block: int = BLOCK,
        packed: bool = False,
    ) -> None:
        """Store the settings; batches are planned when they are needed.

        Args:
            corpus: the pairs, the same in all epochs or with new pieces or another context in each.
            sizes: the number of pairs from each of the concatenated corpora.
            shares: the share of each corpus in an epoch, in any unit, for `Order`.
            count: the number of pairs in an epoch; all by default.
            max_tokens: the maximum length on either side; an epoch leaves out longer pairs.
            batch_tokens: the maximum number of tokens in a batch, padding included.
            seed: the seed of the order and the pieces.
            workers: the processes that share each batch.
            block: the number of pairs that are sorted into batches at a time.
            packed: whether batches are packed, and all batches have the same shape.
        """
        self.corpus, self.sizes, self.shares, self.count = corpus, sizes, shares, count
        self.max_tokens, self.batch_tokens, self.seed = max_tokens, batch_tokens, seed
        self.workers, self.block, self.packed = workers or Workers(), block, packed
        self._shape: PackedShape | None = None
        """The shape of packed batches, the same in all epochs, once one has been planned."""
        self._epoch_corpus: tuple[int, BatchedCorpus] | None = None
        self._block_plan: tuple[int, int, list[NDArray[np.int64]]] | None = None
        self._counts: dict[int, list[int]] = {}
        """For the current epoch, the number of batches of each block that has been planned."""

    def size(self, epoch: int) -> int:
        """Return the number of batches of an epoch, estimated from the first block."""
        return len(self._plan(epoch, 0)) * self._order(epoch).blocks

    def done(self, epoch: int, batch: int) -> float:
        """Return the share of an epoch that is over before batch `batch`."""
        block, first = self._find(epoch, batch)
        blocks = self._order(epoch).blocks
        return 1.0 if block == blocks else (block + first / len(self._plan(epoch, block))) / blocks

    def batches(self, epoch: int, first: int = 0) -> Iterator[SharedBatch]:
        """Yield the batches of an epoch from batch `first` on, prepared in the background.

        Raises:
            UserError: there are none, because all pairs are too long.
        """
        corpus = self._draw(epoch)
        if self._find(epoch, 0)[0] == self._order(epoch).blocks:
            what = f"every training pair has more than {self.max_tokens} tokens"
            raise UserError(what, fix="Raise data.max_tokens, or lower data.subword_dropout.")
        yield from prefetched(partial(self._collate, corpus, self._shape), self._planned_batches(epoch, first))

    def _planned_batches(self, epoch: int, first: int) -> Iterator[NDArray[np.int64]]:
        """Yield the indices of the pairs of each batch, from batch `first` on."""
        block, skip = self._find(epoch, first)
        for number in range(block, self._order(epoch).blocks):
            yield from self._plan(epoch, number)[skip:]
            skip = 0

    def _collate(self, corpus: BatchedCorpus, shape: PackedShape | None, indices: NDArray[np.int64]) -> SharedBatch:
        own_indices = indices[self.workers.rank :: self.workers.count]
        rows = corpus.batch(own_indices) if len(own_indices) else None
        if rows and shape:
            rows = pack(rows, shape.shared(self.workers.count))
        return SharedBatch(rows and rows.prepared(), corpus.target_tokens(indices))

    def _order(self, epoch: int) -> Order:
        return Order(self.sizes, self.shares, self.count, seed=self.seed, epoch=epoch, block=self.block)

    def _draw(self, epoch: int) -> BatchedCorpus:
        """Return the corpus of this epoch, with its own variation."""
        if not isinstance(self.corpus, VariedBatches):
            return self.corpus
        if self._epoch_corpus is None or self._epoch_corpus[0] != epoch:
            self._epoch_corpus = epoch, self.corpus.draw([self.seed, epoch])
        return self._epoch_corpus[1]

    def _find(self, epoch: int, batch: int) -> tuple[int, int]:
        """Return the block of a batch in an epoch, and the number of the batch within the block."""
        for block in range(self._order(epoch).blocks):
            counts = self._counts.get(epoch, [])
            count = counts[block] if block < len(counts) else len(self._plan(epoch, block))
            if batch < count:
                return block, batch
            batch -= count
        return self._order(epoch).blocks, 0

    def _pairs(self, epoch: int, block: int) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Return the indices of the pairs of a block that are not too long, and their lengths on both sides."""
        indices = self._order(epoch).block(block)
        source, target = self._draw(epoch).lengths_of(indices)
        fit = np.maximum(source, target) <= (self.max_tokens or np.inf)
        return (indices, source, target) if fit.all() else (indices[fit], source[fit], target[fit])

    def _plan(self, epoch: int, block: int) -> list[NDArray[np.int64]]:
        """Return the batches of a block as indices of pairs."""
        if self._block_plan is None or self._block_plan[:2] != (epoch, block):
            if self.packed and not self._shape:
                _, source, target = self._pairs(0, 0)  # of the first epoch, also when a training is resumed
                longest = self.max_tokens or int(np.maximum(source, target).max())
                self._shape = PackedShape.of(source, target, self.batch_tokens, longest)
            indices, source, target = self._pairs(epoch, block)
            if self._shape:
                plan = packed_batches(source, target, self._shape, seed=self.seed, epoch=epoch, block=block)
            else:
                plan = bucketed_batches(
                    source, target, batch_tokens=self.batch_tokens, seed=self.seed, epoch=epoch, block=block
                )
            batches = [indices[positions] for positions in plan]
            self._block_plan = epoch, block, batches
            if epoch not in self._counts:
                self._counts = {epoch: []}
            if block == len(self._counts[epoch]):
                self._counts[epoch].append(len(batches))
        return self._block_plan[2]
