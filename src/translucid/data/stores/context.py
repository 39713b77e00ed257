"""Encoded pairs whose sources follow the sentences before them; each sentence is stored once and joined in batches.

The number of sentences before a pair is drawn for each pair and epoch, from 0 to `data.context`, so that the model also
learns to translate a sentence by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from translucid.data.batching import Batch, padded_rows, shifted
from translucid.data.document_context import ContextOptions
from translucid.data.sampler import hashed
from translucid.data.stores.encoded import EncodedCorpus
from translucid.data.tokenizing.subword_dropout import VariedCorpus
from translucid.ground.special import SPECIAL


@dataclass(frozen=True, eq=False)
class ContextCorpus:
    """Encoded pairs, each after the sentences before it in its document."""

    corpus: EncodedCorpus
    """The pairs, with the numbers of their documents."""
    options: ContextOptions
    corpus_starts: NDArray[np.int64]
    """The first pair of each of the concatenated corpora, whose documents are numbered separately."""
    seed: Sequence[int] | None = None
    """Determines how many sentences precede each pair; without it, as many as there are, up to the limit."""

    def __len__(self) -> int:
        return len(self.corpus)

    def lengths_of(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the lengths of the source, with the sentences before it, and of the target of pairs `rows` [n]."""
        _, target = self.corpus.lengths_of(rows)
        return self.corpus.source_offsets[rows + 1] - self._starts(rows), target

    def target_tokens(self, rows: NDArray[np.int64]) -> int:
        """Return the number of tokens of the target sentences `rows` [n], end tokens included."""
        return self.corpus.target_tokens(rows)

    def batch(self, rows: NDArray[np.integer] | Sequence[int]) -> Batch:
        """Put the pairs `rows` [B] into one batch."""
        pair_rows, corpus = np.asarray(rows, np.int64), self.corpus
        starts = self._starts(pair_rows)
        # Sentences of a document are neighbors in the corpus: a row [start, end) is several of them.
        source, _ = padded_rows(corpus.source_ids, starts, corpus.source_offsets[pair_rows + 1])
        context = np.arange(source.shape[1]) < (corpus.source_offsets[pair_rows] - starts)[:, None]  # [B, S]
        source[context & (source == SPECIAL.end)] = self.options.separator
        targets_in, labels = shifted(corpus.target_ids, corpus.target_offsets, pair_rows)
        links = None
        if corpus.links:
            # Word links count the words of the sentence itself.
            links = corpus.links.pieces(pair_rows, np.where(context, SPECIAL.pad, source), labels.numpy())
        return Batch(torch.from_numpy(source), targets_in, labels, links=links)

    def _starts(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return where the input of each row begins among all source ids."""
        limits = np.full(len(rows), self.options.max_sentences)
        if self.seed is not None:
            limits = hashed(rows, self.seed) % (self.options.max_sentences + 1)
        first_rows = rows - np.minimum(self._available(rows, self.options.max_sentences), limits)
        offsets = self.corpus.source_offsets
        return np.maximum(offsets[first_rows], offsets[rows + 1] - self.options.max_tokens)

    def _available(self, rows: NDArray[np.int64], limit: int) -> NDArray[np.int64]:
        """Return the number of sentences, up to `limit`, that precede each row in its document."""
        documents = self.corpus.documents
        assert documents is not None
        earlier_rows = rows[:, None] - np.arange(1, limit + 1)  # [n, limit]
        same_document = documents[np.maximum(earlier_rows, 0)] == documents[rows][:, None]
        same_document &= (documents[rows] >= 0)[:, None]
        same_document &= (
            earlier_rows >= self.corpus_starts[np.searchsorted(self.corpus_starts, rows, "right") - 1][:, None]
        )
        # Only an unbroken run counts.
        return np.logical_and.accumulate(same_document, 1).sum(1)


class VariedContext:
    """Pairs with another number of sentences before each in every epoch and, with subword dropout, other pieces."""

    def __init__(self, corpus: EncodedCorpus | VariedCorpus, sizes: Sequence[int], options: ContextOptions) -> None:
        """Join the pairs of concatenated corpora, which have these `sizes`."""
        self.corpus, self.options = corpus, options
        self.corpus_starts = np.cumsum([0, *sizes[:-1]])

    def has_context(self) -> bool:
        """Whether any pair has another one before it in its document."""
        documents = self.corpus.documents
        assert documents is not None
        same_document = (documents[1:] == documents[:-1]) & (documents[1:] >= 0)
        same_document[self.corpus_starts[(self.corpus_starts > 0) & (self.corpus_starts < len(documents))] - 1] = False
        return bool(same_document.any())

    def draw(self, seed: Sequence[int]) -> ContextCorpus:
        """Return the pairs of the epoch that `seed` determines."""
        corpus = self.corpus.draw(seed) if isinstance(self.corpus, VariedCorpus) else self.corpus
        return ContextCorpus(corpus, self.options, self.corpus_starts, seed)
