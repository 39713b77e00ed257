"""CIDEr-D: how much a caption says what people say of the same image (Vedantam et al. 2015, arXiv 1411.5726)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from typing import NamedTuple, TypeAlias

from translucid.ground.errors import UserError

LONGEST = 4
"""Words of an n-gram."""
SIGMA = 6.0
"""How many words a caption may be longer or shorter before that counts much."""

Gram: TypeAlias = tuple[Hashable, ...]
"""Words in a row."""


class _Vector(NamedTuple):
    """A caption: the weight of each of its n-grams, for n from 1."""

    weights: list[dict[Gram, float]]
    norms: list[float]
    words: int


class Cider:
    """CIDEr-D of captions, 0 to 10.

    The weight of an n-gram k in a sentence s is how often it is there, times how rare it is among the images I, where
    df(k) is the number of images with k in one of their references:

        g_k(s) = count_k(s) · log(|I| / max(1, df(k)))

    A caption c of |c| words is compared with each of the m references s_j of its image, and the figures of n-grams of 1
    to 4 words are averaged. What is only in CIDEr-D, and not in CIDEr, are the penalty for another length and the
    minimum, because of which a word that is said again and again counts no more often than in the reference:

        CIDEr-D_n(c, S) = 10/m · Σ_j exp(-(|c| - |s_j|)² / 2σ²) · min(g(c), g(s_j)) · g(s_j) / (‖g(c)‖ ‖g(s_j)‖)
        CIDEr-D(c, S)   = 1/4 · Σ_n CIDEr-D_n(c, S)
    """

    def __init__(self, references: Iterable[Sequence[Sequence[Hashable]]], *, sigma: float = SIGMA) -> None:
        """Count in how many images each n-gram is.

        Args:
            references: of each image, the words of one reference or more.
            sigma: of the penalty for another length, in words.
        """
        self.common: Counter[Gram] = Counter()
        images = 0
        for of_image in references:
            self.common.update(set().union(*map(grams, of_image)))
            images += 1
        self.images, self.sigma = math.log(max(images, 1)), sigma

    def __call__(self, captions: Sequence[Sequence[Hashable]], references: Sequence[Sequence[Hashable]]) -> list[float]:
        """Return CIDEr-D of each of the captions of an image with these references."""
        others = [self._vector(reference) for reference in references]
        found = [self._vector(caption) for caption in captions]
        return [10 * sum(_likeness(one, other, self.sigma) for other in others) / len(others) for one in found]

    def _vector(self, words: Sequence[Hashable]) -> _Vector:
        weights: list[dict[Gram, float]] = [{} for _ in range(LONGEST)]
        for gram, count in grams(words).items():
            weights[len(gram) - 1][gram] = count * (self.images - math.log(max(1, self.common[gram])))
        norms = [math.sqrt(sum(weight * weight for weight in of_length.values())) for of_length in weights]
        return _Vector(weights, norms, len(words))


def cider_d(
    hypotheses: Sequence[Sequence[str]], references: Sequence[Sequence[Sequence[str]]], *, sigma: float = SIGMA
) -> list[float]:
    """Return CIDEr-D of each caption, see `Cider`; that of a test set is the mean.

    Rarity is measured on the references that are given, so figures of different test sets do not compare; of a single
    image, all n-grams are equally common and the figure is 0.

    Args:
        hypotheses: the words of one caption an image.
        references: of each image, the words of one reference or more.
        sigma: of the penalty for another length, in words.

    Raises:
        UserError: there are more or fewer captions than images with references, or an image has none.
    """
    if len(hypotheses) != len(references) or not all(references):
        what = f"there are {len(hypotheses):,} captions and references of {sum(map(bool, references)):,} images"
        raise UserError(what, fix="Each caption needs at least one reference.")
    cider = Cider(references, sigma=sigma)
    return [cider([words], of_image)[0] for words, of_image in zip(hypotheses, references, strict=True)]


def grams(words: Sequence[Hashable]) -> Counter[Gram]:
    """Count the n-grams of 1 to 4 words."""
    return Counter(tuple(words[i : i + n]) for n in range(1, LONGEST + 1) for i in range(len(words) - n + 1))


def _likeness(caption: _Vector, reference: _Vector, sigma: float) -> float:
    """Return the mean over n of the clipped cosines, less for another length."""
    total = 0.0
    for n in range(LONGEST):
        if norms := caption.norms[n] * reference.norms[n]:
            weights = reference.weights[n]
            shared = ((weight, weights[gram]) for gram, weight in caption.weights[n].items() if gram in weights)
            total += sum(min(ours, theirs) * theirs for ours, theirs in shared) / norms
    return total / LONGEST * math.exp(-((caption.words - reference.words) ** 2) / (2 * sigma**2))
