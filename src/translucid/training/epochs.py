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
from translucid.data.subword_dropout import VariedCorpus
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
        """Encode the corpus once; with subword dropout, draw the pools that each epoch takes its segmentations from."""
        self.max_tokens, self.batch_tokens, self.seed = max_tokens, batch_tokens, seed
        self.plain = EncodedCorpus.encode(pairs, tokenizer, max_tokens=max_tokens, skipped=skipped)
        self.batches_each = len(self._plan(self.plain, 0))
        checksum = 0
        for pair in pairs:
            checksum = zlib.crc32(f"{pair.source}\t{pair.target}\n".encode(), checksum)
        self.fingerprint = f"{len(pairs)} pairs, crc32 {checksum:08x}"
        self.varied = VariedCorpus(pairs, tokenizer, subword_dropout, seed) if subword_dropout else None

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
        """Return the corpus as it is read in this epoch; pairs that are too long only now sit it out."""
        return self.varied.draw([self.seed, epoch], self.max_tokens) if self.varied else self.plain
