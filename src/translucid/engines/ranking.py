"""Hypotheses put into another order than the one in which the search has found them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Protocol

from translucid.data.text_pipeline import Piece
from translucid.decoding.decoding_options import DecodingOptions
from translucid.decoding.hypothesis import Hypothesis


class Ranking(Protocol):
    """Gives hypotheses other scores."""

    needs_beam: ClassVar[bool]
    """Whether it ranks what a beam search finds, and no single or random translation."""

    def widened(self, options: DecodingOptions) -> DecodingOptions:
        """Return the options by which the candidates are searched for that are ranked."""

    def __call__(
        self, pieces: Sequence[Piece], found: Sequence[list[Hypothesis]], options: DecodingOptions
    ) -> list[list[Hypothesis]]:
        """Return the hypotheses of each piece with new scores, best first.

        Args:
            pieces: what was translated.
            found: candidates of each, at least one.
            options: by which they were found.
        """


def in_order(hypotheses: Sequence[Hypothesis]) -> list[Hypothesis]:
    """Sort by score, the best first, of equal ones the earlier first."""
    return sorted(hypotheses, key=lambda hypothesis: -hypothesis.score)
