"""Random segmentations of words in each epoch, so that the model learns how words are built.

BPE-dropout (Provilkov et al. 2020, arXiv 1910.13267) and, for unigram models, subword regularization (Kudo 2018,
arXiv 1804.10959). SentencePiece implements both, but its random generator can't be seeded across processes, so an
interrupted training could not be resumed exactly. Here, Python's generator draws a pool of segmentations for each
distinct word once; in each epoch, NumPy picks a segmentation for each word of the text.
"""

from __future__ import annotations

import math
import random
import re
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import chain
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from bitext.pair import Pair
from translucid.data.readers.corpus import sources_of, targets_of
from translucid.data.stores.encoded import EncodedCorpus, EncodedLinks, WordStarts, document_numbers, synthetic
from translucid.data.tokenizing.pieces import SPACE
from translucid.data.tokenizing.tokenizer import Segmenter, Tokenizer
from translucid.ground.special import SPECIAL

FEWEST, MOST = 4, 32
"""The bounds of the number of segmentations in the pool of a word, which is otherwise the count of the word."""


class VariedCorpus:
    """A corpus whose words are cut differently each time it is drawn."""

    def __init__(
        self,
        pairs: Sequence[Pair],
        tokenizer: Tokenizer,
        dropout: float,
        seed: int,
        starts: WordStarts | None = None,
        *,
        documents: bool = False,
    ) -> None:
        """Draw the pools.

        Args:
            pairs: the text.
            tokenizer: the tokenizer of both sides.
            dropout: with BPE, the probability of skipping each possible merge; a unigram model is flattened so that it
                yields about as many pieces.
            seed: determines the pools.
            starts: the pieces of the tokenizer that begin words, if the corpus should have the word links of pairs.
            documents: whether the corpus should have the numbers of the documents of pairs.
        """
        generator = random.Random(seed)
        self.controls = _controls(pairs, tokenizer)
        """The control tokens before sources, [n, 2]: the number of the pair, in order, and the id."""
        self.source = _VariedSide(sources_of(pairs), tokenizer.source_segmenter, dropout, generator)
        self.target = _VariedSide(targets_of(pairs), tokenizer.target_segmenter, dropout, generator)
        self.links: EncodedLinks | None = None
        if starts:
            self.links = EncodedLinks.of(pairs, self.source.word_counts, self.target.word_counts, starts, tokenizer)
        self.documents = document_numbers(pairs) if documents else None

    def draw(self, seed: Sequence[int]) -> EncodedCorpus:
        """Return the corpus in segmentations that `seed` determines."""
        generator = np.random.default_rng(np.random.SeedSequence(seed))
        ids, offsets = self.source.draw(generator)
        if len(self.controls):
            rows, tokens = self.controls.T
            ids = np.insert(ids, offsets[rows], tokens)
            # Each sentence moves by the number of control tokens before it.
            offsets = offsets + np.searchsorted(rows, np.arange(len(offsets)))
        return EncodedCorpus(ids, offsets, *self.target.draw(generator), self.links, self.documents)


def _controls(pairs: Sequence[Pair], tokenizer: Tokenizer) -> NDArray[np.int64]:
    """Return the pairs with a tag or another control token before their source, and the ids of these tokens, [n, 2]."""
    controls = [(i, tokenizer.tag) for i in synthetic(pairs)]
    controls += [(i, tokenizer.source_id(pair.control)) for i, pair in enumerate(pairs) if pair.control]
    return np.array(sorted(controls, key=itemgetter(0)), np.int64).reshape(-1, 2)


class _VariedSide:
    """One language: the numbers of its words, and a pool of segmentations for each word."""

    def __init__(self, texts: list[str], segmenter: Segmenter, dropout: float, generator: random.Random) -> None:
        sentences = [words_of(segmenter.normalize(text)) for text in texts]
        counts = Counter(chain.from_iterable(sentences))
        numbers = {word: number for number, word in enumerate(counts)}
        words = map(numbers.__getitem__, chain.from_iterable(sentences))
        self.words = np.fromiter(words, np.int64, counts.total())  # the number of each word of the text
        self.word_counts = list(map(len, sentences))
        self.sentence_ends = np.cumsum(self.word_counts, dtype=np.int64)
        method = _bpe if segmenter.is_bpe else _unigram
        segmentations = method(segmenter, dropout, generator)
        pools = []
        for word, count in counts.items():
            pools.append(segmentations(word, min(max(count, FEWEST), MOST)))
        # The pool of word w has the segmentations first_variant[w] .. first_variant[w] + pool_size[w] - 1; segmentation
        # v is ids[starts[v] : starts[v + 1]].
        self.pool_size = np.array(list(map(len, pools)), np.int64)
        self.first_variant = np.cumsum(self.pool_size) - self.pool_size
        variants = list(chain.from_iterable(pools))
        self.starts = np.cumsum([0, *map(len, variants)], dtype=np.int64)
        self.ids = np.fromiter(chain.from_iterable(variants), np.int32, int(self.starts[-1]))

    def draw(self, generator: np.random.Generator) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Return ids and offsets in the form of `EncodedCorpus`, end tokens included."""
        variant = self.first_variant[self.words] + generator.integers(self.pool_size[self.words])
        lengths = self.starts[variant + 1] - self.starts[variant]
        ends = np.concatenate([[0], np.cumsum(lengths)])
        # Token t of word w is at starts[variant[w]] + t - ends[w] of the pools.
        indices = np.arange(ends[-1]) + np.repeat(self.starts[variant] - ends[:-1], lengths)
        end_positions = ends[self.sentence_ends]  # the position of each sentence's end token
        offsets = np.concatenate([[0], end_positions + np.arange(1, len(end_positions) + 1)])
        return np.insert(self.ids[indices], end_positions, SPECIAL.end), offsets


def words_of(normalized: str) -> list[str]:
    """Cut normalized text before each `▁`, because no piece of a SentencePiece model contains one in its middle.

    >>> words_of("▁I▁see.")
    ['▁I', '▁see.']
    """
    return [SPACE + word for word in normalized.split(SPACE)[1:]]


def bpe_dropout(
    word: str, rank: dict[str, int], dropout: float, generator: random.Random, reserved: Sequence[str] = ()
) -> list[str]:
    """Segment a word with byte-pair encoding that skips each possible merge with probability `dropout`.

    Args:
        word: the word with its `▁`.
        rank: the rank of each piece, 0 for the piece that is merged first.
        dropout: 0 gives the best segmentation.
        generator: the random generator.
        reserved: pieces that are not cut.
    """
    pieces = re.findall("|".join([*map(re.escape, reserved), "."]), word, re.DOTALL)
    while True:
        best_rank, best_index = math.inf, -1
        for i in range(len(pieces) - 1):
            merged_rank = rank.get(pieces[i] + pieces[i + 1], math.inf)
            if merged_rank < best_rank and (not dropout or generator.random() >= dropout):
                best_rank, best_index = merged_rank, i
        if best_index < 0:
            return pieces
        pieces[best_index : best_index + 2] = [pieces[best_index] + pieces[best_index + 1]]


Segmentations = Callable[[str, int], list[list[int]]]
"""A function that returns `count` segmentations of a word."""


def _bpe(segmenter: Segmenter, dropout: float, generator: random.Random) -> Segmentations:
    rank = segmenter.ranks()

    def draw(word: str, count: int) -> list[list[int]]:
        segmentations = []
        for _ in range(count):
            pieces = bpe_dropout(word, rank, dropout, generator, segmenter.reserved)
            segmentations.append(list(map(segmenter.number, pieces)))
        return segmentations

    return draw


def _unigram(segmenter: Segmenter, dropout: float, generator: random.Random) -> Segmentations:
    # Fitted on Tatoeba to the number of pieces of BPE-dropout, which at 0.1 yields 1.3 times as many as without.
    alpha = -0.2 * math.log10(dropout)

    def draw(word: str, count: int) -> list[list[int]]:
        candidates = segmenter.likeliest(word, 64)
        weights = [math.exp(alpha * (score - candidates[0][1])) for _, score in candidates]
        return [ids for ids, _ in generator.choices(candidates, weights, k=count)]

    return draw
