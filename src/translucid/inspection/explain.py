"""Explanations of a model's words by methods other than attention, and the faithfulness of each.

The methods are attention, erasure of one part, LIME, and integrated gradients, computed by Captum. An explanation is
faithful if probabilities fall without the important parts, and stay with only those.

A case is a source, a target and a model, with its probabilities without some parts of the source. A contrast explains
why the model predicts word a and not word b (Yin and Neubig 2022, arXiv 2202.10419). Both words follow the same target
prefix. Their log-odds, log p(a) - log p(b), take the place of the log-probability of a word: erasure is how much they
fall when a part of the source is left out (section 3), and gradients are integrated gradients of them. What both words
depend on cancels out, and what decides between them remains. The probability of a word of several pieces is the product
over its pieces.
"""

from __future__ import annotations

import copy
import itertools
import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib.util import find_spec
from typing import Any, NamedTuple, Protocol, Self, TypeAlias

import numpy as np
import torch
from torch import Tensor

from bitext.cancellation import between_steps
from translucid.data.batching import padded
from translucid.data.text_pipeline import TextPipeline
from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.decoding.maps import forced_log_probs
from translucid.ground.errors import UserError, missing_package, nearest
from translucid.ground.special import SPECIAL
from translucid.inspection.forced_decoding import forced_decoding
from translucid.inspection.inspected import plain, rounded
from translucid.inspection.rendering.html import notebook_table
from translucid.inspection.words import WordMap, ids_without, span_ranges, span_words, sum_ranges, word_position
from translucid.models.protocol import Memory, SequenceModel

__all__ = [
    "METHODS",
    "Case",
    "Contrast",
    "Explanation",
    "Faithfulness",
    "available_methods",
    "compare_with_random",
    "contrast",
    "explain",
    "faithfulness",
    "part_count",
    "random_faithfulness",
    "refuse_method",
]

BATCH = 128
"""The maximum number of perturbed sources in a batch."""
TOKENS = 512
"""The maximum number of target tokens in a batch; every batch has at least one source."""


class InterpolationPath(NamedTuple):
    """The straight path of integrated gradients, from an uninformative source to the source itself."""

    baseline: Tensor
    """[1, S, D], embedded."""
    source: Tensor
    """[1, S, D], embedded."""


class Explained(Protocol):
    """A source, a target and a model: a case that all methods can explain."""

    source_words: list[str]
    """The names of the parts: words of a text, or what else a source has."""
    context: int = 0
    """The number of leading parts that are words of previous sentences."""
    target_words: list[str]
    """The words whose probabilities are explained, without the end token."""
    target_spans: list[tuple[int, int]]
    """The first token of each target word, and the token after its last."""

    def log_probs(self, keep: Tensor) -> Tensor:
        """Return the log-probability of each target word [n, target words] when only some parts are left.

        Args:
            keep: [n, parts] boolean, the parts that are left.
        """

    def probabilities(self, keep: Tensor) -> Tensor:
        """Return the probabilities [n, target words] that LIME fits, for the same masks as `log_probs`."""
        return self.log_probs(keep).exp()

    def interpolation_path(self) -> InterpolationPath:
        """Return the path of integrated gradients."""

    def embedded_log_probs(self, embedded: Tensor, start: int, end: int) -> Tensor:
        """Return the log-probability [n] of the target tokens from `start` to before `end` for embedded sources."""

    def by_part(self, shares: Tensor) -> Tensor:
        """Sum values of source positions [.., S] over each part [.., parts]."""

    def attention(self) -> Tensor:
        """Return the attention [target words, parts], averaged over layers and heads.

        Raises:
            UserError: the model has no attention.
        """


class ForcedCase(Explained):
    """A source, a target, and the model whose probabilities of the target's words are explained."""

    def __init__(
        self, model: SequenceModel, tokenizer: Tokenizer, target_ids: list[int], spans: Sequence[tuple[str, int, int]]
    ) -> None:
        """Store the target, whose ids and words both end with the end token; the model is in evaluation mode."""
        self.model, self.tokenizer, self.target_ids = model, tokenizer, target_ids
        self.device = next(model.parameters()).device
        self.target_words, self.target_spans = span_words(spans[:-1]), span_ranges(spans[:-1])

    def with_last_word(self, prefix: list[int], word: str, ids: list[int]) -> Self:
        """Return the case of the same source whose target is a prefix and a word; only the word is explained."""
        case = copy.copy(self)
        case.target_ids = [*prefix, *ids]
        case.target_words, case.target_spans = [word], [(len(prefix), len(case.target_ids))]
        return case

    @torch.no_grad()
    def log_probs(self, keep: Tensor) -> Tensor:
        """Score each target word by forced decoding, given the target words before it."""
        batches = []
        for rows in keep.split(self.batch_size):
            between_steps()
            memory = self.perturbed_memory(rows)
            target = torch.tensor([self.target_ids], device=self.device).expand(len(rows), -1)
            batches.append(self.by_word(forced_log_probs(self.model, memory, target)).cpu())
        return torch.cat(batches)

    @property
    def batch_size(self) -> int:
        """The number of perturbed sources in a batch."""
        return max(1, min(BATCH, TOKENS // len(self.target_ids)))

    def by_word(self, log_probs: Tensor) -> Tensor:
        """Sum log-probabilities of pieces [n, T] to those of target words [n, target words]."""
        return sum_ranges(log_probs, self.target_spans)

    def source_mask(self, embedded: Tensor) -> Tensor:
        """Return the mask [n, S] of embedded sources [n, S, D]: every position exists."""
        return torch.ones(embedded.shape[:2], dtype=torch.bool, device=self.device)

    @abstractmethod
    def perturbed_memory(self, keep: Tensor) -> Memory:
        """Return the memory that the decoder reads when only the parts of `keep` [n, parts] are left."""

    def embedded_log_probs(self, embedded: Tensor, start: int, end: int) -> Tensor:
        """Return the log-probability [n] of the target tokens from `start` to before `end`.

        The sources are embedded, [n, S, D]. Later target tokens are not decoded, because they have no influence.
        """
        mask = self.source_mask(embedded)
        target = torch.tensor([self.target_ids[:end]], device=self.device).expand(len(embedded), -1)
        return forced_log_probs(self.model, self.model.read(embedded, mask), target)[:, start:].sum(1)


class Case(ForcedCase):
    """A translation whose parts are the source's words. Language tokens are not parts and are never left out."""

    def __init__(
        self,
        model: SequenceModel,
        pipeline: TextPipeline,
        source: str,
        target: str,
        before: Sequence[Sequence[int]] = (),
    ) -> None:
        """Encode a text and its translation, usually the model's own.

        Args:
            model: the model, in evaluation mode.
            pipeline: the text pipeline of the model.
            source: the text.
            target: its translation.
            before: the sentences before it, for a model with document context (`Piece.before`). Their words are the
                first parts.

        Raises:
            UserError: one of the texts has no words.
        """
        tokenizer = pipeline.tokenizer
        (pair,) = pipeline.pairs([(source, target)])
        pair = pair._replace(context=pipeline.joined(before, len(pair.source)))
        # A text without words has its opening and the end token only.
        empty = len(tokenizer.source_opening) + 1, len(tokenizer.target_opening) + 1
        if len(pair.source) == empty[0] or len(pair.target) == empty[1]:
            raise UserError("there are no words to explain", fix="Give a text with words in it.")
        device = next(model.parameters()).device
        (self.inspected,) = forced_decoding(model, tokenizer, [pair], device, with_context=True)
        super().__init__(model, tokenizer, pair.target, self.inspected.target_spans)
        self.source_ids, self.context = [*pair.context, *pair.source], len(self.inspected.context_spans)
        spans = [*self.inspected.context_spans, *self.inspected.source_spans[:-1]]
        self.source_words, self.source_spans = span_words(spans), span_ranges(spans)

    def perturbed_memory(self, keep: Tensor) -> Memory:
        """Encode the source without the pieces of the words that are left out."""
        sources = []
        for row in keep.tolist():
            sources.append(ids_without(self.source_ids, self.source_spans, row))
        return self.model.encode(padded(sources, self.model.pad).to(self.device))

    def source_mask(self, embedded: Tensor) -> Tensor:
        """Return the model's mask of the source for each embedded one."""
        source = torch.tensor([self.source_ids], device=self.device)
        return self.model.source_mask(source).expand(len(embedded), -1)

    def interpolation_path(self) -> InterpolationPath:
        """Begin with unknown tokens, which stand for no word in particular."""
        source = torch.tensor([self.source_ids], device=self.device)
        unknown = source.clone()
        for start, end in self.source_spans:
            unknown[:, start:end] = SPECIAL.unknown
        with torch.no_grad():
            return InterpolationPath(self.model.source_embedding(unknown), self.model.source_embedding(source))

    def by_part(self, shares: Tensor) -> Tensor:
        """Sum pieces to words, without language tokens, separators and the end token."""
        return sum_ranges(shares, self.source_spans)

    def attention(self) -> Tensor:
        """Return the cross-attention between words, without language tokens, separators and end tokens."""
        weights = self.inspected.cross()  # [target tokens, source tokens]
        rows = [weights[start:end].mean(0) for start, end in self.target_spans]
        return self.by_part(torch.stack(rows))


class Contrast(Explained):
    """The log-odds of two words, or of two labels, as a case that the methods explain like a log-probability."""

    def __init__(self, case: Explained, other: Explained, word: int = 0) -> None:
        """Take the difference of two cases with the same source and one target word each.

        Args:
            case: the case of the word that the target has.
            other: the case of the other word.
            word: the position of the word in the target, from 0.
        """
        self.case, self.other, self.word = case, other, word
        self.source_words, self.context = case.source_words, case.context
        self.target_words, self.target_spans = case.target_words, case.target_spans

    @property
    def label(self) -> str:
        """The contrast in words."""
        return f"{self.target_words[0]} instead of {self.other.target_words[0]}"

    def log_probs(self, keep: Tensor) -> Tensor:
        """Return the log-odds [n, 1] when only some parts [n, parts] are left, in nats."""
        return self.case.log_probs(keep) - self.other.log_probs(keep)

    def probabilities(self, keep: Tensor) -> Tensor:
        """Return the probability of the word among the two, p(a) / (p(a) + p(b)) [n, 1]."""
        return self.log_probs(keep).sigmoid()

    def interpolation_path(self) -> InterpolationPath:
        """Return the path of the source, which both cases share."""
        return self.case.interpolation_path()

    def embedded_log_probs(self, embedded: Tensor, start: int, end: int) -> Tensor:
        """Return the log-odds [n] for embedded sources; `start` and `end` are the span of the target's word."""
        log_probs = self.case.embedded_log_probs(embedded, start, end)
        return log_probs - self.other.embedded_log_probs(embedded, *self.other.target_spans[0])

    def by_part(self, shares: Tensor) -> Tensor:
        """Sum values of source positions over each part."""
        return self.case.by_part(shares)

    def attention(self) -> Tensor:
        """Refuse: what the model attends to before it chooses between two words is the same for both.

        Raises:
            UserError: always.
        """
        raise UserError("attention can't tell two words apart that follow the same words", fix="Use erasure.")

    @cached_property
    def log_odds(self) -> float:
        """The log-odds for the whole source, in nats."""
        return self.log_probs(torch.ones(1, len(self.source_words), dtype=torch.bool)).item()

    def to_json(self) -> dict[str, Any]:
        """Return plain values: the position of the word, the other word, the log-odds."""
        return {"word": self.word, "instead_of": self.other.target_words[0], "log_odds": round(self.log_odds, 4)}


def contrast(case: ForcedCase, instead_of: str, word: int | str | None = None) -> Contrast:
    """Contrast a word of a translation with another word after the same words.

    Args:
        case: the case of the whole target.
        instead_of: the other word.
        word: the target's word or its position, from 0; by default, where the log-odds of the other word are highest.

    Raises:
        UserError: there is no such word, it is the other word itself, or the model can't write that.
    """
    opening = len(case.tokenizer.target_opening)
    ids = case.tokenizer.encode_target([instead_of])[0][opening:]
    if not ids:
        raise UserError("there is no word to contrast with", fix="Name another word that the model could write.")
    if SPECIAL.unknown in ids:
        raise UserError(f"the model does not know all characters of {instead_of!r}", fix="Choose another word.")
    positions = range(len(case.target_words)) if word is None else [word_position(case.target_words, word)]
    candidates = []
    for position in positions:
        if not _is_word(case, position, instead_of, ids):
            candidates.append(_contrast_at(case, position, instead_of, ids))
    if not candidates:
        raise UserError(f"{instead_of!r} is the word itself", fix="Choose another word to contrast it with.")
    return min(candidates, key=lambda candidate: candidate.log_odds)


def _is_word(case: ForcedCase, position: int, text: str, ids: list[int]) -> bool:
    """Return whether the target has this text or these ids at a word position."""
    start, end = case.target_spans[position]
    return case.target_words[position] == text or case.target_ids[start:end] == ids


def _contrast_at(case: ForcedCase, position: int, instead_of: str, ids: list[int]) -> Contrast:
    start, end = case.target_spans[position]
    prefix, word_ids = case.target_ids[:start], case.target_ids[start:end]
    max_length = case.model.max_length
    if max_length and len(prefix) + len(ids) > max_length:
        raise UserError(
            f"{instead_of[:30]!r} is too long: the model takes {max_length} pieces", fix="Choose another word."
        )
    word = case.with_last_word(prefix, case.target_words[position], word_ids)
    return Contrast(word, case.with_last_word(prefix, instead_of, ids), position)


METHODS = {
    "attention": "cross-attention, averaged over layers and heads",
    "erasure": "how much the word's log-probability falls when one part of the source is left out",
    "lime": "coefficients of a local linear model over sources with random parts left out",
    "gradients": "integrated gradients to the embedded source",
    "random": "random importance, for comparison",
}
"""The methods by name, with descriptions."""
Packages: TypeAlias = Mapping[str, tuple[str, str]]
"""The optional package of a method, and the module to import."""
_PACKAGES = {"lime": ("scikit-learn", "sklearn"), "gradients": ("captum", "captum")}
"""The optional package of a method, and the module to import."""
GRADIENT_TOKENS = 256
"""The maximum number of tokens, source and target, in a batch of interpolated sources, of which it has at least one."""
KERNEL = 0.25
"""The width of LIME's kernel in cosine distance: the default of its authors."""


@dataclass(frozen=True)
class Explanation:
    """The importance of the parts of a source for target words: the higher, the more a part supports the word."""

    method: str
    source: list[str]
    """Names of the parts, such as words."""
    target: list[str]
    """The target words."""
    importance: Tensor
    """[target words, parts]."""
    fit: list[float] = field(default_factory=list)
    """LIME's local R² for each target word; empty for other methods."""
    context: int = 0
    """The number of leading parts that are words of previous sentences."""

    def _repr_html_(self) -> str:
        """Show itself in a notebook: the darker a cell, the more the source word supports the target word."""
        weights = self.importance.clamp(min=0) / self.importance.abs().max().clamp(min=1e-9)
        return notebook_table(WordMap(self.source, self.target, weights, self.context, self.context))


def available_methods(further: Packages = _PACKAGES) -> list[str]:
    """Return the methods whose packages are installed, with `further` packages for sources that need more."""
    return [method for method in METHODS if _missing_package(method, further) is None]


def refuse_method(method: str, further: Packages = _PACKAGES) -> None:
    """Check, before any work, that a method exists and its packages are installed; arguments as above.

    Raises:
        UserError: there is no such method, or a package for it is not installed.
    """
    if method not in METHODS:
        raise UserError(f"there is no method {method!r}", fix=nearest(method, METHODS))
    package = _missing_package(method, further)
    if package:
        raise missing_package(method, package, "explain")


def _missing_package(method: str, further: Packages) -> str | None:
    """Return a package that a method needs and that is not installed, if any."""
    for packages in (_PACKAGES, further):
        if method in packages:
            package, module = packages[method]
            if not find_spec(module):
                return package
    return None


def explain(case: Explained, method: str, *, samples: int = 500, seed: int = 1) -> Explanation:
    """Explain the target of a case, such as a translation.

    Args:
        case: source, target and model.
        method: one of `METHODS`.
        samples: the number of LIME's perturbed sources.
        seed: the seed of LIME and of `random`.

    Raises:
        UserError: there is no such method, a package for it is not installed, or the model has no attention.
    """
    refuse_method(method)
    fit: list[float] = []
    if method == "attention":
        importance = case.attention()
    elif method == "erasure":
        importance = erasure(case)
    elif method == "lime":
        importance, fit = lime(case, samples, seed)
    elif method == "gradients":
        importance = integrated_gradients(case)
    else:
        generator = torch.Generator().manual_seed(seed)
        importance = torch.rand(len(case.target_words), len(case.source_words), generator=generator)
    return Explanation(method, case.source_words, case.target_words, importance, fit, case.context)


def integrated_gradients(case: Explained, steps: int = 32) -> Tensor:
    """Return the share of each part of the source in each target word's log-probability [target words, parts].

    They are the gradient with respect to the embedded source, averaged along the path from the baseline (Sundararajan
    et al. 2017, arXiv 1703.01365, equation 1). The shares of a target word sum to the increase of its log-probability
    along the path.
    """
    from captum.attr import IntegratedGradients

    baseline, source = case.interpolation_path()

    def log_prob(embedded: Tensor, start: int, end: int) -> Tensor:
        between_steps()
        return case.embedded_log_probs(embedded, start, end)

    method = IntegratedGradients(log_prob)
    batch = max(1, GRADIENT_TOKENS // (source.size(1) + case.target_spans[-1][1] + 1))
    rows = []
    for span in case.target_spans:
        attributions = method.attribute(  # [1, S, D]
            source, baseline, additional_forward_args=span, n_steps=steps, internal_batch_size=batch
        )
        rows.append(case.by_part(attributions[0].sum(-1).detach()))
    return torch.stack(rows).float().cpu()


def erasure(case: Explained) -> Tensor:
    """Return the decrease of each target word's log-probability when one part is left out [target words, parts].

    This is equation 1 of Li et al. 2016 (arXiv 1612.08220), as a difference of log-probabilities.
    """
    count = len(case.source_words)
    keep = torch.cat([torch.ones(1, count, dtype=torch.bool), ~torch.eye(count, dtype=torch.bool)])
    log_probs = case.log_probs(keep)
    return (log_probs[:1] - log_probs[1:]).T


def lime(case: Explained, samples: int = 500, seed: int = 1) -> tuple[Tensor, list[float]]:
    """Fit a linear model to probabilities when random parts are left out (Ribeiro et al. 2016, arXiv 1602.04938).

    As in the paper's text explanations: draw how many parts are left out, then which; weight each sample by an
    exponential kernel of its cosine distance to the whole source; fit a weighted ridge regression of the target word's
    probability on the presence of parts.

    Returns:
        The coefficients [target words, parts], and for each target word the weighted R² of its local model: how much of
        the variance near this source the explanation explains.
    """
    from sklearn.linear_model import Ridge

    count = len(case.source_words)
    random = np.random.default_rng(seed)
    keep = np.ones((samples, count), dtype=bool)
    for row in keep[1:]:  # the first sample is the whole source
        row[random.choice(count, random.integers(1, count + 1), replace=False)] = False
    # The cosine of a 0/1 vector with n ones and the vector of all ones is sqrt(n / count).
    distance = 1 - np.sqrt(keep.mean(1))
    weights = np.sqrt(np.exp(-(distance**2) / KERNEL**2))
    probabilities = case.probabilities(torch.from_numpy(keep)).numpy()
    model = Ridge(alpha=1.0).fit(keep.astype(float), probabilities, sample_weight=weights)
    predicted = model.predict(keep.astype(float)).reshape(probabilities.shape)
    mean = np.average(probabilities, axis=0, weights=weights)
    variance = np.average((probabilities - mean) ** 2, axis=0, weights=weights)
    residual = np.average((probabilities - predicted) ** 2, axis=0, weights=weights)
    r_squared = np.where(variance > 1e-12, 1 - residual / np.maximum(variance, 1e-12), 0.0)
    return torch.from_numpy(model.coef_.reshape(len(case.target_words), count)).float(), r_squared.tolist()


RANDOM_SUBSETS = 32
"""The number of random subsets of the parts over which the baseline is averaged."""


class Faithfulness(NamedTuple):
    """Decreases of a target word's log-probability, in nats, averaged over the target words."""

    comprehensiveness: float
    """The decrease when the important parts of the source are left out; a faithful explanation has a high one."""
    sufficiency: float
    """The decrease when only they are left; a faithful explanation has a low one."""


def part_count(share: float, parts: int) -> int:
    """Return the number of parts in a share of them, at least one."""
    return max(1, round(share * parts))


def faithfulness(case: Explained, explanation: Explanation, k: int = 1) -> Faithfulness:
    """Measure the faithfulness with the k most important parts of the source (DeYoung et al. 2020, arXiv 1911.03429).

    The two measures are those of section 4.2, as differences of log-probabilities.
    """
    words, parts = len(case.target_words), len(case.source_words)
    indices = explanation.importance.topk(min(k, parts), dim=1).indices
    important = torch.zeros(words, parts, dtype=torch.bool).scatter_(1, indices, value=True)
    full = case.log_probs(torch.ones(1, parts, dtype=torch.bool))[0]
    # Row i keeps the parts that are important for target word i, so only the diagonal counts.
    erased, isolated = case.log_probs(~important).diagonal(), case.log_probs(important).diagonal()
    return Faithfulness((full - erased).mean().item(), (full - isolated).mean().item())


def random_faithfulness(case: Explained, k: int = 1) -> Faithfulness:
    """Measure the faithfulness of k random parts of the source: the baseline that an explanation has to exceed.

    A single random subset may happen to be the best one. The baseline is the mean over `RANDOM_SUBSETS` of them, or
    over all subsets of k parts if there are no more than that.
    """
    parts = len(case.source_words)
    chosen = _random_subsets(parts, min(k, parts), RANDOM_SUBSETS, seed=1)  # [n, parts]
    full = case.log_probs(torch.ones(1, parts, dtype=torch.bool))[0]
    erased, isolated = case.log_probs(~chosen), case.log_probs(chosen)  # [n, target words]
    return Faithfulness((full - erased).mean().item(), (full - isolated).mean().item())


def compare_with_random(case: Explained, explanation: Explanation, k: int = 1) -> dict[str, Faithfulness]:
    """Return the faithfulness of an explanation by the name of its method, and the baseline as `random`."""
    return {explanation.method: faithfulness(case, explanation, k), "random": random_faithfulness(case, k)}


def _random_subsets(parts: int, k: int, limit: int, seed: int) -> Tensor:
    """Return subsets of k of the parts as a boolean mask [n, parts]: all of them, or `limit` random ones."""
    if math.comb(parts, k) <= limit:
        indices = torch.tensor(list(itertools.combinations(range(parts), k)))
    else:
        generator = torch.Generator().manual_seed(seed)
        indices = torch.rand(limit, parts, generator=generator).topk(k, dim=1).indices
    return torch.zeros(len(indices), parts, dtype=torch.bool).scatter_(1, indices, value=True)


def explanation_record(case: Explained, method: str) -> dict[str, Any]:
    """Return an explanation as plain values, with its faithfulness and that of the random baseline."""
    explanation = explain(case, method, samples=200)
    row = {
        "method": method,
        "source": explanation.source,
        "context": explanation.context,
        "target": explanation.target,
        "importance": plain(explanation.importance, 4),
        "fit": rounded(explanation.fit, 3),
        "faithfulness": faithfulness(case, explanation)._asdict(),
        "random": random_faithfulness(case)._asdict(),
    }
    if isinstance(case, Contrast):
        row["contrast"] = case.to_json()
    return row


def record(
    explanation: Explanation, scores: Mapping[str, Faithfulness], contrasted: Contrast | None = None
) -> dict[str, Any]:
    """Return plain values: words, parts, importance rounded to five decimals, fit, faithfulness and contrast."""
    row: dict[str, Any] = {
        "source": explanation.source,
        "target": explanation.target,
        "method": explanation.method,
        "importance": plain(explanation.importance, 5),
        "fit": rounded(explanation.fit, 4),
        "faithfulness": {name: score._asdict() for name, score in scores.items()},
    }
    if explanation.context:
        row["context"] = explanation.context
    if contrasted:
        row["contrast"] = contrasted.to_json()
    return row
