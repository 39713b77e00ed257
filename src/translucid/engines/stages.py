"""How translations come about, in one order: transform, search, constrain, rank.

The text pipeline transforms (what is shown to the model besides the text), an engine searches, terms constrain what was
found, and a ranking puts it into another order. A hypothesis says what unit its score has.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import TYPE_CHECKING

from translucid.data.text_pipeline import MOST_PIECES, Piece, TextPipeline
from translucid.decoding.decoding_options import DecodingOptions
from translucid.decoding.distinct import distinct_texts
from translucid.decoding.hypothesis import Hypothesis
from translucid.engines.combinations import CONSTRAINED, refuse_together
from translucid.engines.ranking import Ranking
from translucid.engines.term_constraint import TermConstraint

if TYPE_CHECKING:
    from translucid.engines.engine import Engine


@dataclass(frozen=True)
class SearchStages:
    """The stages for one model."""

    pipeline: TextPipeline
    engine: Engine
    constraints: tuple[TermConstraint, ...] = ()
    """What translations have to have."""
    ranking: Ranking | None = None

    def __str__(self) -> str:
        """Say what searches, and what comes after it."""
        after = [*map(str, self.constraints), *([f"ranked by {self.ranking}"] if self.ranking else [])]
        return ", ".join([str(self.engine), *after])

    def constrained(self, constraint: TermConstraint) -> SearchStages:
        """Return the same with one constraint more."""
        return replace(self, constraints=(*self.constraints, constraint))

    def search(
        self,
        texts: Sequence[Sequence[Piece]],
        options: DecodingOptions,
        first: int,
        on_done: Callable[[int], None] | None = None,
    ) -> list[list[list[Hypothesis]]]:
        """Return for each text the hypotheses of each of its pieces that have something to translate.

        Each different piece is searched for once, and no n-best list has a text twice.

        Args:
            texts: the pieces of each.
            options: how to search.
            first: the number of the first text, which decides with the seed what sampling draws.
            on_done: called with the number of pieces done after each batch.
        """
        searched = [[piece for piece in pieces if piece.ids] for pieces in texts]
        every = list(chain.from_iterable(searched))
        # Sampling draws each piece for itself, however many are equal.
        asked = every if options.sample else self._different(every)
        if on_done and len(asked) < len(every):
            on_done(len(every) - len(asked))
        numbers = []
        for text, pieces in enumerate(searched, first):
            numbers += [text * MOST_PIECES + place for place in range(len(pieces))]
        found = self.decode(asked, options, on_done, numbers if options.sample else None)

        def text_of(number: int, hypothesis: Hypothesis) -> str:
            return self.pipeline.text(asked[number], hypothesis.tokens)

        def search_again(numbers: list[int], wider: DecodingOptions) -> list[list[Hypothesis]]:
            return self.decode([asked[number] for number in numbers], wider)

        found = distinct_texts(found, options, text_of, search_again)
        if not options.sample:
            by_key = {self._key(piece): hypotheses for piece, hypotheses in zip(asked, found, strict=True)}
            found = [by_key[self._key(piece)] for piece in every]
        coming = iter(found)
        return [list(islice(coming, len(pieces))) for pieces in searched]

    def _different(self, pieces: Sequence[Piece]) -> list[Piece]:
        """Return one piece of those that have one translation."""
        by_key = {self._key(piece): piece for piece in pieces}
        return list(by_key.values())

    def _key(self, piece: Piece) -> tuple[tuple[int, ...], str]:
        """Return what is equal for pieces that have one translation: ids, and the text where a stage reads that."""
        reads_text = bool(self.pipeline.steps or self.constraints or self.ranking)
        return tuple(piece.ids), piece.text * reads_text

    def decode(
        self,
        pieces: Sequence[Piece],
        options: DecodingOptions,
        on_batch: Callable[[int], None] | None = None,
        numbers: Sequence[int] | None = None,
    ) -> list[list[Hypothesis]]:
        """Return up to `nbest` hypotheses for each piece, best first, at least one; arguments as those of `Engine`.

        Raises:
            UserError: the options do not go with the stages.
        """
        refuse_together(
            {
                CONSTRAINED: not all(constraint.pointed_out for constraint in self.constraints),
                "--sample": options.sample,
                "--beam 1": options.beam == 1,
                "--rerank-with": self.ranking is not None and self.ranking.needs_beam,
            }
        )
        wide = self.ranking.widened(options) if self.ranking else options
        read = self.pipeline.read(pieces)
        found = self.engine.decode(read, wide, on_batch, numbers)
        constraints = () if options.sample else self.constraints
        for constraint in constraints:
            found = constraint(pieces, read, found, wide, self.engine)
        if self.ranking:
            for constraint in constraints:  # or the ranking might choose what lacks a term
                found = [constraint.complete(piece, nbest) for piece, nbest in zip(pieces, found, strict=True)]
            found = self.ranking(pieces, found, wide)
        return [nbest[: options.nbest] for nbest in found]

    def forced(self, parts: Sequence[tuple[Piece, list[int]]]) -> list[list[float]]:
        """Return the log-probability of each token, in nats, of pieces and outputs for them, end tokens included.

        The model reads what it has read in the search.
        """
        read = self.pipeline.read([piece for piece, _ in parts])
        return self.engine.forced(list(zip(read, (tokens for _, tokens in parts), strict=True)))
