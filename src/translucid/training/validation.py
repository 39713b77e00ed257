"""Validation during training: loss, token accuracy and BLEU on held-out data.

`DirectionsValidator` is for multilingual translators. `GuardedValidator` is for fine-tuning, which should not forget
general text.
"""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from functools import cached_property
from itertools import chain, zip_longest
from statistics import fmean
from typing import Literal, NamedTuple, Protocol, Self

import numpy as np
import torch
from torch import Tensor

from bitext.languages import Languages
from bitext.pair import Pair
from translucid.attention.points import recording
from translucid.data.batching import Batch, BatchedCorpus, bucketed_batches
from translucid.data.document_context import ContextOptions, preceding
from translucid.data.readers.corpus import sources_of
from translucid.data.stores.context import ContextCorpus
from translucid.data.stores.encoded import EncodedCorpus, WordStarts
from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.decoding.decoding_options import DecodingOptions, SearchRequest
from translucid.decoding.search import TorchEngine
from translucid.evaluation.metrics import Criterion, reference_sets
from translucid.ground.special import SPECIAL
from translucid.kernels.rounding import mixed_precision
from translucid.models.protocol import Model, SequenceModel
from translucid.training.hardware.ddp import Workers
from translucid.training.objective import batch_loss

GENERAL = "general_bleu"
"""The name of BLEU on general text, which a fine-tuned model should not forget, among the measures of a validation."""

ALIGNMENT_LOSS = "alignment_loss"
"""The name of the alignment loss for each linked target piece, in nats, among the measures of a validation."""
MIN_IMPROVEMENT = 0.001
"""The improvement of the loss, in nats per token, that counts; smaller ones are noise, which would delay the end."""


class AlignmentHead(Protocol):
    """A head of attention that learns word links, `extras.guided_alignment.GuidedHead`."""

    def points(self, model: SequenceModel) -> list[str]:
        """Return the points to record."""

    def loss(self, record: Mapping[str, Tensor], batch: Batch, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Return the sums [] of the loss and of the linked pieces of a batch, given what was recorded."""


class Sample(NamedTuple):
    """One validation source and the model's output for it."""

    source: str
    """A sentence, or the name of what else is read."""
    reference: str
    hypothesis: str


class Validation(NamedTuple):
    """The figures of one validation."""

    loss: float
    """The cross-entropy per target token, in nats, without label smoothing."""
    perplexity: float
    accuracy: float
    """The share of target tokens that the model ranks first, given the correct tokens before."""
    measures: dict[str, float]
    """Further measures by name, for greedy outputs of the first sources, such as `bleu`, and `chrf` if that is the
    score."""
    score: float
    """The score that selects the best model; higher is better, and the loss decides between equal scores."""
    samples: list[Sample]
    directions: Mapping[str, Validation] = {}
    """The figures of each direction of a multilingual model, by names such as `en-fr`."""


class Validator(ABC):
    """Measures a model on held-out data. It uses no random numbers, so it never changes the training."""

    tokenizer: Tokenizer
    compares: bool = False
    """Whether fine-tuning measures the initial model too, for a comparison at the end."""
    initial_measures: Mapping[str, float] | None = None
    """The measures of the initial model by name."""
    unit = "sentences"
    """What a validation translates, in the plural."""
    bfloat16: bool = False
    """Whether to measure the loss in bfloat16, as in training. Decoding stays in float32: a step of a search has few
    products, and autocast would round all weights for each of them."""

    @abstractmethod
    def measure(self, model: Model, device: torch.device, workers: Workers | None = None) -> Validation:
        """Return the figures of a model in evaluation mode; `workers` share the work, and all get the figures."""

    @abstractmethod
    def describe(self, score: float) -> str:
        """Return a score of `measure` in words."""

    def with_more_sources(self, limit: int) -> Validator | None:
        """Return a validator that translates all sources, up to `limit`; None if this one already does."""
        return None

    def comparable(self, score: float) -> float:
        """Return a score for comparisons, in which scores that differ only by chance are equal."""
        return score

    def is_better(self, validation: Validation, score: float | None, loss: float | None) -> bool:
        """Whether weights are better than others, by the score, or by the loss if the scores are equal.

        Args:
            validation: the figures of the weights.
            score: the score of the others; None if there are none.
            loss: the loss of the others, if it is known.
        """
        if score is None:
            return True
        new, old = self.comparable(validation.score), self.comparable(score)
        return new > old or (new == old and loss is not None and validation.loss < loss - MIN_IMPROVEMENT)


def evenly(count: int, picks: int) -> list[int]:
    """Return `picks` of `count` indices, spread evenly; all of them if there are fewer.

    >>> evenly(10, 4)
    [0, 2, 5, 7]
    """
    picks = min(count, picks)
    return [number * count // picks for number in range(picks)]


class PairsValidator(Validator):
    """Measures a model that generates text for a source, such as a translator."""

    corpus: BatchedCorpus
    """The data for the loss."""
    sources: Sequence[str]
    """The sources that are decoded for BLEU."""
    references: Sequence[Sequence[str]]
    """One or more references for each of these sources."""
    total: int
    """The number of sources that could be decoded."""
    language: str | None = None
    """The language code of the references, if it is known."""
    guided_head: AlignmentHead | None = None
    """The head that guided alignment trains; the pairs then have word links."""

    def __init__(self, tokenizer: Tokenizer, *, batch_tokens: int) -> None:
        """Measure in batches of at most `batch_tokens` tokens, padding included."""
        self.tokenizer, self.batch_tokens = tokenizer, batch_tokens

    @abstractmethod
    def choose(self, count: int) -> None:
        """Choose the sources that are decoded: `count` of them, spread evenly."""

    def with_more_sources(self, limit: int) -> Self | None:
        """Return a validator that decodes all sources, up to `limit`; None if this one already does."""
        if len(self.sources) >= min(self.total, limit):
            return None
        extended = copy.copy(self)
        extended.choose(limit)
        extended.criterion = Criterion(reference_sets(extended.references), self.language)
        extended.criterion.name = self.metric
        return extended

    @abstractmethod
    def greedy(self, model: SequenceModel, workers: Workers) -> list[list[int]]:
        """Return the greedy outputs for this process's share of the sources."""

    @torch.inference_mode()
    def measure(self, model: Model, device: torch.device, workers: Workers | None = None) -> Validation:
        """Return the loss on all pairs, and the score of greedy outputs for some sources."""
        assert isinstance(model, SequenceModel)
        workers = workers or Workers()
        entropy, correct, tokens, *alignment = self._loss(model, device, workers)
        hypotheses = workers.interleave(list(map(self.tokenizer.decode, self.greedy(model, workers))))
        score = self.criterion.score(hypotheses)
        measures = {"bleu": self.criterion.bleu(hypotheses)}
        if self.criterion.name != "BLEU":
            measures[self.criterion.name.lower()] = score
        if self.guided_head:
            measures[ALIGNMENT_LOSS] = alignment[0] / max(alignment[1], 1)
        samples = []
        for source, references, hypothesis in zip(self.sources, self.references, hypotheses, strict=True):
            samples.append(Sample(source, references[0], hypothesis))
        mean = entropy / max(tokens, 1)
        accuracy = correct / max(tokens, 1)
        return Validation(mean, math.exp(min(mean, 700)), accuracy, measures, score, samples)

    def _loss(self, model: SequenceModel, device: torch.device, workers: Workers) -> list[float]:
        """Return the sums over all pairs of cross-entropy, correct tokens and tokens.

        With guided alignment, also those of the alignment loss and of linked target pieces.
        """
        lengths = self.corpus.lengths_of(np.arange(len(self.corpus)))
        plan = bucketed_batches(*lengths, batch_tokens=self.batch_tokens, seed=0, epoch=0)
        losses, alignments = [], []
        guided_head = self.guided_head
        recorder = recording(model, guided_head.points(model)) if guided_head else nullcontext()
        with mixed_precision(device, enabled=self.bfloat16), recorder as record:
            for rows in workers.share(plan):
                batch = self.corpus.batch(rows).prepared().to(device)
                losses.append(batch_loss(model, batch))
                if guided_head and record is not None:
                    alignments.append(torch.stack(guided_head.loss(record, batch, model.source_mask(batch.source))))
        # Read all losses at the end, so that the host waits only once for a GPU.
        entropies = torch.stack([loss.cross_entropy for loss in losses]).tolist() if losses else []
        correct = float(sum(loss.correct for loss in losses))
        tokens = float(sum(loss.tokens for loss in losses))
        if not guided_head:
            return workers.sum(sum(entropies), correct, tokens)
        alignment = torch.stack(alignments).sum(0).tolist() if alignments else [0.0, 0.0]
        return workers.sum(sum(entropies), correct, tokens, *alignment)

    def describe(self, score: float) -> str:
        """Return the score with the name of the metric."""
        return f"{self.metric} {score:.1f}"

    @property
    def metric(self) -> str:
        """The name of the metric, BLEU or chrF."""
        return self.criterion.name

    @cached_property
    def criterion(self) -> Criterion:
        """The metric of the score."""
        return Criterion(reference_sets(self.references), self.language)

    def comparable(self, score: float) -> float:
        """Return a score of the metric, or 0 if it is too low to mean anything; negative ones are a guard's."""
        return score if score < 0 or self.criterion.is_meaningful(score) else 0.0


_GREEDY = {"min_length", "max_length_ratio", "max_length_extra", "no_repeat_ngram", "max_loops"}
"""The decoding options that greedy search has."""


def validation_options(decoding: DecodingOptions) -> DecodingOptions:
    """Return the options of the greedy search of a validation, for a run with some decoding options."""
    return DecodingOptions(beam=1, **decoding.model_dump(include=_GREEDY))


class TextValidator(PairsValidator):
    """Measures a translator on sentence pairs."""

    corpus: EncodedCorpus | ContextCorpus
    compares = True

    def __init__(
        self,
        pairs: Sequence[Pair],
        tokenizer: Tokenizer,
        *,
        decoding: DecodingOptions,
        max_tokens: int,
        batch_tokens: int,
        sentences: int,
        language: str | None = None,
        starts: WordStarts | None = None,
        guided_head: AlignmentHead | None = None,
        context: ContextOptions | None = None,
    ) -> None:
        """Measure the loss on all pairs of up to `max_tokens`, and BLEU on `sentences` of them.

        These are spread evenly, since many files are sorted by length or by topic. They are translated by greedy
        search, with the length limits and the repetition rules of `decoding`.

        With guided alignment, `starts` are the pieces that begin words, and `guided_head` is the head that learns word
        links.
        With document context, `context` says how pairs are joined to all sentences before them, up to the limit.
        """
        super().__init__(tokenizer, batch_tokens=batch_tokens)
        self.language = language
        self.decoding = validation_options(decoding)
        self.guided_head = guided_head
        self.pairs, self.max_tokens, self.context = pairs, max_tokens, context
        self.total = len(pairs)
        documents = context is not None
        self.corpus = EncodedCorpus.encode(pairs, tokenizer, max_tokens=max_tokens, starts=starts, documents=documents)
        if context:
            self.corpus = ContextCorpus(self.corpus, context, np.zeros(1, np.int64))
        self.choose(sentences)

    def choose(self, count: int) -> None:
        """Choose the pairs whose sources are translated: `count` of them, spread evenly."""
        indices = evenly(self.total, count)
        translated = [self.pairs[i] for i in indices]
        self.sources = sources_of(translated)
        self.references = [[pair.target] for pair in translated]
        # Longer sentences are truncated rather than left out: BLEU needs a translation for each.
        encoded = self.tokenizer.encode_source(self.sources)
        self.ids = [[*ids[: self.max_tokens - 1], SPECIAL.end] for ids in encoded]
        if self.context:
            counts = preceding(pair.document for pair in self.pairs)
            for row, i in enumerate(indices):
                context_pairs = self.pairs[i - min(counts[i], self.context.max_sentences) : i]
                context = self.tokenizer.encode_source(sources_of(context_pairs))
                self.ids[row] = [*self.context.context(context, len(self.ids[row])), *self.ids[row]]

    def greedy(self, model: SequenceModel, workers: Workers) -> list[list[int]]:
        """Translate this process's share of the sentences."""
        ids, opening = workers.share(self.ids), self.tokenizer.target_opening
        hypotheses = TorchEngine(model, opening=opening).decode(SearchRequest(ids, self.decoding))
        return [best[0].tokens for best in hypotheses]


class DirectionsValidator(Validator):
    """Measures each direction of a multilingual translator; the mean or the worst score selects the best weights."""

    compares = True

    def __init__(self, validators: Mapping[Languages, TextValidator], select_by: Literal["mean", "worst"]) -> None:
        """Measure with a validator for each direction.

        If the references of a direction are too short for BLEU, chrF is the metric of all directions.
        """
        self.select_by = select_by
        self.validators = {"-".join(map(str, direction)): validator for direction, validator in validators.items()}
        self.tokenizer = next(iter(validators.values())).tokenizer
        metrics = {validator.metric for validator in validators.values()}
        self.metric = "chrF" if "chrF" in metrics else "BLEU"
        for validator in validators.values():
            validator.criterion.name = self.metric

    def measure(self, model: Model, device: torch.device, workers: Workers | None = None) -> Validation:
        """Return means over the directions, and the score of each as `bleu.en-fr`, or `chrf.en-fr`."""
        by_direction: dict[str, Validation] = {}
        measures: dict[str, float] = {}
        for name, validator in self.validators.items():
            validator.bfloat16 = self.bfloat16
            by_direction[name] = validation = validator.measure(model, device, workers)
            measures |= {f"{measure}.{name}": value for measure, value in validation.measures.items()}
        validations = list(by_direction.values())
        means = {}
        for name in validations[0].measures:
            means[name] = fmean(validation.measures[name] for validation in validations)
        scores = [validation.score for validation in validations]
        score = fmean(scores) if self.select_by == "mean" else min(scores)
        loss = fmean(validation.loss for validation in validations)
        accuracy = fmean(validation.accuracy for validation in validations)
        interleaved = chain.from_iterable(zip_longest(*(validation.samples for validation in validations)))
        samples = [sample for sample in interleaved if sample is not None]
        figures = loss, math.exp(min(loss, 700)), accuracy, {**means, **measures}, score, samples
        return Validation(*figures, by_direction)

    def with_more_sources(self, limit: int) -> DirectionsValidator | None:
        """Return a validator that translates up to `limit` sources of all directions; None if this one already does."""
        limit_per_direction, changed = limit // len(self.validators), False
        extended = copy.copy(self)
        extended.validators = dict(self.validators)
        for name, validator in self.validators.items():
            if larger := validator.with_more_sources(limit_per_direction):
                extended.validators[name], changed = larger, True
        return extended if changed else None

    def describe(self, score: float) -> str:
        """Return the score with the name of the metric."""
        return f"{self.select_by} {self.metric} {score:.1f}"

    def comparable(self, score: float) -> float:
        """Return the score, or 0 if it is too low to mean anything."""
        return next(iter(self.validators.values())).comparable(score)


class GuardedValidator(Validator):
    """Scores a model by BLEU or chrF on the domain, unless it has lost too much BLEU on general text.

    If it has lost more than `max_regression` in any direction, the score is the negative excess. So it is worse than
    every model that has not, and among models that have, the one that has forgotten least is the best.
    """

    compares = True

    def __init__(
        self,
        domain: TextValidator | DirectionsValidator,
        general: Mapping[Languages, TextValidator],
        max_regression: float,
    ) -> None:
        """Guard the validation on `domain`; `max_regression` is the BLEU that each of `general` may lose."""
        self.domain, self.general, self.max_regression = domain, general, max_regression
        self.tokenizer = domain.tokenizer

    def measure(self, model: Model, device: torch.device, workers: Workers | None = None) -> Validation:
        """Return the figures on the domain, with the guarded score and the score on general text.

        Several directions have the mean score, and each its own by names such as `general_bleu.en-fr`.
        """
        self.domain.bfloat16 = self.bfloat16
        validation = self.domain.measure(model, device, workers)
        scores = {}
        for direction, validator in self.general.items():
            validator.bfloat16 = self.bfloat16
            name = GENERAL if len(self.general) == 1 else f"{GENERAL}.{'-'.join(map(str, direction))}"
            scores[name] = validator.measure(model, device, workers).score
        initial_measures = self.initial_measures or {}
        regression = max(initial_measures.get(name, score) - score for name, score in scores.items())
        score = validation.score if regression <= self.max_regression else self.max_regression - regression
        return validation._replace(
            measures={**validation.measures, GENERAL: fmean(scores.values()), **scores}, score=score
        )

    def with_more_sources(self, limit: int) -> GuardedValidator | None:
        """Return a validator that translates all sources of the domain, up to `limit`; None if this one already does.

        It translates the same sources of the general text as this one, because the initial model was measured on them.
        """
        domain = self.domain.with_more_sources(limit)
        if domain is None:
            return None
        extended = copy.copy(self)
        extended.domain = domain
        return extended

    def describe(self, score: float) -> str:
        """Return the score of the domain in words, or by how much the model has forgotten too much."""
        if score >= 0:
            return self.domain.describe(score)
        metrics = " or ".join(sorted({validator.metric for validator in self.general.values()}))
        return f"forgot {-score:.1f} {metrics} more than it may"

    def comparable(self, score: float) -> float:
        """Return a score as that of the domain is compared."""
        return self.domain.comparable(score)
