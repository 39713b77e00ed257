"""Scores of captions: BLEU and CIDEr-D as papers report them, and sacreBLEU's BLEU with its signature.

CIDEr-D measures the consensus of a caption with captions by people (Vedantam et al. 2015, arXiv 1411.5726).
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from bitext.words import spaced
from translucid.evaluation.metrics import CorpusScore, corpus_bleu, reference_sets
from translucid.ground.errors import UserError

_CLITICS = ("n't", "'s", "'re", "'ve", "'ll", "'d", "'m")
_JOINED = re.compile(rf"(?<=\w)(?:{'|'.join(_CLITICS)})\b|(?<=\bcan)not\b")
_PUNCTUATION = re.compile(
    r"""[;!?()\[\]{}"“”„«»…¿¡–—、。，！？；：]  # which separate words
    | \.{2,} | -{2,} | `+ | ''
    | (?<!\d)[,:] | [,:](?!\d)                 # but not 1,000 and 10:30
    """,
    re.VERBOSE,
)
LONGEST = 4
"""The maximum number of words of an n-gram."""
SIGMA = 6.0
"""The standard deviation of the length penalty, in words."""
Gram: TypeAlias = tuple[Hashable, ...]
"""An n-gram: consecutive words."""


@dataclass(frozen=True)
class CaptionScores:
    """Scores of a test set."""

    bleu: tuple[float, float, float, float]
    """BLEU-1 to BLEU-4, 0 to 100, on `papers_tokens`: the geometric mean of the precisions up to that length."""
    cider: float
    """CIDEr-D, 0 to 10, on `papers_tokens`; papers often print it multiplied by a hundred."""
    sacrebleu: CorpusScore
    """BLEU with sacreBLEU's tokens, and its signature."""

    def to_json(self) -> dict[str, object]:
        """Return the scores by name."""
        record: dict[str, object] = {f"bleu_{n}": value for n, value in enumerate(self.bleu, 1)}
        record["cider_d"] = self.cider
        record["sacrebleu"] = {"value": self.sacrebleu.value, "signature": self.sacrebleu.signature}
        return record


def papers_tokens(text: str) -> list[str]:
    """Return the words of a caption as the papers count them: in lower case, without punctuation.

    `'s`, `n't` and the like are words of their own, as in the Penn Treebank. Hyphens, apostrophes and full stops within
    a word, commas and colons between digits, and signs such as & and $ are kept. The papers use the Stanford tokenizer,
    which needs Java; its output is the same on 99.9 % of the captions of Flickr8k (it keeps the full stop of `mr.`, and
    writes -lrb- for a bracket). In scripts without spaces, such as Chinese, each character is a word.
    """
    separated = _JOINED.sub(r" \g<0>", spaced(text.lower().replace("’", "'").replace("‘", "'")))
    words = []
    for word in _PUNCTUATION.sub(" ", separated).split():
        word = word.strip(".,:-")
        if word not in _CLITICS:  # whose apostrophe is part of the word
            word = word.strip(".,:-'")
        if word:
            words.append(word)
    return words


def caption_scores(
    hypotheses: Sequence[str], references: Sequence[Sequence[str]], language: str | None = None
) -> CaptionScores:
    """Score captions against one or more references of each image.

    Args:
        hypotheses: one caption per image.
        references: the references of each image; not sets of references, as `corpus_scores` takes them.
        language: the code of their language, if it is known.

    Raises:
        UserError: there is nothing to score, the number of captions differs from that of images, or an image has no
            reference.
    """
    if not hypotheses:
        raise UserError("there are no captions to score", fix="Give captions and references.")
    captions = list(map(papers_tokens, hypotheses))
    reference_words = [list(map(papers_tokens, image_references)) for image_references in references]
    cider = cider_d(captions, reference_words)  # raises an error if the numbers differ
    joined_references = [list(map(" ".join, image_references)) for image_references in reference_words]
    bleu = _papers_bleu(list(map(" ".join, captions)), joined_references)
    sacrebleu = corpus_bleu(hypotheses, reference_sets(references), language=language)
    return CaptionScores(bleu, sum(cider) / len(cider), sacrebleu)


def _papers_bleu(captions: Sequence[str], references: Sequence[Sequence[str]]) -> tuple[float, float, float, float]:
    """Return BLEU-1 to BLEU-4 without smoothing, with the closest reference length (Papineni et al. 2002)."""
    from sacrebleu.metrics.bleu import BLEU

    # The corpus is counted once, up to 4-grams, for all four scores.
    statistics = BLEU(tokenize="none", force=True).corpus_score(captions, reference_sets(references))  # type: ignore[arg-type]

    # sacreBLEU computes BLEU from counts and lengths, of which BLEU-n needs the first n.
    def up_to(n: int) -> float:
        counts, totals = list(statistics.counts[:n]), list(statistics.totals[:n])
        score: float = BLEU.compute_bleu(
            counts, totals, statistics.sys_len, statistics.ref_len, smooth_method="none", max_ngram_order=n
        ).score
        return score

    return up_to(1), up_to(2), up_to(3), up_to(4)


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
        """Count the images whose references have each n-gram.

        Args:
            references: for each image, the words of one or more references.
            sigma: the standard deviation of the length penalty, in words.
        """
        self.image_counts: Counter[Gram] = Counter()
        count = 0
        for image_references in references:
            # An image counts once, however many of its references have the n-gram.
            self.image_counts.update(set().union(*map(grams, image_references)))
            count += 1
        self.log_images, self.sigma = math.log(max(count, 1)), sigma

    def __call__(self, captions: Sequence[Sequence[Hashable]], references: Sequence[Sequence[Hashable]]) -> list[float]:
        """Return the CIDEr-D of each caption of an image with these references."""
        reference_vectors = list(map(self._vector, references))
        scores = []
        for caption in map(self._vector, captions):
            similarities = [_similarity(caption, reference, self.sigma) for reference in reference_vectors]
            scores.append(10 * sum(similarities) / len(reference_vectors))
        return scores

    def _vector(self, words: Sequence[Hashable]) -> _Vector:
        weights: list[dict[Gram, float]] = [{} for _ in range(LONGEST)]
        for gram, count in grams(words).items():
            # An n-gram of no reference counts like one of a single image.
            weights[len(gram) - 1][gram] = count * (self.log_images - math.log(max(1, self.image_counts[gram])))
        norms = []
        for length_weights in weights:
            squares = [weight * weight for weight in length_weights.values()]
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
    for words, image_references in zip(hypotheses, references, strict=True):
        scores += cider([words], image_references)
    return scores


def grams(words: Sequence[Hashable]) -> Counter[Gram]:
    """Count the n-grams of 1 to 4 words."""
    counts: Counter[Gram] = Counter()
    for n in range(1, LONGEST + 1):
        # One slice of the words for each position within the n-gram.
        counts.update(zip(*[words[i:] for i in range(n)], strict=False))
    return counts


def _similarity(caption: _Vector, reference: _Vector, sigma: float) -> float:
    """Return the mean over n of the clipped cosines, times the length penalty."""
    total = 0.0
    for n in range(LONGEST):
        if norms := caption.norms[n] * reference.norms[n]:
            products = []
            for gram, weight in caption.weights[n].items():
                if gram in reference.weights[n]:
                    reference_weight = reference.weights[n][gram]
                    products.append(min(weight, reference_weight) * reference_weight)
            total += sum(products) / norms
    return total / LONGEST * math.exp(-((caption.words - reference.words) ** 2) / (2 * sigma**2))
