"""Validation of fine-tuning on the new domain and on general text, which the model should not forget."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from statistics import fmean

import torch

from bitext.languages import Languages
from translucid.models.protocol import Model
from translucid.training.directions import DirectionsValidator
from translucid.training.validation import GENERAL, TextValidator, Validation, Validator
from translucid.training.workers import Workers


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
