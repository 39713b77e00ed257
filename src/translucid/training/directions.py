"""Several directions in one training: balanced text for the vocabulary, and validation of each direction."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Mapping
from itertools import chain, cycle, islice, zip_longest
from statistics import fmean
from typing import Literal

import torch

from bitext.languages import Languages
from bitext.pair import Pair
from translucid.data.filtering import Filter, Skipped, keep, reservoir_sample
from translucid.data.sampler import by_temperature, quotas
from translucid.models.protocol import Model
from translucid.runs.corpus_files import Corpora
from translucid.training.validation import TextValidator, Validation, Validator
from translucid.training.workers import Workers

VOCABULARY_TEMPERATURE = 5.0
"""T for the text from which the vocabulary is learned (Arivazhagan et al. 2019, section 4): rare languages need pieces
of their own more than frequent ones."""


def balanced(corpora: Corpora, pair_filter: Filter, max_pairs: int, seed: int) -> Iterator[Pair]:
    """Yield training pairs for a vocabulary; languages with little text have more of them than their share.

    Args:
        corpora: the corpora. Two directions between the same languages count as one, as they have the same text.
        pair_filter: the filter for pairs.
        max_pairs: the maximum number of pairs.
        seed: determines the sample.
    """
    by_languages = corpora.texts

    def pairs(indices: list[int], skipped: Skipped) -> Iterator[Pair]:
        return keep(chain.from_iterable(corpora.train[index] for index in indices), pair_filter, skipped)

    sizes = []
    for indices in by_languages.values():
        skipped = Skipped()
        for _ in pairs(indices, skipped):
            pass
        sizes.append(skipped.kept)
    counts = quotas(sizes, by_temperature(sizes, VOCABULARY_TEMPERATURE), min(max_pairs, sum(sizes)))
    for indices, count in zip(by_languages.values(), counts, strict=True):
        sample = reservoir_sample(pairs(indices, Skipped()), count, seed)
        yield from islice(cycle(sample), count)


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
