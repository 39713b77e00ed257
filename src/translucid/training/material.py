"""What a training learns from, as the trainer meets it; `text.py` and `images.py` make it ready."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from translucid.data.filtering import Skipped
from translucid.data.tokenizer import Tokenizer
from translucid.ground.console import Console
from translucid.models.protocol import SequenceModel
from translucid.runs.run_folder import RunFolder
from translucid.training.epochs import Epochs
from translucid.training.validation import Validator
from translucid.training.workers import Workers


@dataclass(frozen=True)
class Lessons:
    """What is ready to be learned from."""

    epochs: Epochs
    validator: Validator
    fingerprints: dict[str, str]
    """By name: what must be the same when the training goes on."""
    skipped: Skipped


class Material(Protocol):
    """A corpus that is being made ready."""

    def learn(self, console: Console) -> Tokenizer:
        """Learn the vocabulary of a new run.

        Raises:
            UserError: the corpus leaves nothing to train on.
        """

    def encode(
        self,
        run: RunFolder,
        tokenizer: Tokenizer,
        model: SequenceModel,
        console: Console,
        before: Mapping[str, str] | None,
    ) -> None:
        """Write what the training reads into the run folder, as far as it is not there; the first process does it.

        Args:
            run: the folder.
            tokenizer: of the run.
            model: a frozen network of it is asked what it makes of images.
            console: where progress is shown.
            before: fingerprints of what a checkpoint was made with, if there is one.

        Raises:
            UserError: the corpus can't be read, or is another than that of the checkpoint.
        """

    def lessons(self, run: RunFolder, tokenizer: Tokenizer, model: SequenceModel, workers: Workers) -> Lessons:
        """Open what `encode` has written."""


def sha256(text: str) -> str:
    """Return the SHA-256 of a text."""
    return hashlib.sha256(text.encode()).hexdigest()
