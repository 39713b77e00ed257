"""How far a training has come."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Progress:
    """How far a training has come; saved and restored."""

    step: int = 0
    """Updates made."""
    epoch: int = 0
    """Passes over the data completed."""
    batch: int = 0
    """Batches taken in this pass."""
    seconds: float = 0.0
    """Spent in training and validation."""
    best_score: float | None = None
    """Of the validator."""
    best_loss: float | None = None
    """Of the same weights."""
    best_step: int = 0
    stale: int = 0
    """Validations since the best one."""
    skipped: int = 0
    """Updates that were not made because the loss or a gradient was not a finite number."""
    before: dict[str, float] | None = None
    """Measures, by name, of the weights that the training began with, if they are to be compared with."""
    kept: dict[str, float] | None = None
    """Measures of the best weights."""
    begins_ready: bool = True
    """Whether the weights that the training began with may be the best ones."""

    @property
    def validated_until(self) -> int:
        """The last step up to which all is measured; -1 while the first weights may still be, which is at step 0."""
        return self.step if self.step or self.before is not None else -1
