"""What comes of a text: how likely each label is."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Classified:
    """A text that has been judged."""

    text: str
    probabilities: dict[str, float]
    """Of all labels, in the order of the model."""

    @property
    def label(self) -> str:
        """The likeliest one."""
        return max(self.probabilities, key=self.probabilities.__getitem__)

    @property
    def probability(self) -> float:
        """Of that."""
        return self.probabilities[self.label]
