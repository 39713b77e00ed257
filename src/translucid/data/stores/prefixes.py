"""Encoded pairs of which a share is cut in each epoch, so that a model learns to translate beginnings of sentences.

A source prefix of whole words, at a place drawn for each pair and epoch, is paired with the target words that are
aligned to it: those before the first target word with a link to a word that is cut off, up to the last one with a link.

    Ein Mann schläft in einem Bus .        Ein Mann schläft </s>
    A man is sleeping in a bus .      →    A man is sleeping

Niehues et al. 2018 (arXiv 1808.00491) train on whole and on partial pairs together, with a target prefix of
proportional length. Elbayad et al. 2020 (arXiv 2005.08595) pair prefixes at any k of wait-k. Both ask for words whose
source has not been read, where languages differ in word order, so the model learns to guess; word links do not. The
source prefix ends with the end token, as in live translation. The target prefix has no end token to predict: the
decoder then learns to write the words that were read, and nothing about where a sentence ends, which a prefix without a
final sign could not be distinguished by.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from translucid.data.batching import Batch, LinkedPieces, VariedBatches, padded_rows
from translucid.data.sampler import hashed
from translucid.data.stores.context import ContextCorpus, VariedContext
from translucid.data.stores.encoded import EncodedCorpus, EncodedLinks, word_indices
from translucid.data.tokenizing.subword_dropout import VariedCorpus
from translucid.ground.special import SPECIAL
from translucid.kernels.loss import SoftTargets

TOGETHER = 50_000
"""The number of pairs whose places are computed at a time; it bounds the memory."""
_CHOICE, _PLACE = 1, 2
"""Added to the seed of an epoch: which pairs are cut, and where."""


class _Cuts(NamedTuple):
    """The places where pairs are cut."""

    source_removed: NDArray[np.int64]
    """The number of source pieces that each pair loses, [n]."""
    target_kept: NDArray[np.int64]
    """The number of target pieces that each pair keeps, the end token of whole pairs included, [n]."""


@dataclass(frozen=True, eq=False)
class PrefixCorpus:
    """Encoded pairs of which some are cut."""

    pairs: EncodedCorpus | ContextCorpus
    """The whole pairs."""
    corpus: EncodedCorpus
    """The sentences of these pairs, with their word links."""
    share: float
    """The share of the pairs to cut. Pairs that have a single source word, or no links that allow it, stay whole."""
    indivisible: Sequence[int]
    """Source ids: a pair that contains one of them stays whole."""
    seed: Sequence[int]

    def __len__(self) -> int:
        return len(self.pairs)

    def lengths_of(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the lengths of the source and of the target of pairs `rows` [n]."""
        source, _ = self.pairs.lengths_of(rows)
        cuts = self._cuts(rows)
        return source - cuts.source_removed, cuts.target_kept

    def target_tokens(self, rows: NDArray[np.int64]) -> int:
        """Return the number of target tokens of pairs `rows` [n]; the end token of whole pairs counts."""
        return int(self._cuts(rows).target_kept.sum())

    def batch(self, rows: NDArray[np.integer] | Sequence[int]) -> Batch:
        """Put the pairs `rows` [B] into one batch."""
        pair_rows = np.asarray(rows, np.int64)
        batch, cuts = self.pairs.batch(pair_rows), self._cuts(pair_rows)
        target_lengths = torch.from_numpy(cuts.target_kept)
        source_lengths = batch.source.ne(SPECIAL.pad).sum(1) - torch.from_numpy(cuts.source_removed)  # [B]
        source = _shortened(batch.source, source_lengths)
        source[torch.arange(len(source)), source_lengths - 1] = SPECIAL.end
        labels = _shortened(batch.labels, target_lengths)
        targets_in = _shortened(batch.targets_in, target_lengths)
        links, soft = batch.links, batch.soft_targets
        if links:
            links = _kept_links(links, batch, target_lengths, (labels.shape[1], source.shape[1]))
        if soft:
            kept = torch.arange(batch.labels.shape[1]) < target_lengths[:, None]  # [B, T]
            kept = kept[batch.labels.ne(SPECIAL.pad)]
            soft = SoftTargets(soft.tokens[kept], soft.probabilities[kept])
        return Batch(source, targets_in, labels, links=links, soft_targets=soft)

    def _cuts(self, rows: NDArray[np.int64]) -> _Cuts:
        """Return where pairs `rows` [n] are cut."""
        removed, kept = np.zeros(len(rows), np.int64), self.corpus.lengths_of(rows)[1]
        chosen = np.flatnonzero(hashed(rows, [*self.seed, _CHOICE]) < self.share * 2**32)
        for start in range(0, len(chosen), TOGETHER):
            part = chosen[start : start + TOGETHER]
            removed[part], kept[part] = self._cuts_of_chosen(rows[part], kept[part])
        return _Cuts(removed, kept)

    def _cuts_of_chosen(self, rows: NDArray[np.int64], target_lengths: NDArray[np.int64]) -> _Cuts:
        """Return where pairs `rows` [n] are cut, all of which are if possible."""
        corpus, links = self.corpus, self.corpus.links
        assert links
        source, _ = padded_rows(corpus.source_ids, corpus.source_offsets[rows], corpus.source_offsets[rows + 1])
        target, _ = padded_rows(corpus.target_ids, corpus.target_offsets[rows], corpus.target_offsets[rows + 1])
        source_words = word_indices(source, links.starts.source)  # [n, S]
        target_words = word_indices(target, links.starts.target)  # [n, T]
        last_word = source_words.max(1)
        place = 1 + hashed(rows, [*self.seed, _PLACE]) % np.maximum(last_word, 1)  # [n], in words
        words = _aligned_words(links, rows, place)
        is_whole = (last_word < 1) | (words == 0) | np.isin(source, self.indivisible).any(1)
        source_lengths = corpus.source_offsets[rows + 1] - corpus.source_offsets[rows]
        source_kept = np.argmax(source_words >= place[:, None], 1)
        # All target words are kept if the source words that are cut off have no links.
        is_later = target_words >= words[:, None]
        target_kept = np.where(is_later.any(1), np.argmax(is_later, 1), target_lengths - 1)
        return _Cuts(
            np.where(is_whole, 0, source_lengths - 1 - source_kept), np.where(is_whole, target_lengths, target_kept)
        )


def _aligned_words(links: EncodedLinks, rows: NDArray[np.int64], place: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the number of target words [n] that are aligned to the first `place` [n] source words of pairs `rows`."""
    counts = (links.offsets[rows + 1] - links.offsets[rows]) // 2
    pair = np.repeat(np.arange(len(rows)), counts)  # of each link
    first_link = np.cumsum(counts) - counts
    index = np.arange(len(pair)) - first_link[pair] + links.offsets[rows][pair] // 2
    source, target = links.words[2 * index].astype(np.int64), links.words[2 * index + 1].astype(np.int64)
    first_blocked = np.full(len(rows), np.iinfo(np.int64).max)
    is_cut_off = source >= place[pair]
    np.minimum.at(first_blocked, pair[is_cut_off], target[is_cut_off])
    words = np.zeros(len(rows), np.int64)
    is_kept = target < first_blocked[pair]
    np.maximum.at(words, pair[is_kept], target[is_kept] + 1)
    return words


def _shortened(ids: Tensor, lengths: Tensor) -> Tensor:
    """Return right-padded ids [B, n] cut to `lengths` [B]."""
    ids = ids[:, : int(lengths.max())].clone()
    ids[torch.arange(ids.shape[1]) >= lengths[:, None]] = SPECIAL.pad
    return ids


def _kept_links(links: LinkedPieces, batch: Batch, target_lengths: Tensor, size: tuple[int, int]) -> LinkedPieces:
    """Return the links of the target pieces that are kept, whose source pieces are all kept.

    `links` and `batch` are of the whole pairs; `target_lengths` [B]: the number of target pieces that are kept; `size`:
    T and S of the shortened batch.
    """
    positions, source = links.positions // batch.source.shape[1], links.positions % batch.source.shape[1]
    pair, target = positions // batch.labels.shape[1], positions % batch.labels.shape[1]
    kept = target < target_lengths[pair]
    new_positions = (pair * size[0] + target) * size[1] + source
    return LinkedPieces(new_positions[kept], links.weights[kept])


class VariedPrefixes:
    """Pairs of which others are cut, at other places, in every epoch."""

    def __init__(
        self,
        pairs: EncodedCorpus | VariedCorpus | VariedContext,
        share: float,
        indivisible: Sequence[int],
        *,
        with_links: bool,
    ) -> None:
        """Store the arguments of `PrefixCorpus`; `with_links`: whether batches have the word links."""
        self.pairs, self.share, self.indivisible, self.with_links = pairs, share, indivisible, with_links

    def draw(self, seed: Sequence[int]) -> PrefixCorpus:
        """Return the pairs of the epoch that `seed` determines."""
        drawn = self.pairs.draw(seed) if isinstance(self.pairs, VariedBatches) else self.pairs
        assert isinstance(drawn, EncodedCorpus | ContextCorpus)
        corpus = drawn.corpus if isinstance(drawn, ContextCorpus) else drawn
        # Computing the links of a batch takes time.
        sentences = corpus if self.with_links else replace(corpus, links=None)
        pairs = replace(drawn, corpus=sentences) if isinstance(drawn, ContextCorpus) else sentences
        return PrefixCorpus(pairs, corpus, self.share, self.indivisible, seed)
