"""What a translation and a caption have in common: a list of the best that were found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class Written(Protocol):
    """One of them."""

    @property
    def text(self) -> str:
        """What was written."""

    @property
    def score(self) -> float:
        """See `Hypothesis.score`."""


class NBest:
    """What was written, with others that were nearly written."""

    nbest: Sequence[Written]
    """The best of those that were asked for, best first, at least one."""

    @property
    def text(self) -> str:
        """The best one."""
        return self.nbest[0].text

    @property
    def score(self) -> float:
        """Its log-probability after the length penalty; of a text that was translated in pieces, their sum."""
        return self.nbest[0].score

    @property
    def alternatives(self) -> list[str]:
        """The n-best list, best first; as many as were asked for, if there are so many."""
        return [one.text for one in self.nbest]
