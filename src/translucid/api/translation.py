"""What comes of a text: its translation, the parts that it was translated in, and what is to be seen of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from heapq import nlargest
from html import escape
from typing import TYPE_CHECKING, Protocol, Self

from translucid.data.text_pipeline import Piece, TextPipeline
from translucid.decoding.hypothesis import Hypothesis, ScoreUnit, total_score
from translucid.decoding.nbest import NBest
from translucid.evaluation.alignment_error import spread
from translucid.ground.errors import UserError
from translucid.ground.special import SPECIAL
from translucid.terminology.links import TermLink, with_term_links
from translucid.terminology.matching import TermUse

if TYPE_CHECKING:
    import torch

    from translucid.data.placeholders import Masked
    from translucid.inspection.equation import Equation
    from translucid.inspection.inspected import Inspected
    from translucid.inspection.words import WordMap
    from translucid.models.protocol import Maps, SequenceModel
    from translucid.runs.configuration import Configuration


@dataclass(frozen=True)
class Alternative:
    """One translation of a whole text."""

    text: str
    score: float
    """See `Hypothesis.score`; the sum over the pieces of the text."""
    hypotheses: Sequence[Hypothesis] = field(repr=False, compare=False)
    """What was found for each piece that the model has translated."""
    unit: ScoreUnit = "log-probability"
    """Of the score."""


class Maker(Protocol):
    """What a translation asks when somebody wants to know more about it: the `Translator`."""

    @property
    def pipeline(self) -> TextPipeline:
        """Makes of texts what the model reads, and texts of what it writes."""

    @property
    def configuration(self) -> Configuration:
        """Of the run."""

    @property
    def model(self) -> SequenceModel:
        """In evaluation mode."""

    @property
    def device(self) -> torch.device:
        """Where the model is."""

    def forced_decoding(
        self, pairs: Sequence[tuple[list[int], list[int]]], masked: Sequence[Masked] = ()
    ) -> list[Inspected]:
        """Watch the model write given targets for given sources, ids of both."""

    def warnings(self, found: Translation) -> list[str]:
        """Return what looks wrong in a translation."""

    def attention_warnings(self, found: Translation) -> list[str]:
        """Return what looks wrong in its attention."""

    def confidences(self, found: Sequence[Translation]) -> list[float | None]:
        """Return the probability that each translation is good."""

    def word_probabilities(self, found: Sequence[Translation]) -> list[list[tuple[str, float]]]:
        """Return the words of each translation with their probabilities."""

    def term_uses(self, found: Translation) -> list[TermUse]:
        """Return what became of the terms of its source."""

    def term_links(self, source: str, target: str) -> list[TermLink]:
        """Return where terms stand in a source and its translation."""


@dataclass(frozen=True)
class Translation(NBest):
    """What came of one source text."""

    source: str
    nbest: list[Alternative]
    """The best translations of those that were asked for, best first, at least one."""
    pieces: list[Piece] = field(default_factory=list, repr=False, compare=False)
    """What the text was cut into."""
    _translator: Maker | None = field(default=None, repr=False, compare=False)

    @classmethod
    def of(
        cls, source: str, pieces: list[Piece], found: Sequence[list[Hypothesis]], count: int, translator: Maker
    ) -> Translation:
        """Put the `count` best translations of a text together from what was found for its pieces."""
        nbest: dict[str, Alternative] = {}
        for way in best_together(found, count):
            text = translator.pipeline.join(pieces, [hypothesis.tokens for hypothesis in way])
            score, unit = total_score(way)
            nbest.setdefault(text, Alternative(text, score, way, unit))
        return cls(source, [*nbest.values()], pieces, translator)

    @property
    def parts(self) -> list[tuple[Piece, Hypothesis]]:
        """The pieces that the model has translated, and what was found for each."""
        return list(zip(self._searched, self.nbest[0].hypotheses, strict=True))

    @cached_property
    def warnings(self) -> list[str]:
        """What looks wrong, each as `kind: what was seen`, such as `unknown characters: 足`."""
        return self._translator.warnings(self) if self._translator else []

    @cached_property
    def attention_warnings(self) -> list[str]:
        """What looks wrong in its attention, if `tune --confidence` has fitted what is usual.

        Unlike `warnings`, they need the attention, and so another pass through the model.
        """
        return self._translator.attention_warnings(self) if self._translator else []

    @cached_property
    def confidence(self) -> float | None:
        """Probability that it is good, if that was fitted by `tune --confidence`; of several sentences, the lowest.

        Of many translations, `Translator.confidences` is faster.
        """
        return self._translator.confidences([self])[0] if self._translator else None

    def assessed(self, confidence: float | None) -> Self:
        """Return itself, with a `confidence` that need not be found out."""
        vars(self)["confidence"] = confidence
        return self

    @cached_property
    def word_probabilities(self) -> list[tuple[str, float]]:
        """Its words, each with the product of the probabilities of its pieces; see `Translator.word_probabilities`."""
        return self._maker.word_probabilities([self])[0]

    @cached_property
    def terms(self) -> list[TermUse]:
        """What became of the terms in the text, in order, if the translator applies some."""
        return self._translator.term_uses(self) if self._translator else []

    @property
    def sentences(self) -> list[tuple[str, str]]:
        """The texts of the pieces that the model has translated, each with its best translation."""
        return [(piece.text, self._maker.pipeline.text(piece, found.tokens)) for piece, found in self.parts]

    @property
    def _maker(self) -> Maker:
        assert self._translator is not None
        return self._translator

    @property
    def _searched(self) -> list[Piece]:
        return [piece for piece in self.pieces if piece.ids]

    @property
    def attention(self) -> Maps:
        """Attention weights by name, [1, H, T, S] each.

        Raises:
            ValueError: the text was translated in several pieces; see `attention_by_piece`.
        """
        if len(self.attention_by_piece) > 1:
            raise ValueError(f"translated in {len(self.parts)} pieces: see attention_by_piece")
        return self.attention_by_piece[0] if self.parts else {}

    @cached_property
    def attention_by_piece(self) -> list[Maps]:
        """Attention weights of each piece of the text, [1, H, T, S] each."""
        return [{name: weights[None] for name, weights in one.maps.items()} for one in self.inspected]

    @cached_property
    def inspected(self) -> list[Inspected]:
        """All that is to be seen of each piece of the text, made on demand by one forced pass."""
        if not self.parts:
            return []
        pairs = [(piece.ids, [*found.tokens, SPECIAL.end]) for piece, found in self.parts]
        masked = [piece.masked for piece, _ in self.parts]
        return self._maker.forced_decoding(pairs, masked)

    def equation(self, name: str | None = None, head: int = 0, *, part: int = 0) -> Equation:
        """Return query, key, value, scores, weights and context of one attention head, with the model's own numbers.

        Args:
            name: of the attention, such as `decoder.1.cross`; where its last layer looks at the source if not given.
            head: from 0.
            part: of the text, from 0, if it was translated in several.

        Raises:
            UserError: the model has no such attention or no such head, or the text has no such part.
        """
        from translucid.inspection.equation import equation

        if not 0 <= part < len(self.parts):
            raise UserError(f"there is no part {part}", fix=f"The text was translated in {len(self.parts)}.")
        t, (piece, found), seen = self._maker, self.parts[part], self.inspected[part]
        name = name or f"decoder.{max(seen.layers, default=0)}.cross"
        ids = piece.ids, [*found.tokens, SPECIAL.end]
        return equation(t.model, *ids, name, head, t.device, (seen.source, seen.target))

    @cached_property
    def words(self) -> list[WordMap]:
        """Cross-attention averaged over heads and layers and merged from pieces of words to words, for each piece."""
        return [one.words() for one in self.inspected]

    @cached_property
    def alignment(self) -> list[tuple[int, int]]:
        """Word alignment: pairs (source word, target word), counted from 0."""
        from translucid.inspection.alignment import read_alignment

        def read(one: Inspected) -> list[tuple[int, int, float]]:
            return [(s, t, 1.0) for s, t in read_alignment(one, self._maker.configuration.alignment)]

        return [(s, t) for s, t, _ in self._linked(read)]

    @cached_property
    def word_weights(self) -> list[tuple[int, int, float]]:
        """How much words have to do with each other: (source word, target word, weight); see `inspection.alignment`."""
        from translucid.inspection.alignment import word_weights

        return self._linked(lambda one: word_weights(one, self._maker.configuration.alignment))

    def _linked(self, read: Callable[[Inspected], list[tuple[int, int, float]]]) -> list[tuple[int, int, float]]:
        """Return what is read off each piece, as links between the words of the whole texts."""
        links: list[tuple[int, int, float]] = []
        source_words = target_words = 0
        inspected, translated = iter(self.inspected), iter(self.nbest[0].hypotheses)
        for piece in self.pieces:
            if piece.ids:
                one = next(inspected)
                # A name that something stood in for may be of several words.
                source, target = one.text_words
                sizes = [piece.masked.sizes(source, of_source=True), piece.masked.sizes(target)]
                found = read(one)
            else:  # it stays as it is
                sizes = [[1] * len(piece.text.split())] * 2
                found = [(i, i, 1.0) for i in range(len(sizes[0]))]
            of_piece = spread(found, sizes)
            if piece.ids:
                of_piece = self._with_term_links(piece, next(translated), of_piece)
            links += [(source_words + s, target_words + t, weight) for s, t, weight in of_piece]
            source_words, target_words = source_words + sum(sizes[0]), target_words + sum(sizes[1])
        return links

    def _with_term_links(
        self, piece: Piece, hypothesis: Hypothesis, links: list[tuple[int, int, float]]
    ) -> list[tuple[int, int, float]]:
        """Return the links of a piece with those of its terms in the place of what attention says of them."""
        text = self._maker.pipeline.text(piece, hypothesis.tokens)
        terms = self._maker.term_links(piece.text, text)
        return with_term_links(links, piece.text, text, terms) if terms else links

    def _repr_html_(self) -> str:
        """Show itself in a notebook: the texts, and where the model looked."""
        texts = f"<p>{escape(self.source)}<br><b>{escape(self.text)}</b></p>"
        texts += "".join(f"<p>⚠ {escape(warning)}</p>" for warning in (*self.warnings, *self.attention_warnings))
        looked = [one for one in self.inspected if one.layers]
        if not looked:
            return texts
        from translucid.inspection.html import notebook_view

        return texts + notebook_view(looked)


class Translations(list[Translation]):
    """A list of translations that shows itself in a notebook."""

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{escape(one.source)}</td><td><b>{escape(one.text)}</b></td>"
            f"<td>{escape('; '.join(one.warnings))}</td></tr>"
            for one in self
        )
        return f"<table><tr><th>source</th><th>translation</th><th></th></tr>{rows}</table>"


def best_together(found: Sequence[Sequence[Hypothesis]], count: int) -> list[tuple[Hypothesis, ...]]:
    """Return the `count` best ways to take one hypothesis of each piece, by the sum of their scores, best first."""
    best: list[tuple[Hypothesis, ...]] = [()]
    for nbest in found:
        longer = ((*one, hypothesis) for one in best for hypothesis in nbest)
        best = nlargest(count, longer, key=lambda way: sum(hypothesis.score for hypothesis in way))
    return best


def refuse_one_text(given: object) -> None:
    """Check that what is to be several texts is not one: its characters would be taken for texts.

    Raises:
        TypeError: it is one, or it is bytes.
    """
    if isinstance(given, str | bytes | bytearray):
        raise TypeError(f"several texts are wanted, not one {type(given).__name__}: put it into a list")


def given_texts(given: Iterable[str]) -> list[str]:
    """Return what was given for several texts as a list.

    Raises:
        TypeError: it is something else.
    """
    if isinstance(given, bytes | bytearray | Mapping) or not isinstance(given, Iterable):
        raise TypeError(f"a text or a list of texts is translated, not {type(given).__name__}")
    texts = list(given)
    for i, text in enumerate(texts):
        if not isinstance(text, str):
            raise TypeError(f"text {i} of the list is {type(text).__name__}, not a text")
    return texts
