"""CIDEr-D: the consensus of a caption with those of people (Vedantam et al. 2015, arXiv 1411.5726)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from typing import NamedTuple, TypeAlias

from translucid.ground.errors import UserError

LONGEST = 4
"""The maximum number of words of an n-gram."""
SIGMA = 6.0
"""The standard deviation of the length penalty, in words."""

Gram: TypeAlias = tuple[Hashable, ...]
"""Consecutive words."""


class _Vector(NamedTuple):
    """The weights of the n-grams of a caption, for n from 1."""

    weights: list[dict[Gram, float]]
    norms: list[float]
    words: int


class Cider:
    """CIDEr-D of captions, 0 to 10.

    The weight of an n-gram k in a sentence s is its count times its rarity among the images I, where df(k) is the
    number of images with k in one of their references:

        g_k(s) = count_k(s) · log(|I| / max(1, df(k)))

    A caption c of |c| words is compared with each of the m references s_j of its image, and the scores of n-grams of 1
    to 4 words are averaged. CIDEr-D, unlike CIDEr, has a penalty for another length, and a minimum, because of which a
    repeated word counts no more often than in the reference:

        CIDEr-D_n(c, S) = 10/m · Σ_j exp(-(|c| - |s_j|)² / 2σ²) · min(g(c), g(s_j)) · g(s_j) / (‖g(c)‖ ‖g(s_j)‖)
        CIDEr-D(c, S)   = 1/4 · Σ_n CIDEr-D_n(c, S)
    """

    def __init__(self, references: Iterable[Sequence[Sequence[Hashable]]], *, sigma: float = SIGMA) -> None:
        """Count the images of each n-gram.

        Args:
            references: for each image, the words of one or more references.
            sigma: the standard deviation of the length penalty, in words.
        """
        self.common: Counter[Gram] = Counter()
        images = 0
        for of_image in references:
            # An image counts once, however many of its references have the n-gram.
            self.common.update(set().union(*map(grams, of_image)))
            images += 1
        self.images, self.sigma = math.log(max(images, 1)), sigma

    def __call__(self, captions: Sequence[Sequence[Hashable]], references: Sequence[Sequence[Hashable]]) -> list[float]:
        """Return the CIDEr-D of each caption of an image with these references."""
        others = list(map(self._vector, references))
        scores = []
        for caption in map(self._vector, captions):
            likenesses = [_likeness(caption, other, self.sigma) for other in others]
            scores.append(10 * sum(likenesses) / len(others))
        return scores

    def _vector(self, words: Sequence[Hashable]) -> _Vector:
        weights: list[dict[Gram, float]] = [{} for _ in range(LONGEST)]
        for gram, count in grams(words).items():
            # An n-gram of no reference counts like one of a single image.
            weights[len(gram) - 1][gram] = count * (self.images - math.log(max(1, self.common[gram])))
        norms = []
        for of_length in weights:
            squares = [weight * weight for weight in of_length.values()]
            norms.append(math.sqrt(sum(squares)))
        return _Vector(weights, norms, len(words))


def cider_d(
    hypotheses: Sequence[Sequence[str]], references: Sequence[Sequence[Sequence[str]]], *, sigma: float = SIGMA
) -> list[float]:
    """Return the CIDEr-D of each caption; that of a test set is the mean.

    Rarity is measured on the given references, so that scores of different test sets can't be compared. For a single
    image, all n-grams are equally common and the score is 0.

    Args:
        hypotheses: the words of one caption per image.
        references: for each image, the words of one or more references.
        sigma: the standard deviation of the length penalty, in words.

    Raises:
        UserError: the number of captions differs from that of images, or an image has no reference.
    """
    if len(hypotheses) != len(references) or not all(references):
        what = f"there are {len(hypotheses):,} captions and references of {sum(map(bool, references)):,} images"
        raise UserError(what, fix="Each caption needs at least one reference.")
    cider = Cider(references, sigma=sigma)
    scores = []
    for words, of_image in zip(hypotheses, references, strict=True):
        scores += cider([words], of_image)
    return scores


def grams(words: Sequence[Hashable]) -> Counter[Gram]:
    """Count the n-grams of 1 to 4 words."""
    counts: Counter[Gram] = Counter()
    for n in range(1, LONGEST + 1):
        # One slice of the words for each position within the n-gram.
        counts.update(zip(*[words[i:] for i in range(n)], strict=False))
    return counts


def _likeness(caption: _Vector, reference: _Vector, sigma: float) -> float:
    """Return the mean over n of the clipped cosines, times the length penalty."""
    total = 0.0
    for n in range(LONGEST):
        if norms := caption.norms[n] * reference.norms[n]:
            products = []
            for gram, weight in caption.weights[n].items():
                if gram in reference.weights[n]:
                    other = reference.weights[n][gram]
                    products.append(min(weight, other) * other)
            total += sum(products) / norms
    return total / LONGEST * math.exp(-((caption.words - reference.words) ** 2) / (2 * sigma**2))
