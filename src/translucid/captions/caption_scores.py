"""Scores of captioners: BLEU, CIDEr-D and sacreBLEU's BLEU, the perplexity of references, and pointing accuracy.

BLEU and CIDEr-D are as papers report them, sacreBLEU's has its signature. CIDEr-D measures the consensus of a caption
with captions by people (Vedantam et al. 2015, arXiv 1411.5726).
"""

from __future__ import annotations

import math
import re
import time
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
import torch
import torch.nn.functional as F
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from bitext.pair import Pair
from bitext.words import spaced
from translucid.captions.captioner import Caption, Captioner
from translucid.captions.image_files import ImageFiles
from translucid.captions.image_store import BATCH_SIZE
from translucid.captions.pixels import Picture
from translucid.data.batching import padded
from translucid.decoding.decoding_options import DecodingOptions
from translucid.decoding.maps import forced_features
from translucid.decoding.pair_scores import perplexity as perplexity_of
from translucid.evaluation.metrics import CorpusScore, corpus_bleu, reference_sets
from translucid.evaluation.report import ForcedScores
from translucid.ground.console import Console, progress_bar, table_of, unbroken
from translucid.ground.errors import UserError
from translucid.ground.iteration import batched
from translucid.kernels.machine import cores

if TYPE_CHECKING:
    from translucid.captions.pointing import GoldImage, Hit, KindScore

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


@dataclass(frozen=True)
class CaptionEvaluation:
    """The scores of one test set."""

    scores: CaptionScores
    images: int
    references: int
    seconds: float
    """The time for reading images and writing captions."""
    forced: ForcedScores | None = None
    """The perplexity and accuracy of the references."""
    pointing: dict[str, KindScore] = field(default_factory=dict)
    """The pointing accuracy by kind of word, if there are gold boxes."""

    def to_json(self) -> dict[str, Any]:
        """Return everything as plain values."""
        record: dict[str, Any] = {**self.scores.to_json(), "images": self.images, "references": self.references}
        record["seconds"] = round(self.seconds, 3)
        if self.forced:
            record |= dict(zip(("perplexity", "token_accuracy", "tokens"), self.forced, strict=True))
        if self.pointing:
            record["pointing"] = {kind: score._asdict() for kind, score in self.pointing.items()}
        return record

    def render(self) -> Iterator[RenderableType]:
        """Yield tables and lines for the terminal."""
        table = table_of("metric", "score", "how", overflow="fold")
        conditions = "lower-cased, without punctuation, as papers count"
        for n, value in enumerate(self.scores.bleu, 1):
            table.add_row(f"BLEU-{n}", Text(f"{value:.2f}", "bold"), Text(conditions, "dim"))
        table.add_row("CIDEr-D", Text(f"{self.scores.cider:.3f}", "bold"), Text(conditions, "dim"))
        sacrebleu = self.scores.sacrebleu
        table.add_row(sacrebleu.name, Text(f"{sacrebleu.value:.2f}", "bold"), Text("sacreBLEU's tokens", "dim"))
        yield table
        yield unbroken(f"{sacrebleu.name}|{sacrebleu.signature}")
        rate = self.images / max(self.seconds, 1e-9)
        yield Text(f"{self.images:,} images, {self.references:,} references; {rate:,.1f} images/s, reading included")
        if self.forced:
            p = self.forced
            right = f"{100 * p.accuracy:.1f}% of {p.tokens:,} tokens right"
            yield Text(f"references: perplexity {p.perplexity:.2f}, {right}")
        if self.pointing:
            yield _pointing_table(self.pointing)


class ScoredCaptions(NamedTuple):
    """The captions of a test set, and their scores."""

    evaluation: CaptionEvaluation
    texts: dict[str, str]
    """The captions by the name of the image."""


def score_captions(
    captioner: Captioner,
    pairs: Sequence[Pair],
    files: ImageFiles,
    options: DecodingOptions | None = None,
    *,
    perplexity: bool = True,
    gold: Mapping[str, GoldImage] | None = None,
    console: Console,
) -> ScoredCaptions:
    """Write captions for a test set and score them.

    Args:
        captioner: the captioner.
        pairs: pairs of the name of an image and a reference; an image may have several.
        files: the images.
        options: how to search; the run's own settings by default.
        perplexity: whether to compute the perplexity of the references by forced decoding too.
        gold: the boxes of the things that words refer to, by image.
        console: shows the progress.

    Raises:
        UserError: an image is missing or can't be read.
    """
    references: dict[str, list[str]] = {}
    for pair in pairs:
        references.setdefault(pair.source, []).append(pair.target)
    for name, image_references in references.items():
        # An image needs a reference, so a blank one counts if there is no other.
        references[name] = list(filter(str.strip, image_references)) or image_references
    files.refuse_missing(references)
    names, started = list(references), time.perf_counter()
    texts: dict[str, str] = {}
    points: list[tuple[str, Hit | None]] = []
    forced_scorer = ForcedScorer(captioner)
    gold_images = gold if gold is not None and captioner.can_look() else {}
    other_seconds = 0.0  # the time for other results than captions, which does not count
    with progress_bar(console, "captioning", len(names)) as advance:
        captions = captioner.stream(_pictures(captioner, names, files), options, on_done=advance)
        for batch in batched(captions, BATCH_SIZE):
            batch_started = time.perf_counter()
            for caption in batch:
                texts[caption.name] = caption.text
                if caption.name in gold_images:
                    points += _pointing(caption, captioner, gold_images[caption.name])
            if perplexity:
                forced_scorer.add(batch, references)
            other_seconds += time.perf_counter() - batch_started
    seconds = time.perf_counter() - started - other_seconds
    forced = None
    if perplexity:
        forced = forced_scorer.result()
    language = captioner.configuration.data.languages[1]
    scores = caption_scores(list(texts.values()), list(references.values()), language)
    pointing: dict[str, KindScore] = {}
    if points:
        from translucid.captions.pointing import by_kind

        pointing = by_kind(points)
    evaluation = CaptionEvaluation(scores, len(names), len(pairs), seconds, forced, pointing)
    return ScoredCaptions(evaluation, texts)


def _pointing(caption: Caption, captioner: Captioner, gold: GoldImage) -> list[tuple[str, Hit | None]]:
    """Return whether the attention of each word of a caption hits the box of the thing that it refers to."""
    from translucid.captions.pointing import points_of

    attention = caption.looked
    return points_of(attention.words, attention.weights().flatten(1), captioner.grid, gold)


def _pointing_table(scores: Mapping[str, KindScore]) -> Table:
    """Return a table with the pointing accuracy of each kind of word."""
    table = table_of("words for", figures=("judged", "cell at it", "by chance", "its middle in it", "by chance"))
    for kind, score in scores.items():
        shares = (score.overlaps, score.chance, score.centred, score.chance_centred)
        percentages = [f"{100 * share:.1f}%" for share in shares]
        table.add_row(kind, f"{score.judged:,} of {score.words:,}", *percentages)
    return table


def _pictures(captioner: Captioner, names: Sequence[str], files: ImageFiles) -> Iterator[Picture]:
    """Read images, a few ahead on all cores."""
    with ThreadPoolExecutor(cores()) as pool:
        for window in batched(names, BATCH_SIZE):
            yield from pool.map(lambda name: captioner.picture(files.read(name), name), window)


class ForcedScorer:
    """The perplexity and accuracy of references under a captioner, by forced decoding."""

    def __init__(self, captioner: Captioner) -> None:
        self.captioner = captioner
        self.entropy, self.correct, self.tokens = 0.0, 0, 0

    @torch.inference_mode()
    def add(self, captions: Sequence[Caption], references: Mapping[str, list[str]]) -> None:
        """Add the references of images that have been captioned; `references` has those of each name."""
        model, tokenizer, device = self.captioner.model, self.captioner.tokenizer, self.captioner.device
        sources, targets = [], []
        for caption in captions:
            sources.append(caption.picture.source)
            targets.append(tokenizer.encode_target(references[caption.name]))
        memory = model.encode(torch.from_numpy(np.stack(sources)).to(device))
        # The model expects the same number of captions for each image: rows of padding fill it up, and do not count.
        captions_per_image = max(map(len, targets))
        ids: list[list[int]] = []
        for image_targets in targets:
            for tokens in image_targets:
                ids.append([*tokens, model.eos])
            ids += [[model.pad]] * (captions_per_image - len(image_targets))
        target = padded(ids, model.pad).to(device)
        mask = target != model.pad
        logits = model.output(forced_features(model, memory, target)[mask]).float()
        # Summed in float64 on the CPU: not every device has it.
        self.entropy += float(F.cross_entropy(logits, target[mask], reduction="none").cpu().double().sum())
        self.correct += int((logits.argmax(-1) == target[mask]).sum())
        self.tokens += len(logits)

    def result(self) -> ForcedScores:
        """Return perplexity, accuracy and number of all tokens so far."""
        return ForcedScores(perplexity_of(-self.entropy, self.tokens), self.correct / self.tokens, self.tokens)
