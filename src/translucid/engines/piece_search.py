"""The pieces of several texts searched together: each different one once, and no text twice in its n-best list."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain

from translucid.data.text_pipeline import MOST_PIECES, Piece
from translucid.decoding.decoding_options import DecodingOptions
from translucid.decoding.distinct import distinct_texts
from translucid.decoding.hypothesis import Hypothesis
from translucid.engines.stages import SearchStages


def search_pieces(
    stages: SearchStages,
    texts: Sequence[Sequence[Piece]],
    options: DecodingOptions,
    first: int,
    on_done: Callable[[int], None] | None = None,
) -> list[list[list[Hypothesis]]]:
    """Return for each text the hypotheses of each of its pieces that have something to translate.

    Args:
        stages: of the search.
        texts: the pieces of each.
        options: how to search.
        first: the number of the first text, which decides with the seed what sampling draws.
        on_done: called with the number of pieces done after each batch.
    """
    searched = [[piece for piece in pieces if piece.ids] for pieces in texts]
    every = list(chain.from_iterable(searched))
    # Each different sentence is searched for once, unless each is to be drawn for itself.
    asked = every if options.sample else list({tuple(piece.ids): piece for piece in every}.values())
    if on_done and len(asked) < len(every):
        on_done(len(every) - len(asked))
    numbers = [
        (first + text) * MOST_PIECES + place for text, pieces in enumerate(searched) for place in range(len(pieces))
    ]
    found = stages.decode(asked, options, on_done, numbers if options.sample else None)

    def text_of(number: int, hypothesis: Hypothesis) -> str:
        return stages.pipeline.text(asked[number], hypothesis.tokens)

    def search_again(numbers: list[int], wider: DecodingOptions) -> list[list[Hypothesis]]:
        return stages.decode([asked[number] for number in numbers], wider)

    found = distinct_texts(found, options, text_of, search_again)
    if not options.sample:
        by_ids = {tuple(piece.ids): hypotheses for piece, hypotheses in zip(asked, found, strict=True)}
        found = [by_ids[tuple(piece.ids)] for piece in every]
    coming = iter(found)
    return [[next(coming) for _ in pieces] for pieces in searched]
