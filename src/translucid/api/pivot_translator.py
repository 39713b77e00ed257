"""Translation through a pivot language: one translator translates into it, and another one from it.

The best translation of the first step is the text of the second one. Sentences are split once, in the source. A command
names the first step by a run, or by a language of its own multilingual run (`steps_through`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias, overload

from bitext.languages import Languages, find_code, same_language
from translucid.api.translation import Alternative, Translation, call_options, refuse_one_text, text_list
from translucid.api.translator import WINDOW, Translator
from translucid.data.document_context import ContextOptions, Source, as_source
from translucid.decoding.decoding_options import DecodingOptions
from translucid.engines.choosing import EngineName
from translucid.engines.length_limits import refuse_length
from translucid.ground.errors import UserError
from translucid.ground.iteration import batched
from translucid.ground.special import Formality
from translucid.interop.run_resolution import resolve_run
from translucid.models.kinds import extension_method
from translucid.runs.configuration import Configuration
from translucid.runs.run_folder import RunFolder
from translucid.terminology.glossary import Term
from translucid.terminology.matching import Links, TermList, TermUse, certain_links

if TYPE_CHECKING:
    from translucid.api.quality import QualityEstimation
    from translucid.data.tokenizing.tokenizer import Tokenizer
    from translucid.engines.choosing import Engine


LAST_STEP = frozenset({"nbest", "sample", "temperature", "top_k", "top_p", "seed"})
"""The decoding options that hold for the second step alone, which is the only one that has several outputs."""


@dataclass(frozen=True)
class PivotTranslation:
    """A translation through a pivot language."""

    first: Translation
    """The translation into the pivot language."""
    second: Translation
    """The translation of the text of `first`. Its source is that text."""

    @property
    def source(self) -> str:
        """The source text."""
        return self.first.source

    @property
    def text(self) -> str:
        """The text of the best translation."""
        return self.second.text

    @property
    def score(self) -> float:
        """The score of the second step: of the translation given the best text of the pivot language."""
        return self.second.score

    @property
    def nbest(self) -> list[Alternative]:
        """The translations of the best text of the pivot language, the best first."""
        return self.second.nbest

    @property
    def alternatives(self) -> list[str]:
        """The texts of the n-best list, the best first."""
        return self.second.alternatives

    @property
    def warnings(self) -> list[str]:
        """The warnings of both steps."""
        return list(dict.fromkeys([*self.first.warnings, *self.second.warnings]))

    @property
    def attention_warnings(self) -> list[str]:
        """The warnings about the attention of both steps."""
        return list(dict.fromkeys([*self.first.attention_warnings, *self.second.attention_warnings]))

    @property
    def confidence(self) -> float | None:
        """The product of the confidences of both steps; None if one of the runs has no quality estimator.

        It is the probability that both steps are good if they fail independently of each other.
        """
        first, second = self.first.confidence, self.second.confidence
        return None if first is None or second is None else first * second

    @property
    def word_probabilities(self) -> list[tuple[str, float]]:
        """The words with their probabilities in the second step."""
        return self.second.word_probabilities

    @property
    def token_log_probabilities(self) -> list[list[tuple[str, float]]]:
        """The target pieces with their log-probabilities in the second step."""
        return self.second.token_log_probabilities

    @property
    def terms(self) -> list[TermUse]:
        """The use of the terms of the second step."""
        return self.second.terms

    @cached_property
    def alignment(self) -> list[tuple[int, int]]:
        """Word alignment: pairs (source word, target word) that are linked to the same word of the pivot language."""
        return composed_alignment(self.first.alignment, self.second.alignment)

    @cached_property
    def word_weights(self) -> list[tuple[int, int, float]]:
        """The weights of links between words of source and target; see `composed`."""
        return composed(self.first.word_weights, self.second.word_weights)

    def _repr_html_(self) -> str:
        """Show both steps in a notebook."""
        return self.first._repr_html_() + self.second._repr_html_()


class PivotTranslations(list[PivotTranslation]):
    """A list of translations that shows itself in a notebook."""

    def _repr_html_(self) -> str:
        rows = "<tr><th>source</th><th>pivot</th><th>translation</th><th></th></tr>"
        for translation in self:
            texts = translation.source, translation.first.text, translation.text, "; ".join(translation.warnings)
            rows += "<tr>" + "".join(f"<td>{escape(text)}</td>" for text in texts) + "</tr>"
        return f"<table>{rows}</table>"


AnyTranslation: TypeAlias = Translation | PivotTranslation


class Aligner(Protocol):
    """What documents and jobs use of `Translator.inspector`."""

    @property
    def has_cross_attention(self) -> bool:
        """Whether there are alignments."""

    def align(self, source: str, target: str) -> list[tuple[int, int]]:
        """Return the word alignment of a text and a translation from elsewhere."""


class Assessor(Protocol):
    """What documents, jobs and servers use of `Translator.quality`."""

    @property
    def has_confidence(self) -> bool:
        """Whether translations have a confidence."""

    def assessed(self, translations: Iterable[Any]) -> Iterator[AnyTranslation]:
        """Yield translations of this translator with their confidence."""


class AnyTranslator(Protocol):
    """What documents, jobs and servers use of a `Translator` or a `PivotTranslator`; their docstrings say more."""

    @property
    def configuration(self) -> Configuration:
        """The configuration, with the decoding options."""

    @property
    def engine(self) -> Engine:
        """The engine that searches for translations."""

    @property
    def context(self) -> ContextOptions | None:
        """How sentences are joined to those before them, if the model that reads the source has learned that."""

    @property
    def has_placeholders(self) -> bool:
        """Whether placeholders may be left in texts."""

    @property
    def languages(self) -> Languages:
        """The codes of the source and target language, where known."""

    @property
    def protected(self) -> tuple[str, ...]:
        """The patterns of parts that a translation must keep (`data.protected`)."""

    @property
    def formality(self) -> Formality | None:
        """How translations address their reader, if it was chosen."""

    @property
    def terms(self) -> TermList | None:
        """The terms of source and target language that translations have to use, if there are any."""

    @property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer of the model that reads the source."""

    @property
    def inspector(self) -> Aligner:
        """Aligns words."""

    @property
    def quality(self) -> Assessor:
        """Estimates the quality of translations."""

    def stream(
        self,
        texts: Iterable[str | Source[str]],
        options: DecodingOptions | None = None,
        *,
        split: bool = True,
        first: int | None = None,
        on_done: Callable[[int], None] | None = None,
    ) -> Iterator[AnyTranslation]:
        """Translate any number of texts."""


@dataclass(frozen=True, eq=False)
class PivotTranslator:
    """Two translators, one after the other; `through` returns one for a multilingual model.

    The options of a search hold for both steps, those of n-best lists and sampling for the second step.
    """

    first: Translator
    """Translates into the pivot language."""
    second: Translator
    """Translates from the pivot language. Its terms and its ranking apply to texts of the pivot language."""

    @classmethod
    def through(cls, translator: Translator, pivot: str) -> PivotTranslator:
        """Return a translator through another language of a multilingual model, such as `en`, without terms.

        Raises:
            UserError: the model does not have this language, or it is the source or the target language.
        """
        return cls(translator.between(None, pivot), translator.between(pivot, None))

    def __post_init__(self) -> None:
        """Check that the second translator reads the language that the first one writes.

        Raises:
            UserError: it reads another one, or nothing would be translated.
        """
        first_target, second_source = self.first.languages[1], self.second.languages[0]
        if first_target and second_source and not same_language(first_target, second_source):
            fix = "Both need the same pivot language."
            raise UserError(
                f"translates into {first_target}, and {self.second.run} from {second_source}",
                file=self.first.run,
                fix=fix,
            )
        for code in self.languages:
            if code and self.pivot and same_language(code, self.pivot):
                fix = "Leave the pivot language out."
                raise UserError(f"{self.pivot} is the source or the target language itself", fix=fix)

    @property
    def languages(self) -> Languages:
        """The codes of the source and target language, where known."""
        return self.first.languages[0], self.second.languages[1]

    @property
    def pivot(self) -> str | None:
        """The code of the pivot language, if known."""
        return self.first.languages[1] or self.second.languages[0]

    @property
    def configuration(self) -> Configuration:
        """The configuration of the second step."""
        return self.second.configuration

    @property
    def engine(self) -> Engine:
        """The engine of the second step."""
        return self.second.engine

    @property
    def context(self) -> ContextOptions | None:
        """How sentences are joined to those before them in the first step; the second one reads no context."""
        return self.first.context

    @property
    def has_placeholders(self) -> bool:
        """Whether the vocabularies of both runs have the pieces that stand for placeholders."""
        return self.first.has_placeholders and self.second.has_placeholders

    @property
    def protected(self) -> tuple[str, ...]:
        """The patterns of both runs."""
        return tuple(dict.fromkeys((*self.first.protected, *self.second.protected)))

    @property
    def terms(self) -> None:
        """None: the terms of the second step are of the pivot language."""
        return

    @property
    def formality(self) -> Formality | None:
        """How translations of the second step address their reader, if it was chosen."""
        return self.second.formality

    @property
    def has_formality(self) -> bool:
        """Whether `with_formality` can choose how translations address their reader."""
        return self.second.has_formality

    def with_formality(self, formality: Formality | None) -> PivotTranslator:
        """Return a translator whose second step has a formality, as `Translator.with_formality`."""
        return replace(self, second=self.second.with_formality(formality))

    @property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer of the first step."""
        return self.first.tokenizer

    @property
    def inspector(self) -> PivotInspector:
        """Aligns words by way of the pivot language."""
        return PivotInspector(self.first, self.second)

    @property
    def quality(self) -> PivotQuality:
        """Computes confidences."""
        return PivotQuality(self.first.quality, self.second.quality)

    @overload
    def translate(
        self,
        text: str,
        options: DecodingOptions | None = None,
        *,
        split: bool = True,
        max_length: int | None = None,
        **changes: Any,
    ) -> PivotTranslation: ...
    @overload
    def translate(
        self,
        text: Iterable[str],
        options: DecodingOptions | None = None,
        *,
        split: bool = True,
        max_length: int | None = None,
        **changes: Any,
    ) -> PivotTranslations: ...
    def translate(
        self,
        text: str | Iterable[str],
        options: DecodingOptions | None = None,
        *,
        split: bool = True,
        max_length: int | None = None,
        **changes: Any,
    ) -> PivotTranslation | PivotTranslations:
        """Translate one text or several; arguments and errors are those of `Translator.translate`."""
        texts = [Source(text, max_length=max_length) for text in text_list(text)]
        options, first = call_options(self.configuration, options, changes)
        refuse_length(max_length, options)
        translations = PivotTranslations(self.stream(texts, options, split=split, first=first))
        if isinstance(text, str):
            return translations[0]
        return translations

    def live(self, policy: str = "alignatt", **options: Any) -> Any:
        """Begin a session as `Translator.live` does: the second step reads the words that the first one has written."""
        return extension_method("live")(self, policy, options)

    def stream(
        self,
        texts: Iterable[str | Source[str]],
        options: DecodingOptions | None = None,
        *,
        split: bool = True,
        first: int | None = None,
        on_done: Callable[[int], None] | None = None,
    ) -> Iterator[PivotTranslation]:
        """Translate any number of texts, in order; arguments are those of `Translator.stream`.

        `on_done` is called after the batches of the second step. The first step reads the texts before a `Source`.
        """
        refuse_one_text(texts)
        first_options = self._options_of_first(options)
        for sources in batched(map(as_source, texts), WINDOW):
            unlimited = [source._replace(max_length=None) for source in sources]
            window = list(self.first.stream(unlimited, first_options, split=split))
            pieces = self.second.pipeline.pieces_of(list(map(_sentences, window)), split=split)
            pivot_texts = [translation.text for translation in window]
            limits = [source.max_length for source in sources]
            translations = self.second.translate_pieces(
                pivot_texts, pieces, options, first=first, on_done=on_done, limits=limits
            )
            yield from map(PivotTranslation, window, translations)
            if first is not None:
                first += len(window)

    def _options_of_first(self, options: DecodingOptions | None) -> DecodingOptions:
        """Return the first run's own settings, with those changes that `options` make to the second run's."""
        changes: dict[str, object] = {"nbest": 1, "sample": False}
        defaults = self.second.configuration.decoding
        for name, value in (options or defaults).model_dump().items():
            if name not in LAST_STEP and value != getattr(defaults, name):
                changes[name] = value
        return self.first.configuration.decoding.model_copy(update=changes)

    def with_terms(self, terms: TermList | Iterable[Term | Iterable[str]], **options: Any) -> PivotTranslator:
        """Return a translator whose second step uses these terms, from the pivot language to the target language.

        Arguments and errors are those of `Translator.with_terms`.
        """
        return PivotTranslator(self.first, self.second.with_terms(terms, **options))


class PivotInspector(NamedTuple):
    """Aligns words by way of the pivot language."""

    first: Translator
    second: Translator

    @property
    def has_cross_attention(self) -> bool:
        """Whether both models have cross-attention, without which there is no alignment."""
        return self.first.inspector.has_cross_attention and self.second.inspector.has_cross_attention

    def align(self, source: str, target: str) -> list[tuple[int, int]]:
        """Return the word alignment of a text and a translation from elsewhere, by way of the first step's own text.

        It is empty if a text is too long for a model, or a model has no attention.
        """
        if not self.has_cross_attention:
            return []
        pivot = self.first.translate(source)
        return composed_alignment(pivot.alignment, self.second.inspector.align(pivot.text, target))


class PivotQuality(NamedTuple):
    """Computes the confidences of both steps."""

    first: QualityEstimation
    second: QualityEstimation

    @property
    def has_confidence(self) -> bool:
        """Whether translations have a confidence: both runs have a quality estimator."""
        return self.first.has_confidence and self.second.has_confidence

    def assessed(self, translations: Iterable[PivotTranslation]) -> Iterator[PivotTranslation]:
        """Yield translations whose `confidence` was computed together, not each when it is first read."""
        batch = list(translations)
        if self.has_confidence:
            # Each list of confidences is stored in the translations themselves.
            list(self.first.assessed([translation.first for translation in batch]))
            list(self.second.assessed([translation.second for translation in batch]))
        yield from batch


def _sentences(translation: Translation) -> list[tuple[str, str]]:
    """Return the translated sentences of a text, each with the white space after it, except empty ones."""
    targets = iter(translation.sentences)
    sentences = []
    for piece in translation.pieces:
        text = piece.text  # a piece without words is copied
        if piece.ids:
            _, text = next(targets)
        if text.strip():
            sentences.append((text, piece.after))
    return sentences


def composed(first: Links, second: Links) -> list[tuple[int, int, float]]:
    """Return the links between source and target words that two steps make, weight(s, t) = sum_p w1(s, p) w2(p, t).

    That is the product of the two matrices of weights. Wu and Wang (2007, P07-1108) combine the phrase tables of two
    language pairs in this way: a target word depends on the source words only by way of the pivot words.

    Args:
        first: links between words of the source and of the pivot language.
        second: links between words of the pivot language and of the target.
    """
    from_pivot: dict[int, list[tuple[int, float]]] = defaultdict(list)
    for p, t, weight in second:
        from_pivot[p].append((t, weight))
    weights: dict[tuple[int, int], float] = defaultdict(float)
    for s, p, weight in first:
        for t, second_weight in from_pivot[p]:
            weights[s, t] += weight * second_weight
    return [(s, t, weight) for (s, t), weight in sorted(weights.items())]


def composed_alignment(first: Iterable[tuple[int, int]], second: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the pairs of source and target words that are linked to the same pivot word."""
    links = composed(certain_links(first), certain_links(second))
    return [(s, t) for s, t, _ in links]


class FirstStep(NamedTuple):
    """The step into the pivot language."""

    run: Path
    """The run folder; that of the second step if one multilingual model does both."""
    configuration: Configuration
    """The configuration of the run, for the languages of this step."""

    def open(
        self, second: Translator, device: str = "auto", engine: EngineName = "auto", threads: int | None = None
    ) -> Translator:
        """Return the translator of this step; that of the second step is loaded."""
        if self.run == Path(second.run):
            return second.between(*self.configuration.data.languages)
        return Translator.open(RunFolder(self.run), self.configuration, device, engine, threads=threads)


def steps_through(
    pivot: str, run: Path, configuration: Configuration, languages: Languages = (None, None)
) -> tuple[FirstStep, Configuration]:
    """Return the first step, and the configuration of the second step.

    Args:
        pivot: a run that translates into the pivot language, or a language of a multilingual run.
        run: the run folder of the second step.
        configuration: its configuration.
        languages: the source and the target language, if multilingual runs do not name them.

    Raises:
        UserError: `pivot` is neither a run nor a language, or the runs do not have these languages.
    """
    source, target = languages
    codes = configuration.data.tokenizer.languages
    language = find_code(pivot, codes) if codes else None
    if language:
        direct = configuration.between(source, target)
        return FirstStep(run, direct.between(None, language)), direct.between(language, None)
    folder = RunFolder(resolve_run(pivot))
    if not folder.config_file.exists():
        what = f"{pivot} is neither a run nor a language of {run}"
        fix = "Give `pivot` a run that translates into the language that RUN reads."
        raise UserError(what, fix=fix)
    first_configuration = folder.configuration("text")
    second_source = configuration.data.languages[0]
    if first_configuration.data.tokenizer.languages and not codes:
        first_step = FirstStep(folder.path, first_configuration.between(source, second_source))
        return first_step, configuration.between(None, target)
    first_configuration = first_configuration.between(source, None)
    first_target = first_configuration.data.languages[1] if codes else None
    return FirstStep(folder.path, first_configuration), configuration.between(first_target, target)
