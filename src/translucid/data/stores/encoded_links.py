"""The word links of encoded pairs, as the weights that the attention of a batch should have.

Links are stored between words, because subword dropout cuts the words of a pair differently in each epoch. A piece that
begins with `▁` begins a word; the pieces before the first of them, such as a tag or a language, belong to no word.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, product
from typing import NamedTuple, Self

import numpy as np
import torch
from numpy.typing import NDArray

from bitext.pair import Pair
from bitext.words import linked_words
from translucid.data.batching import LinkedPieces
from translucid.data.linked_pairs import LinkedPair
from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.ground.special import SPECIAL


class WordStarts(NamedTuple):
    """For each id of a vocabulary, whether its piece begins a word: [V] boolean."""

    source: NDArray[np.bool_]
    target: NDArray[np.bool_]

    @classmethod
    def of(cls, tokenizer: Tokenizer) -> WordStarts:
        """Return the word starts of a tokenizer's vocabularies."""
        return cls(np.array(tokenizer.source_word_starts()), np.array(tokenizer.target_word_starts()))


@dataclass(frozen=True, eq=False)
class EncodedLinks:
    """The links of pair `i` are `words[offsets[i] : offsets[i + 1]]`: source word, target word, source word and so on.

    Words are counted from 0.
    """

    words: NDArray[np.uint16]
    """The links of all pairs, one after the other."""
    offsets: NDArray[np.int64]
    """The offset of each pair, [pairs + 1]."""
    starts: WordStarts

    @classmethod
    def of(
        cls,
        pairs: Sequence[Pair],
        source_words: Sequence[int],
        target_words: Sequence[int],
        starts: WordStarts,
        tokenizer: Tokenizer,
    ) -> Self:
        """Store the links of pairs.

        A word in which the tokenizer reads several, as it does at no-break spaces, gives its links to all of them. If
        the tokenizer separates yet other words, the pair loses its links.

        Args:
            pairs: the pairs, with links or without.
            source_words: the number of words of each source, as the tokenizer separates them.
            target_words: the same for each target.
            starts: the pieces that begin words.
            tokenizer: the tokenizer.
        """
        flat: list[int] = []
        lengths = [0]
        for pair, *counts in zip(pairs, source_words, target_words, strict=True):
            start = len(flat)
            if isinstance(pair, LinkedPair):
                for link in _between_tokenizer_words(pair, counts, tokenizer):
                    flat += link
            lengths.append(len(flat) - start)
        return cls(np.array(flat, np.uint16), np.cumsum(lengths, dtype=np.int64), starts)

    @classmethod
    def joined(cls, parts: Sequence[EncodedLinks], starts: WordStarts) -> Self:
        """Return the links of several parts of a corpus."""
        words = np.concatenate([np.empty(0, np.uint16), *(part.words for part in parts)])
        lengths = [np.diff(part.offsets) for part in parts]
        return cls(words, np.cumsum(np.concatenate([np.zeros(1, np.int64), *lengths])), starts)

    def pieces(self, rows: NDArray[np.int64], source: NDArray[np.int64], target: NDArray[np.int64]) -> LinkedPieces:
        """Return the links between the pieces of a batch.

        The weights of a target piece are equal over all pieces of the source words that its word is linked to, and sum
        to 1 (Garg et al. 2019, arXiv 1909.02074, section 4.2).

        Args:
            rows: the numbers of its pairs [B].
            source: its source ids [B, S], right-padded.
            target: its target ids [B, T], right-padded.
        """
        source_words, target_words = _words(source, self.starts.source), _words(target, self.starts.target)
        linked = np.zeros((len(rows), target_words.max() + 2, source_words.max() + 2), bool)
        for row, pair in enumerate(rows):
            words = self.words[self.offsets[pair] : self.offsets[pair + 1]]
            linked[row, words[1::2], words[::2]] = True
        # The last row and the last column, at index -1, are those of pieces that belong to no word.
        batch = np.arange(len(rows))[:, None, None]
        weights = linked[batch, target_words[:, :, None], source_words[:, None, :]]  # [B, T, S]
        positions = np.flatnonzero(weights)
        shares = 1 / np.maximum(weights.sum(-1, dtype=np.float32), 1)  # [B, T]
        position_weights = shares.reshape(-1)[positions // source.shape[1]]
        return LinkedPieces(torch.from_numpy(positions), torch.from_numpy(position_weights))


def _between_tokenizer_words(pair: LinkedPair, counts: list[int], tokenizer: Tokenizer) -> list[tuple[int, int]]:
    """Return the links of a pair between the words that the tokenizer reads, given their numbers; none if it can't."""
    if [len(linked_words(text)) for text in pair] == counts:
        return sorted(pair.links)
    sources, targets = tokenizer.words_read(pair.source), tokenizer.words_read(pair.target, of_target=True)
    if [sum(sources), sum(targets)] != counts:
        return []
    source_starts, target_starts = list(accumulate(sources, initial=0)), list(accumulate(targets, initial=0))
    links: list[tuple[int, int]] = []
    for source, target in sorted(pair.links):
        source_range = range(source_starts[source], source_starts[source + 1])
        links += product(source_range, range(target_starts[target], target_starts[target + 1]))
    return links


def word_counts(sentences: Sequence[Sequence[int]], starts: NDArray[np.bool_]) -> list[int]:
    """Return the number of words of each sentence of ids."""
    return [int(starts[sentence].sum()) for sentence in map(np.asarray, sentences)]


def _words(ids: NDArray[np.int64], starts: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return for each piece [B, n] the index of its word; -1 for pieces that belong to none."""
    words = np.cumsum(starts[ids], 1) - 1
    words[(ids == SPECIAL.pad) | (ids == SPECIAL.end)] = -1
    return words
