"""A step of an update: what an extra adds to the training of a model."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from translucid.models.protocol import Model
from translucid.runs.configuration import Configuration
from translucid.runs.run_folder import RunFolder
from translucid.training.weights import Weights

INITIAL_MODEL = "the model of training.begin_from"
"""The name of its fingerprint in a checkpoint, if resuming needs that model."""


class TrainingStep:
    """An extra of a training; each method does nothing unless an extra overrides it."""

    needs_initial_weights = False
    """Whether a resumed training loads the weights, too, with which it began."""

    def __init__(self, configuration: Configuration) -> None:
        self.configuration, self.options = configuration, configuration.training

    def fingerprints(self) -> Mapping[str, str]:
        """Return fingerprints, by name, of other models that must not change when the training is resumed."""
        return {}

    def prepare(self, model: Model) -> None:
        """Change a model that has its initial weights."""

    def begin(self, weights: Weights) -> None:
        """Change the loss of a model in training, or remember its weights; they are on their device."""

    def begin_epoch(self, epoch: int) -> None:
        """Called before an epoch, which is counted from 0."""

    def begin_update(self, done: float) -> None:
        """Called before an update; `done` is the share of the training that is over."""

    def computing(self, model: Model) -> AbstractContextManager[None]:
        """Return a context in which the model computes an update or a validation."""
        return nullcontext()

    def change_gradients(self) -> None:
        """Called when the gradients are complete, before they are clipped."""

    def save_best(self, run: RunFolder, model: Model, facts: dict[str, Any]) -> None:
        """Called after the best model so far has been saved, in the first process; `facts` are its figures."""

    def fingerprint_of_initial_model(self) -> dict[str, str]:
        """Return that of the run that the training began from, if it did."""
        begin_from = self.options.begin_from
        return {INITIAL_MODEL: RunFolder(Path(begin_from)).model_digest()} if begin_from else {}
