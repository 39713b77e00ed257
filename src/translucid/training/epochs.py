"""Pass after pass over the training data, each a pure function of the seed and its number."""

from __future__ import annotations

import zlib
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

from translucid.data.batching import Batch, collate, plan_epoch
from translucid.data.corpus import Pair
from translucid.data.encoded import EncodedCorpus
from translucid.data.filtering import Skipped
from translucid.data.tokenizer import Tokenizer

AHEAD = 8
"""Batches prepared while the model is at work."""


class Epochs:
    """The training corpus, its batches in a new order each epoch and, with subword dropout, in new pieces."""

    def __init__(
        self,
        pairs: Sequence[Pair],
        tokenizer: Tokenizer,
        *,
        max_tokens: int,
        batch_tokens: int,
        seed: int,
        subword_dropout: float = 0.0,
        skipped: Skipped | None = None,
    ) -> None:
        """Encode the corpus once; with subword dropout that counts lengths, and each epoch is encoded anew."""
        self.pairs, self.tokenizer, self.max_tokens = pairs, tokenizer, max_tokens
        self.batch_tokens, self.seed, self.subword_dropout = batch_tokens, seed, subword_dropout
        self.plain = EncodedCorpus.encode(pairs, tokenizer, max_tokens=max_tokens, skipped=skipped)
        self.batches_each = len(self._plan(self.plain, 0))
        checksum = 0
        for pair in pairs:
            checksum = zlib.crc32(f"{pair.source}\t{pair.target}\n".encode(), checksum)
        self.fingerprint = f"{len(pairs)} pairs, crc32 {checksum:08x}"
        self._coming: tuple[int, Future[EncodedCorpus]] | None = None
        self._worker = ThreadPoolExecutor(1)

    def batches(self, epoch: int, first: int = 0) -> Iterator[Batch]:
        """Yield the batches of an epoch from batch `first` on, prepared in the background."""
        corpus = self._corpus(epoch)
        plan = self._plan(corpus, epoch)[first:]
        coming: deque[Future[Batch]] = deque()
        with ThreadPoolExecutor(1) as worker:
            for indices in plan:
                coming.append(worker.submit(collate, corpus, indices))
                if len(coming) > AHEAD:
                    yield coming.popleft().result()
            while coming:
                yield coming.popleft().result()

    def _plan(self, corpus: EncodedCorpus, epoch: int) -> list:  # type: ignore[type-arg]
        lengths = corpus.source_lengths, corpus.target_lengths
        return plan_epoch(*lengths, batch_tokens=self.batch_tokens, seed=self.seed, epoch=epoch)

    def _corpus(self, epoch: int) -> EncodedCorpus:
        """The corpus as it is read in this epoch; the next epoch's is made meanwhile."""
        if not self.subword_dropout:
            return self.plain
        if self._coming is None or self._coming[0] != epoch:
            self._coming = epoch, self._worker.submit(self._encode, epoch)
        corpus = self._coming[1].result()
        self._coming = epoch + 1, self._worker.submit(self._encode, epoch + 1)
        return corpus

    def _encode(self, epoch: int) -> EncodedCorpus:
        # Pairs that only this segmentation makes too long sit out this epoch.
        seed = zlib.crc32(f"{self.seed} {epoch}".encode())
        return EncodedCorpus.encode(
            self.pairs, self.tokenizer, max_tokens=self.max_tokens, dropout=self.subword_dropout, seed=seed
        )
