"""Pass after pass over the training data, each a pure function of the seed and its number."""

from __future__ import annotations

import zlib
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from translucid.data.batching import Batch, collate, plan_epoch
from translucid.data.corpus import Pair
from translucid.data.encoded import EncodedCorpus
from translucid.data.filtering import Skipped
from translucid.data.subword_dropout import VariedCorpus
from translucid.data.tokenizer import Tokenizer
from translucid.errors import UserError

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
        """Encode the corpus once; with subword dropout, draw the pools that each epoch takes its segmentations from.

        Raises:
            UserError: every pair has more than `max_tokens` tokens.
        """
        self.max_tokens, self.batch_tokens, self.seed = max_tokens, batch_tokens, seed
        self.plain = EncodedCorpus.encode(pairs, tokenizer, max_tokens=max_tokens, skipped=skipped)
        if not len(self.plain):
            raise UserError(f"every training pair has more than {max_tokens} tokens", fix="Raise data.max_tokens.")
        checksum = 0
        for pair in pairs:
            checksum = zlib.crc32(f"{pair.source}\t{pair.target}\n".encode(), checksum)
        self.fingerprint = f"{len(pairs)} pairs, crc32 {checksum:08x}"
        self.varied = VariedCorpus(pairs, tokenizer, subword_dropout, seed) if subword_dropout else None
        self._prepared: tuple[int, EncodedCorpus, list[NDArray[np.int64]]] | None = None

    def size(self, epoch: int) -> int:
        """Return the number of batches of an epoch; it changes a little with the segmentation."""
        return len(self._prepare(epoch)[1])

    def batches(self, epoch: int, first: int = 0) -> Iterator[Batch]:
        """Yield the batches of an epoch from batch `first` on, prepared in the background."""
        corpus, plan = self._prepare(epoch)
        coming: deque[Future[Batch]] = deque()
        with ThreadPoolExecutor(1) as worker:
            for indices in plan[first:]:
                coming.append(worker.submit(collate, corpus, indices))
                if len(coming) > AHEAD:
                    yield coming.popleft().result()
            while coming:
                yield coming.popleft().result()

    def _prepare(self, epoch: int) -> tuple[EncodedCorpus, list[NDArray[np.int64]]]:
        """Return the corpus as it is read in this epoch, and its batches; pairs too long only now sit it out."""
        if self._prepared is None or self._prepared[0] != epoch:
            corpus = self.varied.draw([self.seed, epoch], self.max_tokens) if self.varied else self.plain
            plan = plan_epoch(
                corpus.source_lengths,
                corpus.target_lengths,
                batch_tokens=self.batch_tokens,
                seed=self.seed,
                epoch=epoch,
            )
            self._prepared = epoch, corpus, plan
        return self._prepared[1:]
