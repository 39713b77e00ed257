"""The progress of a training."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Progress:
    """The progress of a training, which checkpoints contain under these names."""

    step: int = 0
    """The number of updates."""
    epoch: int = 0
    """The number of completed epochs."""
    batch: int = 0
    """The number of batches in the current epoch so far."""
    seconds: float = 0.0
    """The time spent in training and validation."""
    best_score: float | None = None
    """The best score of the validator."""
    best_loss: float | None = None
    """The validation loss of the best weights."""
    best_step: int = 0
    stale: int = 0
    """The number of validations since the best one."""
    skipped: int = 0
    """Updates that were skipped because the loss or a gradient was not a finite number."""
    before: dict[str, float] | None = None
    """The measures, by name, of the initial weights, if fine-tuning compares with them."""
    kept: dict[str, float] | None = None
    """The measures of the best weights."""
    begins_ready: bool = True
    """Whether the initial weights may be the best ones."""

    @property
    def validated_until(self) -> int:
        """The last step whose metrics are valid; -1 if the initial weights may yet be validated, at step 0."""
        return -1 if self.step == 0 and self.before is None else self.step
