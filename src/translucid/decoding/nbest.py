"""The base class of results that have a list of the n best outputs, such as translations and captions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class Written(Protocol):
    """One output."""

    @property
    def text(self) -> str:
        """The text of the output."""

    @property
    def score(self) -> float:
        """The value that ranks the outputs."""


class NBest:
    """A result with its alternatives."""

    nbest: Sequence[Written]
    """The outputs, the best first, at least one."""

    @property
    def text(self) -> str:
        """The text of the best output."""
        return self.nbest[0].text

    @property
    def score(self) -> float:
        """The score of the best output; for a text that was translated in several pieces, the sum over them."""
        return self.nbest[0].score

    @property
    def alternatives(self) -> list[str]:
        """The texts of the n-best list, the best first."""
        return [output.text for output in self.nbest]
