"""How good a model is in the midst of its training: loss, token accuracy and BLEU on what it does not learn from."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch

from translucid.data.batching import plan_epoch
from translucid.data.readers.captioned import CaptionedImages
from translucid.data.readers.corpus import Pair
from translucid.data.stores.encoded import EncodedCorpus
from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.decoding.batched import decode_images, decode_sentences
from translucid.decoding.decoding_options import DecodingOptions
from translucid.evaluation.criterion import Criterion
from translucid.evaluation.metrics import reference_sets
from translucid.ground.special import SPECIAL
from translucid.kernels.rounding import mixed_precision
from translucid.models.protocol import Model, SequenceModel
from translucid.training.objective import batch_loss
from translucid.training.workers import Workers

GENERAL = "general_bleu"
"""BLEU on what a fine-tuned model is not to forget, among the figures of a validation."""


LESS = 0.001
"""Nats a token by which a loss must be lower to be better, lest noise keep a training going that is at its end."""


class Sample(NamedTuple):
    """One validation source and what the model makes of it."""

    source: str
    """A sentence, or the name of an image."""
    reference: str
    hypothesis: str


class Validation(NamedTuple):
    """The figures of one validation."""

    loss: float
    """Cross-entropy a target token, in nats, without label smoothing."""
    perplexity: float
    accuracy: float
    """Share of target tokens ranked first, given the right ones before."""
    measures: dict[str, float]
    """What else there is to say, by name, such as `bleu`, and `chrf` where that is the score: of greedy outputs for the
    first sources."""
    score: float
    """What the best model is chosen by, the higher the better; of equal ones the loss decides."""
    samples: list[Sample]


class Validator(ABC):
    """Measures a model on what is held out; draws no random numbers, so it never changes the training."""

    tokenizer: Tokenizer
    compares: bool = False
    """Whether a model that begins as another one is measured before its training, to be compared with in the end."""
    before: Mapping[str, float] | None = None
    """What was measured then, by name."""
    bfloat16: bool = False
    """Whether the loss is measured in bfloat16, as it is trained with. What is decoded is not: a step of a search has
    few products, and autocast would round all weights for each of them."""

    @abstractmethod
    def measure(self, model: Model, device: torch.device, workers: Workers | None = None) -> Validation:
        """Return the figures of a model in evaluation mode; `workers` share the work, and all get the figures."""

    @abstractmethod
    def told(self, score: float) -> str:
        """Return in words a score that `measure` has given."""

    def comparable(self, score: float) -> float:
        """Return a score as it is compared with others: two that differ by chance alone are equal."""
        return score

    def is_better(self, found: Validation, score: float | None, loss: float | None) -> bool:
        """Whether weights are better than others, by the score, and by the loss where that does not differ.

        Args:
            found: what was measured of the weights.
            score: of the others; if there are none, all are better.
            loss: of the others, if it is known.
        """
        if score is None:
            return True
        ours, theirs = self.comparable(found.score), self.comparable(score)
        return ours > theirs or (ours == theirs and loss is not None and found.loss < loss - LESS)


class PairsValidator(Validator):
    """Measures a model that writes about a source: a translator, or a captioner."""

    corpus: EncodedCorpus | CaptionedImages
    """What the loss is measured on."""
    sources: Sequence[str]
    """What is decoded for BLEU."""
    references: Sequence[Sequence[str]]
    """Of each source, one or more."""
    language: str | None = None
    """Code of the language of the references, if it is known."""

    def __init__(self, tokenizer: Tokenizer, *, batch_tokens: int) -> None:
        """`batch_tokens`: see `plan_epoch`."""
        self.tokenizer, self.batch_tokens = tokenizer, batch_tokens

    @abstractmethod
    def greedy(self, model: SequenceModel, device: torch.device, workers: Workers) -> list[list[int]]:
        """Return what greedy search finds for this process's share of the sources."""

    @torch.inference_mode()
    def measure(self, model: Model, device: torch.device, workers: Workers | None = None) -> Validation:
        """See `Validator`."""
        assert isinstance(model, SequenceModel)
        workers = workers or Workers()
        lengths = self.corpus.lengths_of(np.arange(len(self.corpus)))
        plan = plan_epoch(*lengths, batch_tokens=self.batch_tokens, seed=0, epoch=0)
        with mixed_precision(device, wanted=self.bfloat16):
            losses = [batch_loss(model, self.corpus.batch(rows).prepared().to(device)) for rows in workers.share(plan)]
        entropies = torch.stack([loss.cross_entropy for loss in losses]).tolist() if losses else []
        correct = float(sum(loss.correct for loss in losses))
        tokens = float(sum(loss.tokens for loss in losses))
        entropy, correct, tokens = workers.sum(sum(entropies), correct, tokens)
        hypotheses = workers.interleave([self.tokenizer.decode(found) for found in self.greedy(model, device, workers)])
        score = self.criterion.score(hypotheses)
        measures = {"bleu": self.criterion.bleu(hypotheses)}
        if self.criterion.name != "BLEU":
            measures[self.criterion.name.lower()] = score
        samples = [
            Sample(source, references[0], text)
            for source, references, text in zip(self.sources, self.references, hypotheses, strict=True)
        ]
        mean = entropy / max(tokens, 1)
        accuracy = correct / max(tokens, 1)
        return Validation(mean, math.exp(min(mean, 700)), accuracy, measures, score, samples)

    def told(self, score: float) -> str:
        """See `Validator`."""
        return f"{self.metric} {score:.1f}"

    @property
    def metric(self) -> str:
        """What the score is: BLEU or chrF."""
        return self.criterion.name

    @cached_property
    def criterion(self) -> Criterion:
        """The metric that the score is."""
        return Criterion(reference_sets(self.references), self.language)

    def comparable(self, score: float) -> float:
        """See `Validator`; below zero, a score is not one of the metric."""
        return score if score < 0 or self.criterion.tells(score) else 0.0


class TextValidator(PairsValidator):
    """Measures a translator on sentence pairs."""

    corpus: EncodedCorpus
    compares = True

    def __init__(
        self,
        pairs: Sequence[Pair],
        tokenizer: Tokenizer,
        *,
        max_tokens: int,
        batch_tokens: int,
        sentences: int,
        language: str | None = None,
    ) -> None:
        """`sentences`: how many are translated for BLEU; the loss is over all pairs of up to `max_tokens`."""
        super().__init__(tokenizer, batch_tokens=batch_tokens)
        self.language = language
        self.corpus = EncodedCorpus.encode(pairs, tokenizer, max_tokens=max_tokens)
        translated = list(pairs[:sentences])
        self.sources, self.references = [pair.source for pair in translated], [[pair.target] for pair in translated]
        self.ids = [[*ids[: max_tokens - 1], SPECIAL.end] for ids in tokenizer.encode_source(self.sources)]

    def greedy(self, model: SequenceModel, device: torch.device, workers: Workers) -> list[list[int]]:
        """See `Validator`."""
        ids, opening = workers.share(self.ids), self.tokenizer.target_opening
        found = decode_sentences(model, ids, DecodingOptions(beam=1), device=device, opening=opening)
        return [best[0].tokens for best in found]


class ImageValidator(PairsValidator):
    """Measures a captioner on images, each with one caption or more."""

    corpus: CaptionedImages

    def __init__(
        self,
        corpus: CaptionedImages,
        pairs: Sequence[Pair],
        places: Mapping[str, int],
        tokenizer: Tokenizer,
        *,
        decoding: DecodingOptions,
        batch_tokens: int,
        images: int,
        language: str | None = None,
    ) -> None:
        """Everything is encoded already.

        Args:
            corpus: of the pairs.
            pairs: names and captions, for BLEU.
            places: of the images by name, in `corpus.images`.
            tokenizer: of the captions.
            decoding: says how long a caption may be.
            batch_tokens: see `plan_epoch`.
            images: how many are captioned for BLEU.
            language: code of theirs, if it is known.
        """
        super().__init__(tokenizer, batch_tokens=batch_tokens)
        self.language = language
        self.corpus, self.places = corpus, places
        captions: dict[str, list[str]] = {}
        for pair in pairs:
            captions.setdefault(pair.source, []).append(pair.target)
        self.sources, self.references = list(captions)[:images], list(captions.values())[:images]
        self.decoding = decoding.model_copy(update={"beam": 1, "nbest": 1, "sample": False})

    def greedy(self, model: SequenceModel, device: torch.device, workers: Workers) -> list[list[int]]:
        """See `Validator`."""
        share = workers.share(range(len(self.sources)))
        images = (self.corpus.images[self.places[self.sources[i]]] for i in share)
        found = decode_images(model, images, self.decoding, device=device)
        return [best[0].tokens for best in found]
