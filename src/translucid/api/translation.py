"""A translation, with its pieces, their attention and further results on demand; and checks of text arguments.

Alignments are read from the attention between words (`Inspector.word_weights`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from heapq import nlargest
from html import escape
from itertools import product
from typing import TYPE_CHECKING, NamedTuple, Self

from bitext.documents.document import RetrievedWord
from bitext.words import linked_words, without_invisible
from translucid.data.formality import formality_warnings
from translucid.data.text_pipeline import EncodedPair, Piece, translatable
from translucid.decoding.decoding_options import DecodingOptions
from translucid.decoding.hypothesis import Hypothesis, NBest, ScoreUnit, total_score
from translucid.engines.length_limits import length_warnings, within
from translucid.evaluation.alignment_error import spread
from translucid.ground.errors import UserError
from translucid.inspection.word_weights import WordWeights, joined_links
from translucid.kernels.machine import has_pytorch
from translucid.runs.configuration import Configuration, checked
from translucid.terminology.matching import TermUse, certain_links, linked_terms, terms_in

if TYPE_CHECKING:
    from translucid.api.translator import Translator
    from translucid.inspection.equation import Equation
    from translucid.inspection.inspected import Inspected
    from translucid.inspection.words import WordMap
    from translucid.models.protocol import Maps


class SentenceInContext(NamedTuple):
    """A sentence that was translated at once."""

    source: str
    target: str
    before: tuple[tuple[int, ...], ...]
    """The ids of the sentences before it (`Piece.before`)."""


@dataclass(frozen=True)
class Alternative:
    """One translation of a whole text."""

    text: str
    score: float
    """The value that ranks alternatives: the sum of the scores of the pieces of the text."""
    hypotheses: Sequence[Hypothesis] = field(repr=False, compare=False)
    """The hypothesis of each piece that the model has translated."""
    unit: ScoreUnit = "log-probability"
    """The unit of the score."""


@dataclass(frozen=True)
class Translation(NBest):
    """The translation of one source text."""

    source: str
    nbest: list[Alternative]
    """The translations, the best first, at least one."""
    pieces: list[Piece] = field(repr=False, compare=False)
    """The pieces of the text that were translated separately, and those that were copied."""
    _translator: Translator = field(repr=False, compare=False)
    max_length: int | None = field(default=None, repr=False)
    """The largest number of characters that was asked for, if there was one."""

    @classmethod
    def of(
        cls,
        source: str,
        pieces: list[Piece],
        nbest_lists: Sequence[list[Hypothesis]],
        count: int,
        translator: Translator,
        max_length: int | None = None,
    ) -> Translation:
        """Return the `count` best translations of a text, given the hypotheses of its pieces.

        With a `max_length`, they are those that have at most this number of characters, or else the shortest one.
        """
        nbest: dict[str, Alternative] = {}
        if max_length is None:
            combinations = best_combinations(nbest_lists, count)
        else:
            combinations = within(pieces, nbest_lists, max_length, count, translator.pipeline)
        for hypotheses in combinations:
            text = translator.pipeline.join(pieces, [hypothesis.tokens for hypothesis in hypotheses])
            score, unit = total_score(hypotheses)
            nbest.setdefault(text, Alternative(text, score, hypotheses, unit))
        return cls(source, [*nbest.values()], pieces, translator, max_length)

    @property
    def parts(self) -> list[tuple[Piece, Hypothesis]]:
        """The pieces that the model has translated, with their best hypotheses."""
        return list(zip(translatable(self.pieces), self.nbest[0].hypotheses, strict=True))

    @cached_property
    def warnings(self) -> list[str]:
        """The warnings about the text, each as `kind: details`, such as `unknown characters: 足`."""
        translator = self._translator
        warnings = list(translator.pipeline.warnings(self.pieces))
        warnings += length_warnings(self.text, self.max_length)
        words_of_terms: set[str] = set()
        for use in self.terms:
            if use.outcome == "missing":
                warnings.append(use.warning)
            words_of_terms.update(map(str.casefold, use.source.split()))
        quality_checks = translator.quality.checks
        out_of_domain_check = translator.loaded.out_of_domain_check(translator.languages, translator.tokenizer)
        for (piece, best), (source, text) in zip(self.parts, self.sentences, strict=True):
            ids, judged = piece.ids[:-1], best.judged
            warnings += formality_warnings(translator.formality, translator.languages, source, text)
            warnings += quality_checks.about(source, ids, text, best.tokens, judged.log_probability)
            words = without_invisible(source)
            warnings += out_of_domain_check.about(words, ids, judged.tokens, judged.log_probability, words_of_terms)
        return list(dict.fromkeys(warnings))

    @cached_property
    def attention_warnings(self) -> list[str]:
        """The warnings about the attention, if `tune confidence` has fitted limits.

        Unlike `warnings`, they need another pass through the model, by PyTorch. Without it, there are none.
        """
        quality = self._translator.quality
        estimator = quality.estimator
        if not estimator or not estimator.detached or not has_pytorch():
            return []
        warnings = []
        for part, inspected in zip(self.parts, self.inspected, strict=True):
            piece, hypothesis = part
            if hypothesis.free:
                (measurements,) = quality.observed([(piece, hypothesis.free)], ["attention"])
            else:
                measurements = quality.with_attention(part, inspected)
            warnings += estimator.detached.about(measurements)
        return list(dict.fromkeys(warnings))

    @cached_property
    def confidence(self) -> float | None:
        """The probability that the translation is good, or its worst sentence, if `tune confidence` has fitted it.

        For many translations, `QualityEstimation.confidences` is faster.
        """
        return self._translator.quality.confidences([self])[0]

    def assessed(self, confidence: float | None) -> Self:
        """Return this translation with a `confidence` that was computed together with others."""
        # The dataclass is frozen, but this is where `cached_property` looks for a value.
        vars(self)["confidence"] = confidence
        return self

    @cached_property
    def word_probabilities(self) -> list[tuple[str, float]]:
        """The words, each with the product of the probabilities of its pieces; see `QualityEstimation`."""
        return self._translator.quality.word_probabilities([self])[0]

    @property
    def token_log_probabilities(self) -> list[list[tuple[str, float]]]:
        """The target pieces of each translation in the n-best list; see `QualityEstimation`."""
        return self._translator.quality.token_log_probabilities(self)

    @cached_property
    def terms(self) -> list[TermUse]:
        """The use of each term of the text, in order, if the translator has terms."""
        uses: list[TermUse] = []
        terms = self._translator.terms
        if terms:
            translations = iter(self.sentences)
            for piece in self.pieces:
                text = piece.text  # a piece without words is copied
                if piece.ids:
                    _, text = next(translations)
                uses += terms.uses(terms_in(terms, piece.text), text)
        return uses

    @cached_property
    def retrieved(self) -> list[RetrievedWord]:
        """The words that the memory of `Translator.with_knn` has changed or supported, computed on demand."""
        if not any(hypothesis.judged.retrieved for _, hypothesis in self.parts):
            return []
        return self._translator.retrieval_engine.words(self.pieces, self.parts)

    @property
    def sentences(self) -> list[tuple[str, str]]:
        """The texts of the pieces that the model has translated, each with its best translation."""
        pipeline = self._translator.pipeline
        return [(piece.text, pipeline.text(piece, hypothesis.tokens)) for piece, hypothesis in self.parts]

    @property
    def in_context(self) -> list[SentenceInContext]:
        """The `sentences`, each with the sentences before it."""
        sentences = []
        for (source, target), (piece, _) in zip(self.sentences, self.parts, strict=True):
            sentences.append(SentenceInContext(source, target, piece.before))
        return sentences

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
        maps_by_piece: list[Maps] = []
        for inspected in self.inspected:
            maps_by_piece.append({name: weights[None] for name, weights in inspected.maps.items()})
        return maps_by_piece

    @cached_property
    def inspected(self) -> list[Inspected]:
        """The attention and log-probabilities of each piece of the text, computed on demand by forced decoding."""
        return self.inspect()

    @property
    def contexts(self) -> list[list[int]]:
        """The ids that the model reads before each piece that it translates: those of the sentences before it."""
        return [list(pair.context) for pair in self.encoded]

    @property
    def encoded(self) -> list[EncodedPair]:
        """The ids of source and translation of each piece that the model has translated."""
        pipeline = self._translator.pipeline
        return [pipeline.pair(piece, hypothesis.with_end) for piece, hypothesis in self.parts]

    def inspect(self, *, contributions: bool = False, with_context: bool = False) -> list[Inspected]:
        """Compute what `inspected` has, with more about the source.

        Args:
            contributions: whether to compute the contributions of source and target prefix, and norms of attention.
            with_context: whether to include the previous sentences that the model has read, if it has document context
                (`Inspected.context`). `inspected` is about the sentences themselves.

        Raises:
            UserError: the model has no contributions.
        """
        if not self.parts:
            return []
        return self._translator.inspector.forced_decoding(self.encoded, contributions, with_context=with_context)

    def equation(self, name: str | None = None, head: int = 0, *, part: int = 0) -> Equation:
        """Return query, key, value, scores, weights and context of one attention head, with the model's own numbers.

        Args:
            name: the name of the attention, such as `decoder.1.cross`; by default, the last layer's cross-attention.
            head: the number of the head, from 0.
            part: the number of the piece, from 0, if the text was translated in several.

        Raises:
            UserError: the model has no such attention or no such head, or the text has no such part.
        """
        from translucid.inspection.equation import equation

        if not 0 <= part < len(self.parts):
            raise UserError(f"there is no part {part}", fix=f"The text was translated in {len(self.parts)}.")
        translator, pair, inspected = self._translator, self.encoded[part], self.inspected[part]
        name = name or f"decoder.{max(inspected.layers, default=0)}.cross"
        texts = [*translator.tokenizer.source_labels(pair.context), *inspected.source], inspected.target
        return equation(translator.model, *pair.input_ids, name, head, translator.device, texts)

    @cached_property
    def words(self) -> list[WordMap]:
        """Cross-attention averaged over heads and layers and merged from pieces of words to words, for each piece."""
        return [inspected.words() for inspected in self.inspected]

    @cached_property
    def alignment(self) -> list[tuple[int, int]]:
        """Word alignment: pairs (source word, target word), counted from 0."""
        both = self._translator.configuration.alignment.both

        def links(weights: WordWeights) -> list[tuple[int, int, float]]:
            return certain_links(weights.links(both=both))

        return [(s, t) for s, t, _ in self._linked(links)]

    @cached_property
    def word_weights(self) -> list[tuple[int, int, float]]:
        """The weights of links between words: (source word, target word, weight); see `WordWeights.soft_links`."""
        return self._linked(WordWeights.soft_links)

    @property
    def _weights_by_piece(self) -> list[WordWeights]:
        """The weights from which alignments are read, for each piece of the text."""
        translator = self._translator
        if has_pytorch():
            from translucid.inspection.alignment import weights_of

            # `inspected` is cached and shared with other views, so the model runs once.
            return [weights_of(inspected, translator.configuration.alignment) for inspected in self.inspected]
        return translator.inspector.word_weights(self.encoded)

    def _linked(
        self, read_links: Callable[[WordWeights], list[tuple[int, int, float]]]
    ) -> list[tuple[int, int, float]]:
        """Return the links that `read_links` finds in each piece, as links between the words of the whole texts."""
        links: list[tuple[int, int, float]] = []
        source_words, target_words = list[int](), list[int]()  # for each word, how many of the pieces have a part of it
        weights, hypotheses = iter(self._weights_by_piece), iter(self.nbest[0].hypotheses)
        continues = False
        for piece in self.pieces:
            if piece.ids:
                piece_weights = next(weights)
                # A name that a stand-in has replaced may have several words.
                source, target = piece_weights.text_words
                source_sizes, target_sizes = piece.masked.sizes(source, in_source=True), piece.masked.sizes(target)
                piece_links = spread(read_links(piece_weights), [source_sizes, target_sizes])
                text = self._translator.pipeline.text(piece, next(hypotheses).tokens)
                words_read = self._translator.inspector.words_read(piece.text, text)
                piece_links = joined_links(piece_links, *words_read)
                piece_links = linked_terms(self._translator.terms, piece_links, piece.text, text)
                words = len(words_read[0]), len(words_read[1])
            else:  # a copied piece is linked word by word
                count = len(linked_words(piece.text))
                words = count, count
                piece_links = [(i, i, 1.0) for i in range(count)]
            first_source, first_target = sum(source_words), sum(target_words)
            for s, t, weight in piece_links:
                links.append((first_source + s, first_target + t, weight))
            for counts, count in zip((source_words, target_words), words, strict=True):
                counts += [1] * count
                if continues and count and len(counts) > count:
                    # Without white space between two pieces, a word consists of the last and the first word of both.
                    last = len(counts) - count - 1
                    counts[last] += counts.pop(last + 1)
            continues = not piece.after
        return joined_links(links, source_words, target_words)

    def _repr_html_(self) -> str:
        """Show the texts and the attention in a notebook."""
        texts = f"<p>{escape(self.source)}<br><b>{escape(self.text)}</b></p>"
        for warning in (*self.warnings, *self.attention_warnings):
            texts += f"<p>⚠ {escape(warning)}</p>"
        inspector = self._translator.inspector
        if not self.inspected or not inspector.has_cross_attention:
            return texts
        from translucid.inspection.inspected import notebook_view

        pieces = self.inspect(contributions=inspector.has_contributions, with_context=True)
        details = []
        for source, target, before in self.in_context:
            details.append(replace(inspector, before=before).page_details(source, target))
        return texts + notebook_view(pieces, details)


class Translations(list[Translation]):
    """A list of translations that shows itself in a notebook."""

    def _repr_html_(self) -> str:
        rows = "<tr><th>source</th><th>translation</th><th></th></tr>"
        for translation in self:
            warnings = escape("; ".join(translation.warnings))
            rows += f"<tr><td>{escape(translation.source)}</td><td><b>{escape(translation.text)}</b></td>"
            rows += f"<td>{warnings}</td></tr>"
        return f"<table>{rows}</table>"


def best_combinations(nbest_lists: Sequence[Sequence[Hypothesis]], count: int) -> list[tuple[Hypothesis, ...]]:
    """Return the `count` best combinations of one hypothesis for each piece, by the sum of their scores."""
    if count == 1:  # the usual case, where no scores need to be compared
        return [tuple(nbest[0] for nbest in nbest_lists)]
    best: list[tuple[Hypothesis, ...]] = [()]
    for nbest in nbest_lists:
        # Scores are added, so only the best prefixes can be part of the best combinations.
        extended = ((*prefix, hypothesis) for prefix, hypothesis in product(best, nbest))
        best = nlargest(count, extended, key=_sum_of_scores)
    return best


def _sum_of_scores(hypotheses: Sequence[Hypothesis]) -> float:
    return sum(hypothesis.score for hypothesis in hypotheses)


def refuse_one_text(argument: object) -> None:
    """Check that an argument is not one text instead of several: its characters would be mistaken for texts.

    Raises:
        TypeError: it is one text, or bytes.
    """
    if isinstance(argument, str | bytes | bytearray):
        raise TypeError(f"expected several texts, not one {type(argument).__name__}: put it into a list")


def text_list(argument: str | Iterable[str]) -> list[str]:
    """Return one text or several as a list.

    Raises:
        TypeError: the argument is something else.
    """
    if isinstance(argument, str):
        return [argument]
    if isinstance(argument, bytes | bytearray | Mapping) or not isinstance(argument, Iterable):
        raise TypeError(f"a text or a list of texts is translated, not {type(argument).__name__}")
    texts = list(argument)
    for i, text in enumerate(texts):
        if not isinstance(text, str):
            raise TypeError(f"text {i} of the list is {type(text).__name__}, not a text")
    return texts


class TextCounter:
    """Counts texts from call to call: sampling depends on the seed and on the number of a text."""

    next_number = 0


def call_options(
    configuration: Configuration, options: DecodingOptions | None, changes: Mapping[str, object]
) -> tuple[DecodingOptions | None, int | None]:
    """Return the options of a call of `translate`, and the number of its first text if it has a `seed`.

    Raises:
        UserError: an option has a wrong name or value.
    """
    has_seed = "seed" in changes or (options is not None and "seed" in options.model_fields_set)
    if changes:
        settings = options or configuration.decoding
        options = checked(DecodingOptions, {**settings.model_dump(), **changes})
    return options, 0 if has_seed else None
