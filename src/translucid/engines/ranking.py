"""An engine whose hypotheses are put into another order than the one in which the search found them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from translucid.decoding.decoding_options import DecodingOptions
from translucid.decoding.hypothesis import Hypothesis

if TYPE_CHECKING:
    from translucid.data.tokenizing.tokenizer import Tokenizer
    from translucid.engines.engine import Engine


class Ranking(Protocol):
    """Gives hypotheses other scores."""

    def widened(self, options: DecodingOptions) -> DecodingOptions:
        """Return the options by which the candidates are searched for that are ranked."""

    def __call__(
        self, sentences: Sequence[list[int]], found: Sequence[list[Hypothesis]], options: DecodingOptions
    ) -> list[list[Hypothesis]]:
        """Return the hypotheses of each sentence with new scores, best first.

        Args:
            sentences: source ids, each ending in the end token.
            found: candidates of each, at least one.
            options: by which they were found.
        """


class RankedEngine:
    """Searches with another engine and ranks what that finds."""

    def __init__(self, engine: Engine, ranking: Ranking) -> None:
        """`engine`: any; `ranking`: what decides."""
        self.engine, self.ranking = engine, ranking
        self.name, self.device_type = engine.name, engine.device_type

    def opened(self, tokenizer: Tokenizer) -> RankedEngine:
        """See `Engine`."""
        return RankedEngine(self.engine.opened(tokenizer), self.ranking)

    def __str__(self) -> str:
        """Say what searches and what ranks."""
        return f"{self.engine}, ranked by {self.ranking}"

    def decode(
        self,
        sentences: Sequence[list[int]],
        options: DecodingOptions,
        on_batch: Callable[[int], None] | None = None,
        numbers: Sequence[int] | None = None,
    ) -> list[list[Hypothesis]]:
        """See `Engine`."""
        wide = self.ranking.widened(options)
        found = self.engine.decode(sentences, wide, on_batch, numbers)
        return [nbest[: options.nbest] for nbest in self.ranking(sentences, found, wide)]

    def forced(self, pairs: Sequence[tuple[list[int], list[int]]]) -> list[list[float]]:
        """See `Engine`."""
        return self.engine.forced(pairs)


def in_order(hypotheses: Sequence[Hypothesis]) -> list[Hypothesis]:
    """Sort by score, the best first, of equal ones the earlier first."""
    return sorted(hypotheses, key=lambda hypothesis: -hypothesis.score)
