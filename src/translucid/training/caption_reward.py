"""What a caption that a model has drawn is worth: how much of it people say of the same image."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import reduce
from operator import or_

from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.evaluation.caption_scores import papers_tokens
from translucid.evaluation.cider import LONGEST, Cider, grams
from translucid.ground.special import SPECIAL, SPELLED
from translucid.training.self_critical import Ids

PRECISION = 2.0
"""Weight of the n-gram precision."""


class CaptionReward:
    """r(c) = CIDEr-D(c) + w · precision(c), 0 to 10 + w, of the words that evaluation counts, the end one of them.

    Words and not tokens, since words are what is measured, and to make them costs little. Without the end, a caption
    that stops after `in front of a` would lose nothing. CIDEr-D asks for rare words, and those that a model has learned
    for the images of its training are often wrong for others; the precision asks for words that are right.
    """

    def __init__(
        self, tokenizer: Tokenizer, references: Iterable[Sequence[Ids]], *, precision: float = PRECISION
    ) -> None:
        """Count how rare n-grams are.

        Args:
            tokenizer: of the captions.
            references: of each training image the captions.
            precision: w.
        """
        self.tokenizer, self.precision = tokenizer, precision
        self.cider = Cider([self.words(ids) for ids in of_image] for of_image in references)

    def __call__(self, captions: Sequence[Ids], references: Sequence[Ids]) -> list[float]:
        """Return of each caption of an image what it is worth."""
        ours, theirs = ([self.words(ids) for ids in side] for side in (captions, references))
        both = zip(self.cider(ours, theirs), precisions(ours, theirs), strict=True)
        return [cider + self.precision * precision for cider, precision in both]

    def words(self, ids: Ids) -> list[str]:
        """Return what is compared."""
        end = [SPELLED.end] if ids and ids[-1] == SPECIAL.end else []
        return papers_tokens(self.tokenizer.decode(ids)) + end


def precisions(captions: Sequence[Sequence[str]], references: Sequence[Sequence[str]]) -> list[float]:
    """Return for each caption of an image BP · (p_1 + p_2 + p_3 + p_4) / 4, 0 to 1.

    p_n is the share of its n-grams that are in a reference, none counted more often than in one of them, and BP the
    brevity penalty: those of BLEU (Papineni et al. 2002), which takes the geometric mean. That is 0 for most captions
    taken by themselves, since p_4 is.
    """
    most = reduce(or_, map(grams, references))
    lengths = [len(words) for words in references]

    def precision(words: Sequence[str]) -> float:
        right = [0] * LONGEST
        for gram, count in (grams(words) & most).items():
            right[len(gram) - 1] += count
        shares = (hits / max(len(words) - n, 1) for n, hits in enumerate(right))
        closest = min(lengths, key=lambda length: (abs(length - len(words)), length))
        return min(1.0, math.exp(1 - closest / max(len(words), 1))) * sum(shares) / LONGEST

    return [precision(words) for words in captions]
