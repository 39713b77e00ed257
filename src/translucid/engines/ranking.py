"""The interface of rankings, which put the hypotheses of a search into another order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Protocol

from translucid.data.text_pipeline import Piece
from translucid.decoding.decoding_options import DecodingOptions
from translucid.decoding.hypothesis import Hypothesis


class Ranking(Protocol):
    """Gives hypotheses new scores."""

    needs_beam: ClassVar[bool]
    """Whether it ranks the results of a beam search, and neither a single translation nor random samples."""

    def widened(self, options: DecodingOptions) -> DecodingOptions:
        """Return the options of a search that finds enough candidates."""

    def __call__(
        self, pieces: Sequence[Piece], nbest_lists: Sequence[list[Hypothesis]], options: DecodingOptions
    ) -> list[list[Hypothesis]]:
        """Return the hypotheses of each piece with new scores, the best first.

        Args:
            pieces: the source pieces.
            nbest_lists: the candidates of each piece, at least one.
            options: the options of the search that has found them.
        """
