"""Pass after pass over the training data, each a pure function of the seed and its number."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from translucid.data.batching import Batch, plan_epoch
from translucid.data.readers.captioned import CaptionedImages, VariedImages
from translucid.data.readers.labelled import LabelledTexts
from translucid.data.sampler import BLOCK, Order
from translucid.data.stores.encoded import EncodedCorpus
from translucid.data.tokenizing.subword_dropout import VariedCorpus
from translucid.ground.errors import UserError
from translucid.training.workers import Workers

Pairs: TypeAlias = EncodedCorpus | CaptionedImages | LabelledTexts
"""What a batch is made of: sentence pairs, images with all their captions, or texts with labels."""

AHEAD = 8
"""Batches prepared while the model is at work."""


class Shared(NamedTuple):
    """A batch, of which each process has its rows."""

    rows: Batch | None
    """This process's; None if there are fewer rows than processes."""
    target_tokens: int
    """Of all processes."""
    rate: float = 1.0
    """Share of the learning rate that is due to it."""


class Epochs(Protocol):
    """Passes over what is learned from."""

    def size(self, epoch: int) -> int:
        """Return the number of batches of an epoch, or what one may expect."""

    def done(self, epoch: int, batch: int) -> float:
        """Return the share of an epoch that is over before batch `batch`."""

    def batches(self, epoch: int, first: int = 0) -> Iterator[Shared]:
        """Yield the batches of an epoch from batch `first` on, prepared in the background."""


class PairEpochs:
    """The training corpus, its batches in a new order each epoch and, with subword dropout, in new pieces."""

    def __init__(
        self,
        corpus: Pairs | VariedCorpus | VariedImages,
        sizes: Sequence[int],
        *,
        shares: Sequence[float] | None = None,
        count: int | None = None,
        max_tokens: int | None = None,
        batch_tokens: int,
        seed: int,
        workers: Workers | None = None,
        block: int = BLOCK,
    ) -> None:
        """Nothing is planned yet.

        Args:
            corpus: the pairs, in the same pieces always or in others each epoch.
            sizes: how many of them come from each of the corpora that were put together.
            shares: what part of an epoch each corpus is to be, in any unit; see `Order`.
            count: pairs of an epoch, if not as many as there are.
            max_tokens: pairs that come out longer, on either side, sit an epoch out; if not given, none does.
            batch_tokens: see `plan_epoch`.
            seed: decides the order and the pieces.
            workers: the processes that share each batch.
            block: pairs that are sorted into batches at a time.
        """
        self.corpus, self.sizes, self.shares, self.count = corpus, sizes, shares, count
        self.max_tokens, self.batch_tokens, self.seed = max_tokens, batch_tokens, seed
        self.workers, self.block = workers or Workers(), block
        self._drawn: tuple[int, Pairs] | None = None
        self._planned: tuple[int, int, list[NDArray[np.int64]]] | None = None
        self._counts: dict[int, list[int]] = {}  # by epoch: batches of each block, as far as they are planned

    def size(self, epoch: int) -> int:
        """Return the number of batches of an epoch; of a large corpus, what its first block makes one expect."""
        return len(self._plan(epoch, 0)) * self._order(epoch).blocks

    def done(self, epoch: int, batch: int) -> float:
        """Return the share of an epoch that is over before batch `batch`."""
        block, first = self._find(epoch, batch)
        blocks = self._order(epoch).blocks
        return 1.0 if block == blocks else (block + first / len(self._plan(epoch, block))) / blocks

    def batches(self, epoch: int, first: int = 0) -> Iterator[Shared]:
        """Yield the batches of an epoch from batch `first` on, prepared in the background.

        Raises:
            UserError: there are none, because all pairs come out too long.
        """
        coming: deque[Future[Shared]] = deque()
        corpus = self._draw(epoch)
        block, skip = self._find(epoch, first)
        if self._find(epoch, 0)[0] == self._order(epoch).blocks:
            what = f"every training pair has more than {self.max_tokens} tokens"
            raise UserError(what, fix="Raise data.max_tokens, or lower data.subword_dropout.")
        with ThreadPoolExecutor(1) as worker:
            for number in range(block, self._order(epoch).blocks):
                for indices in self._plan(epoch, number)[skip:]:
                    coming.append(worker.submit(self._collate, corpus, indices))
                    if len(coming) > AHEAD:
                        yield coming.popleft().result()
                skip = 0
            while coming:
                yield coming.popleft().result()

    def _collate(self, corpus: Pairs, indices: NDArray[np.int64]) -> Shared:
        mine = indices[self.workers.rank :: self.workers.count]
        rows = corpus.batch(mine).prepared() if len(mine) else None
        return Shared(rows, corpus.target_tokens(indices))

    def _order(self, epoch: int) -> Order:
        return Order(self.sizes, self.shares, self.count, seed=self.seed, epoch=epoch, block=self.block)

    def _draw(self, epoch: int) -> Pairs:
        """Return the corpus as it is read in this epoch."""
        if not isinstance(self.corpus, VariedCorpus | VariedImages):
            return self.corpus
        if self._drawn is None or self._drawn[0] != epoch:
            self._drawn = epoch, self.corpus.draw([self.seed, epoch])
        return self._drawn[1]

    def _find(self, epoch: int, batch: int) -> tuple[int, int]:
        """Return the block that a batch of an epoch is in, and its number there."""
        for block in range(self._order(epoch).blocks):
            counts = self._counts.get(epoch, [])
            count = counts[block] if block < len(counts) else len(self._plan(epoch, block))
            if batch < count:
                return block, batch
            batch -= count
        return self._order(epoch).blocks, 0

    def _plan(self, epoch: int, block: int) -> list[NDArray[np.int64]]:
        """Return the batches of a block as indices of pairs."""
        if self._planned is None or self._planned[:2] != (epoch, block):
            corpus, indices = self._draw(epoch), self._order(epoch).block(block)
            source, target = corpus.lengths_of(indices)
            fit = np.maximum(source, target) <= (self.max_tokens or np.inf)
            if not fit.all():
                indices, source, target = indices[fit], source[fit], target[fit]
            limits = {"batch_tokens": self.batch_tokens, "seed": self.seed, "epoch": epoch, "block": block}
            batches = [indices[places] for places in plan_epoch(source, target, **limits)]
            self._planned = epoch, block, batches
            if epoch not in self._counts:
                self._counts = {epoch: []}
            if block == len(self._counts[epoch]):
                self._counts[epoch].append(len(batches))
        return self._planned[2]
