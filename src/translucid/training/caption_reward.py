"""The reward of a sampled caption: its similarity to people's captions of the same image."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import reduce
from operator import or_

from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.evaluation.caption_scores import LONGEST, Cider, grams, papers_tokens
from translucid.ground.special import SPECIAL, SPELLINGS
from translucid.training.self_critical import Ids

PRECISION = 2.0
"""The weight of the n-gram precision."""


class CaptionReward:
    """r(c) = CIDEr-D(c) + w · precision(c), from 0 to 10 + w, over the words of the evaluation and the end token.

    The reward compares words, as the evaluation does, rather than tokens. Without the end token, a caption that stops
    after `in front of a` would lose nothing. CIDEr-D rewards rare words, and those that a model has learned for its
    training images are often wrong for other images. The precision rewards correct words.
    """

    def __init__(
        self, tokenizer: Tokenizer, references: Iterable[Sequence[Ids]], *, precision: float = PRECISION
    ) -> None:
        """Count the document frequencies of n-grams in the training captions.

        Args:
            tokenizer: the tokenizer of the captions.
            references: the captions of each training image.
            precision: w.
        """
        self.tokenizer, self.precision = tokenizer, precision
        self.cider = Cider(map(self.words_of_all, references))

    def __call__(self, captions: Sequence[Ids], references: Sequence[Ids]) -> list[float]:
        """Return the reward of each caption of an image, given the references of the image."""
        caption_words, reference_words = self.words_of_all(captions), self.words_of_all(references)
        scores = zip(
            self.cider(caption_words, reference_words), precisions(caption_words, reference_words), strict=True
        )
        return [cider + self.precision * precision for cider, precision in scores]

    def words_of_all(self, captions: Sequence[Ids]) -> list[list[str]]:
        """Return the words of each caption."""
        return list(map(self.words, captions))

    def words(self, ids: Ids) -> list[str]:
        """Return the words of a caption, and the end token if the caption has one."""
        words = papers_tokens(self.tokenizer.decode(ids))
        if ids and ids[-1] == SPECIAL.end:
            words.append(SPELLINGS.end)
        return words


def precisions(captions: Sequence[Sequence[str]], references: Sequence[Sequence[str]]) -> list[float]:
    """Return BP · (p_1 + p_2 + p_3 + p_4) / 4, from 0 to 1, for each caption of an image.

    p_n is the clipped n-gram precision and BP the brevity penalty of BLEU (Papineni et al. 2002). BLEU takes the
    geometric mean of p_n, which is 0 for most single captions, because their p_4 is.
    """
    # The union of counters takes the maximum count of each n-gram in any reference: the limit of clipping.
    limits = reduce(or_, map(grams, references))
    lengths = list(map(len, references))

    def precision(words: Sequence[str]) -> float:
        matches = [0] * LONGEST
        for gram, count in (grams(words) & limits).items():
            matches[len(gram) - 1] += count
        # A caption has len(words) - n + 1 n-grams.
        shares = (hits / max(len(words) - n + 1, 1) for n, hits in enumerate(matches, 1))
        reference_length = min(lengths, key=lambda length: (abs(length - len(words)), length))
        return min(1.0, math.exp(1 - reference_length / max(len(words), 1))) * sum(shares) / LONGEST

    return list(map(precision, captions))
