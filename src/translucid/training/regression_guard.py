"""Validation of fine-tuning on the new domain and on general text, which the model should not forget."""

from __future__ import annotations

import torch

from translucid.models.protocol import Model
from translucid.training.validation import GENERAL, TextValidator, Validation, Validator
from translucid.training.workers import Workers


class GuardedValidator(Validator):
    """Scores a model by BLEU or chrF on the domain, unless it has lost too much BLEU on general text.

    If it has lost more than `max_regression`, the score is the negative excess. So it is worse than every model that
    has not, and among models that have, the one that has forgotten least is the best.
    """

    compares = True

    def __init__(self, domain: TextValidator, general: TextValidator, max_regression: float) -> None:
        """Guard the validation on `domain`; `max_regression` is the BLEU that may be lost on `general`."""
        self.domain, self.general, self.max_regression = domain, general, max_regression
        self.tokenizer = domain.tokenizer

    def measure(self, model: Model, device: torch.device, workers: Workers | None = None) -> Validation:
        """Return the figures on the domain, with the guarded score and the score on general text."""
        validation = self.domain.measure(model, device, workers)
        general = self.general.measure(model, device, workers).score
        lost = self.before.get(GENERAL, general) - general if self.before else 0.0
        score = validation.score if lost <= self.max_regression else self.max_regression - lost
        return validation._replace(measures={**validation.measures, GENERAL: general}, score=score)

    def describe(self, score: float) -> str:
        """Return the score of the domain in words, or by how much the model has forgotten too much."""
        if score >= 0:
            return self.domain.describe(score)
        return f"forgot {-score:.1f} {self.general.metric} more than it may"

    def comparable(self, score: float) -> float:
        """Return a score as that of the domain is compared."""
        return self.domain.comparable(score)
