"""The stages of a translation, always in the same order: transform, search, constrain, rank.

The text pipeline transforms the text and adds annotations, an engine searches, terminology constraints replace
hypotheses that lack terms, and a ranking reorders them. Each hypothesis names the unit of its score.

If a form of address is requested (docs/formality.md), texts whose best hypothesis has the other one are searched again
with a wider beam, and the most probable hypothesis without it replaces the best one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import TYPE_CHECKING, ClassVar, Protocol, TypeAlias

from bitext.protected_spans import PlaceholderSyntax, lost_and_invented, with_patterns
from translucid.data.text_pipeline import Piece, TextPipeline, translatable
from translucid.decoding.decoding_options import DecodingOptions, LengthLimit, SearchRequest
from translucid.decoding.hypothesis import Hypothesis, distinct_texts, in_order
from translucid.engines.combinations import CONSTRAINED, refuse_together
from translucid.engines.length_limits import COSTS, LEAST_BEAM, MAX_DROP, length_of, search_limits
from translucid.engines.term_constraint import TermConstraint
from translucid.kernels.machine import has_pytorch

if TYPE_CHECKING:
    from translucid.decoding.search import TorchEngine
    from translucid.engines.choosing import Engine

Part: TypeAlias = tuple[Piece, Hypothesis]
"""A piece of a text, and its translation."""
ADDRESS_BEAM = 10
"""The least beam of the second search of a text whose translation has the other form of address."""
MOST_PIECES = 1 << 32
"""A bound for the numbers of the pieces of one text."""


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


@dataclass(frozen=True)
class SearchStages:
    """The stages for one model."""

    pipeline: TextPipeline
    engine: Engine
    constraints: tuple[TermConstraint, ...] = ()
    """The terminology constraints that translations have to satisfy."""
    ranking: Ranking | None = None
    address_loss: Callable[[str, str], int] | None = None
    """If a form of address is requested: 2 if a translation of a source has the other one, 1 if it has none, or 0."""

    def __str__(self) -> str:
        stages = [str(self.engine), *map(str, self.constraints)]
        if self.ranking:
            stages.append(f"ranked by {self.ranking}")
        return ", ".join(stages)

    def constrained(self, constraint: TermConstraint) -> SearchStages:
        """Return the same stages with one more constraint."""
        return replace(self, constraints=(*self.constraints, constraint))

    def search(
        self,
        texts: Sequence[Sequence[Piece]],
        options: DecodingOptions,
        first: int,
        on_done: Callable[[int], None] | None = None,
    ) -> list[list[list[Hypothesis]]]:
        """Return for each text the hypotheses of those of its pieces that have something to translate.

        Equal pieces are searched once, and no n-best list contains a text twice.

        Args:
            texts: the pieces of each text.
            options: how to search.
            first: the number of the first text, on which sampling depends together with the seed.
            on_done: called with the number of finished texts after each batch; pieces count as shares of them.
        """
        by_text = list(map(translatable, texts))
        all_pieces = list(chain.from_iterable(by_text))
        if on_done:
            on_done = _counting_texts(on_done, len(texts), len(all_pieces))
        if options.sample:
            # Equal pieces have different random samples, which depend on a piece's position, not on its batch.
            numbers = _piece_numbers(by_text, first)
            by_piece = self._distinct_texts(SearchRequest(all_pieces, options, on_done, numbers))
        else:
            keys = list(map(self._key, all_pieces))
            distinct = dict(zip(keys, all_pieces, strict=True))
            if on_done and len(distinct) < len(all_pieces):
                on_done(len(all_pieces) - len(distinct))
            results = self._distinct_texts(SearchRequest(list(distinct.values()), options, on_done))
            by_key = dict(zip(distinct, results, strict=True))
            by_piece = list(map(by_key.__getitem__, keys))
        remaining = iter(by_piece)
        return [list(islice(remaining, len(pieces))) for pieces in by_text]

    def _distinct_texts(self, request: SearchRequest[Piece]) -> list[list[Hypothesis]]:
        """Return for each piece hypotheses with different texts."""
        pieces = request.sentences

        def text_of(index: int, hypothesis: Hypothesis) -> str:
            return self.pipeline.text(pieces[index], hypothesis.tokens)

        def search_again(indices: list[int], wider_options: DecodingOptions) -> list[list[Hypothesis]]:
            return self.decode(SearchRequest(list(map(pieces.__getitem__, indices)), wider_options))

        return distinct_texts(self.decode(request), request.options, text_of, search_again)

    def _key(self, piece: Piece) -> tuple[tuple[int, ...], tuple[tuple[int, ...], ...], str]:
        """Return a key that is equal for pieces with the same translation."""
        # Texts with the same ids may differ in what a step, a constraint or a ranking reads from them.
        reads_text = self.pipeline.steps or self.constraints or self.ranking or self.address_loss
        return tuple(piece.ids), piece.before, piece.text if reads_text else ""

    def decode(self, request: SearchRequest[Piece]) -> list[list[Hypothesis]]:
        """Return up to `nbest` hypotheses for each piece, at least one, the best first.

        Raises:
            UserError: the options do not go together with the stages.
        """
        pieces, options = request.sentences, request.options
        refuse_together(
            {
                CONSTRAINED: not all(constraint.annotated for constraint in self.constraints),
                "`sample`": options.sample,
                "`beam=1`": options.beam == 1,
                "`ranking`": self.ranking is not None and self.ranking.needs_beam,
            }
        )
        search_options = self.ranking.widened(options) if self.ranking else options
        constraints = () if options.sample else self.constraints
        search = SearchRequest(self.pipeline.inputs(pieces), search_options, request.on_batch, request.numbers)
        nbest_lists = self.engine.decode(search)
        if self.address_loss and not options.sample:
            nbest_lists = self._with_address(pieces, search, nbest_lists)
        for constraint in constraints:
            nbest_lists = constraint(pieces, search, nbest_lists, self.engine)
        if self.ranking:
            # Otherwise the ranking might choose a hypothesis that lacks a term.
            for constraint in constraints:
                nbest_lists = list(map(constraint.complete, pieces, nbest_lists))
            nbest_lists = self.ranking(pieces, nbest_lists, search_options)
        return [nbest[: options.nbest] for nbest in nbest_lists]

    def _with_address(
        self, pieces: Sequence[Piece], request: SearchRequest[list[int]], nbest_lists: Sequence[list[Hypothesis]]
    ) -> list[list[Hypothesis]]:
        """Search again where the best hypothesis, or any that will be ranked, has the other form of address."""
        numbers = []
        for i, (piece, nbest) in enumerate(zip(pieces, nbest_lists, strict=True)):
            used = nbest if self.ranking else nbest[:1]
            if any(self._address_loss(piece, hypothesis) == 2 for hypothesis in used):
                numbers.append(i)
        if not numbers:
            return [*nbest_lists]
        options = request.options
        beam = max(options.beam, ADDRESS_BEAM)
        sentences = [request.sentences[i] for i in numbers]
        wider = SearchRequest(sentences, options.model_copy(update={"beam": beam, "nbest": beam}))
        results = [*nbest_lists]
        for i, found in zip(numbers, self.engine.decode(wider), strict=True):
            results[i] = self._complete(pieces[i], [*nbest_lists[i], *found])[: options.nbest]
        return results

    def _address_loss(self, piece: Piece, hypothesis: Hypothesis) -> int:
        return self.address_loss(piece.text, self.pipeline.text(piece, hypothesis.tokens)) if self.address_loss else 0

    def shorter(
        self,
        pieces: Sequence[Piece],
        nbest_lists: Sequence[list[Hypothesis]],
        limits: Sequence[int],
        options: DecodingOptions,
        torch_engine: Callable[[], TorchEngine],
    ) -> list[list[Hypothesis]]:
        """Return candidates for pieces whose translations are too long, those of a free search included.

        Without PyTorch, no search controls the length: then they are the hypotheses of a wider beam.

        Args:
            pieces: the pieces.
            nbest_lists: the hypotheses of a free search for each.
            limits: the largest number of characters of each translation.
            options: the options of that search.
            torch_engine: returns the PyTorch engine.
        """
        beam = max(options.beam, LEAST_BEAM)
        request = SearchRequest(self.pipeline.inputs(pieces), options.model_copy(update={"beam": beam, "nbest": beam}))
        if has_pytorch():
            engine: Engine = torch_engine()
            searches = list(map(search_limits, pieces, limits))
            found = _controlled(engine, request, searches)
            request = replace(request, limits=[piece_searches[len(COSTS) // 2] for piece_searches in searches])
        else:
            engine = self.engine
            found = engine.decode(request)
        candidates = []
        for piece, limit, hypotheses, free in zip(pieces, limits, found, nbest_lists, strict=True):
            if not self.ranking or not hypotheses:  # otherwise the scores have another unit
                hypotheses = [*hypotheses, *free]
            # Those that fit come first: a constraint searches for the terms that the first one lacks.
            fitting, too_long = list[Hypothesis](), list[Hypothesis]()
            for hypothesis in in_order(hypotheses):
                fits = length_of(piece, hypothesis, self.pipeline) <= limit
                (fitting if fits else too_long).append(hypothesis)
            candidates.append([*fitting, *too_long])
        for constraint in self.constraints:
            with_terms = constraint(pieces, request, candidates, engine)
            candidates = [[*new, *old] for new, old in zip(with_terms, candidates, strict=True)]
        candidates = list(map(self._complete, pieces, candidates))
        return self.ranking(pieces, candidates, request.options) if self.ranking else candidates

    def _complete(self, piece: Piece, candidates: Sequence[Hypothesis]) -> list[Hypothesis]:
        """Return those candidates that are probable enough, and that lose as little of the source as any of them.

        Of these, they are those that have the requested form of address, or else none, if any does.
        """
        ordered = in_order(candidates)
        by_text: dict[str, Hypothesis] = {}
        for hypothesis in ordered:
            if hypothesis.score >= ordered[0].score - MAX_DROP:
                by_text.setdefault(self.pipeline.text(piece, hypothesis.tokens), hypothesis)
        by_losses = defaultdict[tuple[int, int], list[Hypothesis]](list)
        syntax = with_patterns(PlaceholderSyntax.message, self.pipeline.protected)
        for text, hypothesis in by_text.items():
            lost, invented = lost_and_invented(piece.text, text, syntax)
            missing = sum(constraint.missing(piece, hypothesis) for constraint in self.constraints)
            losses = len(lost) + len(invented) + missing
            by_losses[losses, self._address_loss(piece, hypothesis)].append(hypothesis)
        return by_losses[min(by_losses)]

    def pairs(self, parts: Sequence[Part]) -> list[tuple[list[int], list[int]]]:
        """Return the source ids that the model reads in the search, and the target ids with the end token."""
        pieces, targets = [], []
        for piece, hypothesis in parts:
            pieces.append(piece)
            targets.append(hypothesis.with_end)
        return list(zip(self.pipeline.inputs(pieces), targets, strict=True))


def _controlled(
    engine: Engine, request: SearchRequest[list[int]], searches: Sequence[Sequence[LengthLimit]]
) -> list[list[Hypothesis]]:
    """Return for each sentence of a request the hypotheses of all its `searches`, which have these limits."""
    sentences, limits = list[list[int]](), list[LengthLimit]()
    for ids, sentence_limits in zip(request.sentences, searches, strict=True):
        sentences += [ids] * len(sentence_limits)
        limits += sentence_limits
    results = iter(engine.decode(SearchRequest(sentences, request.options, limits=limits)))
    return [list(chain.from_iterable(islice(results, len(sentence_limits)))) for sentence_limits in searches]


def _piece_numbers(texts: Sequence[Sequence[Piece]], first: int) -> list[int]:
    """Return a number for each piece, which depends only on its index in its text and on the number of that text."""
    numbers: list[int] = []
    for text, pieces in enumerate(texts, first):
        start = text * MOST_PIECES
        numbers += range(start, start + len(pieces))
    return numbers


def _counting_texts(on_done: Callable[[int], None], texts: int, pieces: int) -> Callable[[int], None]:
    """Return a function to be called with numbers of finished pieces, which calls `on_done` with numbers of texts."""
    finished = 0

    def advance(count: int) -> None:
        nonlocal finished
        before = finished * texts // pieces
        finished += count
        on_done(finished * texts // pieces - before)

    if not pieces:
        on_done(texts)
    return advance
