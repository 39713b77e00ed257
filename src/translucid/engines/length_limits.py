"""Translations with a largest number of characters: what is searched again, and the choice among candidates.

Every engine searches first, without limits. The pieces of texts whose best translation is too long are searched again
by the PyTorch engine, which controls the length (`decoding.length_control`), with several costs of a character. All
hypotheses of both searches are candidates, except those that are much less probable than the free translation, and
those that have lost more of the source than others, such as a placeholder or a term. The candidates with the highest
sum of scores that fit together are the translation; if none do, the shortest ones are.

Characters are grapheme clusters, counted in the text as it is written, with its placeholders.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from heapq import nlargest
from itertools import chain
from operator import attrgetter
from typing import NamedTuple

from bitext.words import count_characters
from translucid.data.text_pipeline import Piece, TextPipeline, translatable
from translucid.decoding.decoding_options import DecodingOptions, LengthLimit
from translucid.decoding.hypothesis import Hypothesis
from translucid.engines.combinations import MAX_LENGTH, refuse_together
from translucid.ground.errors import UserError

COSTS = 0.0, 0.2, 0.5, 1.0
"""The costs of a character, in nats, of the searches of a piece that is too long."""
UNLIMITED_COST = 0.5
"""The cost of a character in the search for the shortest translation, which has no limit."""
LEAST_BEAM = 5
"""The least beam size of these searches."""
MAX_DROP = 4.0
"""How much lower than that of the free translation the score of a candidate may be."""


class LongText(NamedTuple):
    """A text whose best translation is too long."""

    number: int
    """The number of the text."""
    pieces: list[Piece]
    """The pieces that are translated."""
    limits: list[int]
    """The largest number of characters of each translation: its share of that of the text."""


def refuse_length(limit: int | None, options: DecodingOptions | None) -> None:
    """Check that a limit is a number of characters, and that outputs are searched and not drawn at random.

    Raises:
        UserError: it is not, or they are.
    """
    if limit is not None and limit < 1:
        raise UserError(f"{MAX_LENGTH} is {limit}: no translation has so few characters", fix="Give 1 or more.")
    refuse_together({MAX_LENGTH: limit, "`sample`": options is not None and options.sample})


def search_limits(piece: Piece, limit: int) -> list[LengthLimit]:
    """Return the limits of the searches of a piece, in characters of what the model writes.

    The parts that placeholders stand for count as in the source, which has each once.
    """
    room = max(limit - count_characters(piece.text) + count_characters(piece.masked.text), 0)
    return [*(LengthLimit(room, cost) for cost in COSTS), LengthLimit(None, UNLIMITED_COST)]


def long_text(
    number: int, pieces: Sequence[Piece], hypotheses: Sequence[Hypothesis], limit: int, pipeline: TextPipeline
) -> LongText | None:
    """Return a text if its best translation is too long, with a limit for each piece; otherwise None.

    Args:
        number: the number of the text.
        pieces: all its pieces.
        hypotheses: the best hypotheses of those that are translated.
        limit: the largest number of characters of the translation.
        pipeline: the text pipeline.
    """
    if count_characters(pipeline.join(pieces, [hypothesis.tokens for hypothesis in hypotheses])) <= limit:
        return None
    parts = translatable(pieces)
    lengths = [length_of(part, hypothesis, pipeline) for part, hypothesis in zip(parts, hypotheses, strict=True)]
    room, total = max(limit - copied_length(pieces), 0), max(sum(lengths), 1)
    return LongText(number, parts, [room * length // total for length in lengths])


def length_warnings(text: str, limit: int | None) -> list[str]:
    """Return a warning if a translation has more characters than its limit.

    >>> length_warnings("Guardar", 6)
    ['length: 7 characters, 6 at most']
    """
    length = count_characters(text) if limit is not None else 0
    return [f"length: {length} characters, {limit} at most"] if limit is not None and length > limit else []


def length_of(piece: Piece, hypothesis: Hypothesis, pipeline: TextPipeline) -> int:
    """Return the number of characters of a translation of a piece."""
    return count_characters(pipeline.text(piece, hypothesis.tokens))


def copied_length(pieces: Sequence[Piece]) -> int:
    """Return the number of characters of a translation that are not translated: copied pieces, and white space."""
    texts = []
    for piece in pieces:
        texts += ["" if piece.ids else piece.text, piece.after]
    return sum(map(count_characters, texts)) - count_characters(pieces[-1].after) if pieces else 0


def within(
    pieces: Sequence[Piece], nbest_lists: Sequence[Sequence[Hypothesis]], limit: int, count: int, pipeline: TextPipeline
) -> list[tuple[Hypothesis, ...]]:
    """Return the `count` best combinations of one candidate for each piece that fit; if none do, the shortest one.

    Args:
        pieces: all pieces of a text.
        nbest_lists: the candidates of those that are translated.
        limit: the largest number of characters of the text.
        count: the largest number of combinations.
        pipeline: the text pipeline.
    """
    room = limit - copied_length(pieces)
    # By length, the best prefixes: no others can be part of the best combinations.
    prefixes: dict[int, list[_Prefix]] = {0: [_Prefix(0.0, ())]}
    shortest: list[Hypothesis] = []
    for piece, nbest in zip(translatable(pieces), nbest_lists, strict=True):
        lengths = [length_of(piece, hypothesis, pipeline) for hypothesis in nbest]
        shortest.append(nbest[min(range(len(nbest)), key=lambda i: (lengths[i], -nbest[i].score))])
        extended = defaultdict[int, list[_Prefix]](list)
        for before, best in prefixes.items():
            for length, hypothesis in zip(lengths, nbest, strict=True):
                if before + length <= room:
                    extended[before + length] += [prefix.extended(hypothesis) for prefix in best]
        prefixes = _undominated(extended, count)
    results = nlargest(count, chain.from_iterable(prefixes.values()), key=attrgetter("score"))
    return [prefix.hypotheses for prefix in results] or [tuple(shortest)]


class _Prefix(NamedTuple):
    """A choice for the first pieces of a text."""

    score: float
    hypotheses: tuple[Hypothesis, ...]

    def extended(self, hypothesis: Hypothesis) -> _Prefix:
        return _Prefix(self.score + hypothesis.score, (*self.hypotheses, hypothesis))


def _undominated(prefixes: dict[int, list[_Prefix]], count: int) -> dict[int, list[_Prefix]]:
    """Return those prefixes that have a higher score than the `count` best of those that are not longer."""
    best: list[_Prefix] = []
    result: dict[int, list[_Prefix]] = {}
    for length in sorted(prefixes):
        worst = best[-1].score if len(best) == count else float("-inf")
        kept = [prefix for prefix in nlargest(count, prefixes[length], key=attrgetter("score")) if prefix.score > worst]
        if kept:
            result[length] = kept
            best = nlargest(count, [*best, *kept], key=attrgetter("score"))
    return result
