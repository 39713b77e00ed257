"""Validation of a translator that is fine-tuned: on what it is to learn, and on what it is not to forget."""

from __future__ import annotations

import torch

from translucid.models.protocol import Model
from translucid.training.validation import GENERAL, TextValidator, Validation, Validator
from translucid.training.workers import Workers


class GuardedValidator(Validator):
    """The score is the BLEU on the domain, if the model has not lost more BLEU on the rest than it may; or chrF.

    One that has lost more has a score below zero: by how much it has lost too much. So no such model is the best, and
    among several of them the one that has forgotten least is.
    """

    compares = True

    def __init__(self, domain: TextValidator, general: TextValidator, max_regression: float) -> None:
        """`max_regression`: BLEU that may be lost on `general`."""
        self.domain, self.general, self.max_regression = domain, general, max_regression
        self.tokenizer = domain.tokenizer

    def measure(self, model: Model, device: torch.device, workers: Workers | None = None) -> Validation:
        """See `Validator`; all but the score and one more measure are of the domain."""
        found = self.domain.measure(model, device, workers)
        now = self.general.measure(model, device, workers).score
        lost = self.before.get(GENERAL, now) - now if self.before else 0.0
        score = found.score if lost <= self.max_regression else self.max_regression - lost
        return found._replace(measures={**found.measures, GENERAL: now}, score=score)

    def told(self, score: float) -> str:
        """See `Validator`."""
        if score >= 0:
            return self.domain.told(score)
        return f"forgot {-score:.1f} {self.general.metric} more than it may"

    def comparable(self, score: float) -> float:
        """See `Validator`."""
        return self.domain.comparable(score)
