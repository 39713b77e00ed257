"""Other segmentations of the same words each epoch, so that the model learns how words are built.

BPE-dropout (Provilkov et al. 2020, arXiv 1910.13267) and, for unigram models, subword regularisation (Kudo 2018,
arXiv 1804.10959). SentencePiece can do both, but draws from a generator that no seed makes the same in two processes,
so an interrupted training could not be continued exactly. Here Python's own generator draws a pool of segmentations
for each distinct word once; an epoch then picks one for each word that stands in the text, all at once.
"""

from __future__ import annotations

import math
import random
import re
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from translucid.data.readers.corpus import Pair
from translucid.data.stores.encoded import EncodedCorpus, synthetic
from translucid.data.tokenizing.pieces import SPACE
from translucid.data.tokenizing.tokenizer import Segmenter, Tokenizer
from translucid.ground.special import SPECIAL

FEWEST, MOST = 4, 32
"""Segmentations in the pool of a word: as many as the word stands in the corpus, within these bounds."""


class VariedCorpus:
    """A corpus whose words are cut differently each time it is drawn."""

    def __init__(self, pairs: Sequence[Pair], tokenizer: Tokenizer, dropout: float, seed: int) -> None:
        """Draw the pools.

        Args:
            pairs: the text.
            tokenizer: for both sides.
            dropout: with BPE, the probability of leaving out a merge each time it is possible; a unigram model is
                flattened until about as many pieces come out.
            seed: decides the pools.
        """
        generator = random.Random(seed)
        self.tag, self.tagged = tokenizer.tag, np.array(synthetic(pairs), np.int64)
        self.source = _VariedSide([pair.source for pair in pairs], tokenizer.source_segmenter, dropout, generator)
        self.target = _VariedSide([pair.target for pair in pairs], tokenizer.target_segmenter, dropout, generator)

    def draw(self, seed: Sequence[int]) -> EncodedCorpus:
        """Return the corpus in segmentations that `seed` decides."""
        generator = np.random.default_rng(np.random.SeedSequence(seed))
        ids, offsets = self.source.draw(generator)
        if self.tag is not None:
            ids = np.insert(ids, offsets[self.tagged], self.tag)
            offsets = offsets + np.searchsorted(self.tagged, np.arange(len(offsets)))  # tags before each sentence
        return EncodedCorpus(ids, offsets, *self.target.draw(generator))


class _VariedSide:
    """One language: words as numbers, and a pool of segmentations for each."""

    def __init__(self, texts: list[str], segmenter: Segmenter, dropout: float, generator: random.Random) -> None:
        sentences = [words_of(segmenter.normalise(text)) for text in texts]
        counts = Counter(chain.from_iterable(sentences))
        number = {word: i for i, word in enumerate(counts)}
        flat = chain.from_iterable(sentences)
        self.words = np.fromiter((number[word] for word in flat), np.int64, counts.total())  # every word of the text
        self.sentence_ends = np.cumsum([len(words) for words in sentences], dtype=np.int64)
        cut = _bpe(segmenter, dropout, generator) if segmenter.is_bpe else _unigram(segmenter, dropout, generator)
        pools = [cut(word, min(max(count, FEWEST), MOST)) for word, count in counts.items()]
        # Pool of word w: the segmentations first[w] .. first[w] + size[w] - 1, each ids[starts[v] : starts[v + 1]].
        self.size = np.array([len(pool) for pool in pools], np.int64)
        self.first = np.cumsum(self.size) - self.size
        variants = list(chain.from_iterable(pools))
        self.starts = np.cumsum([0, *map(len, variants)], dtype=np.int64)
        self.ids = np.fromiter(chain.from_iterable(variants), np.int32, int(self.starts[-1]))

    def draw(self, generator: np.random.Generator) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Return ids and offsets as `EncodedCorpus` has them, end tokens included."""
        variant = self.first[self.words] + generator.integers(self.size[self.words])
        lengths = self.starts[variant + 1] - self.starts[variant]
        ends = np.concatenate([[0], np.cumsum(lengths)])
        place = np.arange(ends[-1]) + np.repeat(self.starts[variant] - ends[:-1], lengths)
        before_end = ends[self.sentence_ends]  # where each sentence's end token goes
        offsets = np.concatenate([[0], before_end + np.arange(1, len(before_end) + 1)])
        return np.insert(self.ids[place], before_end, SPECIAL.end), offsets


def words_of(normalised: str) -> list[str]:
    """Cut normalised text before each `▁`: no piece of a SentencePiece model reaches over one.

    >>> words_of("▁I▁see.")
    ['▁I', '▁see.']
    """
    return [SPACE + word for word in normalised.split(SPACE)[1:]]


def bpe_dropout(
    word: str, rank: dict[str, int], dropout: float, generator: random.Random, whole: Sequence[str] = ()
) -> list[str]:
    """Segment a word with byte-pair encoding that leaves out each possible merge with probability `dropout`.

    Args:
        word: with its `▁`.
        rank: of each piece, 0 for the one merged first.
        dropout: 0 gives the best segmentation.
        generator: the source of chance.
        whole: pieces that are not cut.
    """
    pieces = re.findall("|".join([*map(re.escape, whole), "."]), word, re.DOTALL)
    while True:
        best, at = math.inf, -1
        for i in range(len(pieces) - 1):
            found = rank.get(pieces[i] + pieces[i + 1], math.inf)
            if found < best and (not dropout or generator.random() >= dropout):
                best, at = found, i
        if at < 0:
            return pieces
        pieces[at : at + 2] = [pieces[at] + pieces[at + 1]]


Cut = Callable[[str, int], list[list[int]]]
"""From a word and a number to so many segmentations."""


def _bpe(segmenter: Segmenter, dropout: float, generator: random.Random) -> Cut:
    rank, number, whole = segmenter.ranks(), segmenter.number, segmenter.whole

    def cut(word: str, count: int) -> list[list[int]]:
        return [[number(piece) for piece in bpe_dropout(word, rank, dropout, generator, whole)] for _ in range(count)]

    return cut


def _unigram(segmenter: Segmenter, dropout: float, generator: random.Random) -> Cut:
    # Fitted on Tatoeba to the number of pieces that BPE-dropout gives: 1.3 times as many as without at 0.1.
    alpha = -0.2 * math.log10(dropout)

    def cut(word: str, count: int) -> list[list[int]]:
        candidates = segmenter.likeliest(word, 64)
        weights = [math.exp(alpha * (score - candidates[0][1])) for _, score in candidates]
        return [ids for ids, _ in generator.choices(candidates, weights, k=count)]

    return cut
