"""`Translator.load(run).translate(text)`. PyTorch is imported when it is first needed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from translucid.api.confidence_features import ConfidenceFeatures
from translucid.api.examiner import Examiner
from translucid.api.heads import ablated
from translucid.api.loaded_run import LoadedRun
from translucid.api.translation import (
    TextCounter,
    Translation,
    Translations,
    call_options,
    refuse_one_text,
    text_list,
    word_weights,
)
from translucid.data.document_context import ContextOptions
from translucid.data.text_pipeline import Piece, TextPipeline, TextStep
from translucid.decoding.decoding_options import DecodingOptions
from translucid.engines.choosing import EngineName
from translucid.engines.name_stand_ins import NameStandIns, Search
from translucid.engines.stages import Ranking, SearchStages
from translucid.engines.term_constraint import TermConstraint, refuse_mode
from translucid.ground.iteration import batched
from translucid.interop.run_resolution import resolve_run
from translucid.runs.configuration import Configuration
from translucid.runs.run_folder import RunFolder
from translucid.terminology.marking import TermAnnotation
from translucid.terminology.matching import Links, Match, TermList, term_list, terms_in
from translucid.terminology.term import Term, TermsMode

if TYPE_CHECKING:
    from translucid.api.pivot_translator import PivotTranslator
    from translucid.engines.choosing import Engine

WINDOW = 4096
"""The number of lines that are sorted by length and translated together; it bounds the memory of a long job."""


@dataclass(frozen=True, eq=False, repr=False)
class Translator(Examiner):
    """A trained model, its tokenizer and its settings; load one with `Translator.load`.

    A translator never changes. `between`, `with_terms`, `with_adapter` and `ablated` return others, which share the
    loaded run.
    """

    engine: Engine
    """The engine that searches for translations."""
    terms: TermList | None = None
    """The terms that translations have to use, if there are any."""
    terms_mode: TermsMode = "auto"
    ranking: Ranking | None = None
    """The ranking that reorders hypotheses, if there is one."""
    counter: TextCounter = field(default_factory=TextCounter, init=False)

    @property
    def stages(self) -> SearchStages:
        """The stages of a translation."""
        constraints = (self.constraint,) if self.constraint else ()
        return SearchStages(self.pipeline, self.engine, constraints, self.ranking)

    @cached_property
    def constraint(self) -> TermConstraint | None:
        """The constraint that enforces the terms, unless they are only annotated for the model."""
        if self.terms is None or self.terms_mode == "annotate":
            return None
        return self._constraint(self.terms, annotated=self.tokenizer.marks_terms and self.terms_mode != "constrain")

    def _constraint(self, terms: TermList, *, annotated: bool = False) -> TermConstraint:
        attention = None
        if self.can_look():
            attention = partial(word_weights, self, options=self.configuration.alignment.of(has_layer=False))
        return TermConstraint(lambda: self.torch_engine, terms, self.tokenizer, attention, annotated=annotated)

    def terms_in(self, text: str) -> list[Match]:
        """Return the terms in a text, in order."""
        return terms_in(self.terms, text) if self.terms else []

    def missing_terms(self, source: str, target: str) -> list[str]:
        """Return a warning for each term of a text that a translation from elsewhere, such as a memory, lacks."""
        uses = self.terms.uses(self.terms_in(source), target) if self.terms else []
        return [use.warning for use in uses if use.outcome == "missing"]

    def with_term_links(self, links: Links, source: str, target: str) -> list[tuple[int, int, float]]:
        """Return the word links of a text and its translation, with the known links of its terms in their place."""
        return self.terms.with_links(links, source, target) if self.terms else list(links)

    def with_steps(self, *steps: TextStep) -> Translator:
        """Return a translator with the same model and further steps, which annotate the text for it."""
        return replace(self, pipeline=self.pipeline.with_steps(*steps))

    def ranked(self, ranking: Ranking | None) -> Translator:
        """Return a translator with the same model and another ranking of its hypotheses."""
        return replace(self, ranking=ranking)

    def between(self, source: str | None, target: str | None) -> Translator:
        """Return a translator between two other languages of a multilingual model, with the same weights.

        Terms and a ranking belong to a pair of languages, and are dropped.

        Args:
            source: the code of the source language; that of this translator by default.
            target: the code of the target language; that of this translator by default.

        Raises:
            UserError: the model does not have these languages.
        """
        configuration = self.configuration.between(source, target)
        languages = configuration.data.languages
        tokenizer = self.tokenizer.between(*languages, configuration.data.tokenizer)
        if languages == self.languages:
            return self
        pipeline = TextPipeline(
            tokenizer, self.longest, languages[0], protected=self.protected, context=self.pipeline.context
        )
        return Translator(self.loaded, configuration, pipeline, self.loaded.engine_for(languages, tokenizer))

    def through(self, pivot: str) -> PivotTranslator:
        """Return a translator through another language of a multilingual model, such as `en`, without terms.

        Raises:
            UserError: the model does not have this language, or it is the source or the target language.
        """
        from translucid.api.pivot_translator import PivotTranslator

        return PivotTranslator(self.between(None, pivot), self.between(pivot, None))

    def without_context(self) -> Translator:
        """Return a translator that reads each sentence by itself, with the same model."""
        return replace(self, pipeline=replace(self.pipeline, context=None))

    def with_adapter(self, adapter: str | Path | None) -> Translator:
        """Return a translator with another adapter of the run, or with none; the model stays loaded.

        `adapter`: its file, the run that learned it, or its name in the run's folder `adapters`.

        Raises:
            UserError: there is no such adapter, it belongs to another model, or several runs are averaged.
        """
        loaded = self.loaded.with_adapter(adapter)
        return replace(self, loaded=loaded, engine=loaded.engine_for(self.languages, self.tokenizer))

    def ablated(self, *heads: str, mean: Sequence[tuple[str, str]] = ()) -> Translator:
        """Return a translator with these heads off, and no others, by the PyTorch engine; the model stays loaded.

        Files that were fitted to the model (confidence, alignment layer) hold for all heads, and are not used.

        Args:
            heads: names such as `encoder.1.self.head.2` (see `attention.points`); without any, all heads are on again.
            mean: pairs of texts; the mean output of each head over them, not 0, replaces its output. Pairs that are too
                long for the model are left out.

        Raises:
            UserError: there is no such head, several runs are averaged, or the engine is CTranslate2.
        """
        return ablated(self, heads, mean)

    def with_terms(
        self,
        terms: str | Path | TermList | Iterable[Term | Iterable[str]],
        *,
        inflect: bool = False,
        mode: TermsMode = "auto",
    ) -> Translator:
        """Return a translator that uses these terms, and no others, with the same model; see docs/terminology.md.

        Args:
            terms: a file of terms, or the terms, each a `Term` or (source, target, ...) as in the lines of a file.
            inflect: whether inflected forms of the words are terms too, in the source and in the translation.
            mode: whether to annotate terms for the model, to constrain the search, or both; see `TermsMode`.

        Raises:
            UserError: the terms are damaged, their languages can't be inflected, or the model reads no annotations.
        """
        tokenizer = self.tokenizer
        refuse_mode(mode, tokenizer)
        loaded_terms = term_list(terms, self.languages, inflect, read_by_model=tokenizer.marks_terms)
        steps = [step for step in self.pipeline.steps if not isinstance(step, TermAnnotation)]
        if tokenizer.marks_terms and mode != "constrain":
            # First, as terms are annotated only in a text that no other step has changed.
            steps.insert(0, TermAnnotation(loaded_terms, tokenizer))
        return replace(self, pipeline=replace(self.pipeline, steps=tuple(steps)), terms=loaded_terms, terms_mode=mode)

    @classmethod
    def load(
        cls,
        run: str | Path,
        device: str = "auto",
        engine: EngineName = "auto",
        *,
        source: str | None = None,
        target: str | None = None,
        others: Sequence[str | Path] = (),
        threads: int | None = None,
        adapter: str | Path | None = None,
    ) -> Translator:
        """Load a run folder. Settings of the process do not change.

        A program that does little else is faster after `translucid.kernels.devices.configure_process()`.

        Args:
            run: a folder written by `translucid train` or `translucid import`, or a Hugging Face folder, which is
                imported once.
            device: auto, cpu, cuda, cuda:1 or mps.
            engine: `torch`, `ctranslate2`, or `auto` for the faster one of those that support the model.
            source: the code of the source language, for a multilingual model: its own or the usual one, such as `es`;
                as the run says by default.
            target: the code of the target language.
            others: runs whose probabilities are averaged with those of `run` at each step, by the PyTorch engine.
            threads: CTranslate2's threads, one for each core by default; if given, results are the same for any number.
            adapter: an adapter of the run; see `with_adapter`.

        Raises:
            UserError: this is no run, the run is damaged, or the engine does not support its model there; or another
                run has another vocabulary or direction.
        """
        folder = RunFolder(resolve_run(run))
        configuration = folder.configuration().between(source, target)
        resolved = list(map(resolve_run, others))
        return cls.open(folder, configuration, device, engine, others=resolved, threads=threads, adapter=adapter)

    @classmethod
    def open(
        cls,
        folder: RunFolder,
        configuration: Configuration,
        device: str = "auto",
        engine: EngineName = "auto",
        *,
        others: Sequence[str | Path] = (),
        threads: int | None = None,
        adapter: str | Path | None = None,
    ) -> Translator:
        """Load a run folder whose configuration has been read; see `load`."""
        configuration.refuse_other_input("text", folder.path)
        loaded = LoadedRun.load(folder, configuration, device, engine, others, threads).with_adapter(adapter)
        longest = loaded.ensemble.longest
        context = ContextOptions.of(configuration.data.context, loaded.tokenizer, longest)
        protected = tuple(configuration.data.protected)
        language = configuration.data.languages[0]
        pipeline = TextPipeline(loaded.tokenizer, longest, language, protected=protected, context=context)
        return cls(loaded, configuration, pipeline, loaded.engine)

    @overload
    def translate(
        self,
        text: str,
        options: DecodingOptions | None = None,
        *,
        split: bool = True,
        context: str | Sequence[str] | None = None,
        **changes: Any,
    ) -> Translation: ...
    @overload
    def translate(
        self,
        text: Iterable[str],
        options: DecodingOptions | None = None,
        *,
        split: bool = True,
        context: str | Sequence[str] | None = None,
        **changes: Any,
    ) -> Translations: ...
    def translate(
        self,
        text: str | Iterable[str],
        options: DecodingOptions | None = None,
        *,
        split: bool = True,
        context: str | Sequence[str] | None = None,
        **changes: Any,
    ) -> Translation | Translations:
        """Translate one text or several; an empty text gives an empty translation.

        Args:
            text: one text, or any number of texts, which give a list.
            options: how to search; the run's own settings by default.
            split: whether to split texts into sentences; see `stream`.
            context: the text before each of the texts, or the texts, in order, for a run with data.context. It is read
                and not translated.
            changes: single options by name, such as `beam=5` or `sample=True`. Each call of sampling gives new
                translations; with a `seed` it starts again.

        Raises:
            TypeError: `text` is neither a text nor texts; bytes are not.
            UserError: an option has a wrong name or value, or the run was trained without context.
        """
        texts = text_list(text)
        before = None
        if context is not None:
            before = [text_list(context)] * len(texts)
        options, first = call_options(self.configuration, options, changes)
        translations = Translations(self.stream(texts, options, split=split, first=first, before=before))
        if isinstance(text, str):
            return translations[0]
        return translations

    def stream(
        self,
        texts: Iterable[str],
        options: DecodingOptions | None = None,
        *,
        split: bool = True,
        first: int | None = None,
        on_done: Callable[[int], None] | None = None,
        before: Iterable[Sequence[str]] | None = None,
    ) -> Iterator[Translation]:
        """Translate any number of texts, in order, with memory that does not grow with their number.

        A run with data.context reads with each sentence those before it, of the same text and of the texts `before` it.

        Args:
            texts: lines; each gives one translation.
            options: how to search; the run's own settings by default.
            split: whether to split each text into sentences, translate them separately and join them again, and to copy
                text that needs no translation, such as a web address. Otherwise each text goes to the model unchanged,
                as test sets require, and only a text that is too long is split.
            first: the number of the first text, on which sampling depends together with the seed. By default, the
                numbers continue those of the last call.
            on_done: called with the number of finished pieces after each batch.
            before: for each text, the texts before it in its document (`data.document_context.lines_before`).

        Raises:
            UserError: texts before others were given, and the run was trained without context.
        """
        refuse_one_text(texts)
        if before is not None:
            self.refuse_without_context()
        contexts = None if before is None else iter(before)
        for window in batched(texts, WINDOW):
            window_contexts = None if contexts is None else list(islice(contexts, len(window)))
            pieces = self.pipeline.pieces(window, split=split, before=window_contexts)
            yield from self.translate_pieces(window, pieces, options, first=first, on_done=on_done)
            if first is not None:
                first += len(window)

    def translate_pieces(
        self,
        texts: Sequence[str],
        pieces: list[list[Piece]],
        options: DecodingOptions | None = None,
        *,
        first: int | None = None,
        on_done: Callable[[int], None] | None = None,
    ) -> Iterator[Translation]:
        """Translate texts that have been cut into `pieces`, together; the other arguments are those of `stream`."""
        options = options or self.configuration.decoding
        number = self.counter.next_number if first is None else first
        search = partial(self.stages.search, options=options, first=number, on_done=on_done)
        if self.terms and not options.sample:
            search_again = partial(self._search_again, options, number)
            stand_ins = NameStandIns(self.tokenizer, self.terms, self.languages[1])
            pieces, nbest_lists = stand_ins.search(pieces, search, search_again)
        else:
            nbest_lists = search(pieces)
        if first is None:
            self.counter.next_number = number + len(texts)
        for text, text_pieces, hypotheses in zip(texts, pieces, nbest_lists, strict=True):
            yield Translation.of(text, text_pieces, hypotheses, options.nbest, self)

    def _search_again(self, options: DecodingOptions, first: int, terms: TermList | None) -> Search:
        """Return a search with the options of `stream`, also constrained by these terms if there are any."""
        stages = self.stages
        if terms:
            stages = stages.constrained(self._constraint(terms))
        return partial(stages.search, options=options, first=first)

    @property
    def observer(self) -> ConfidenceFeatures:
        """Computes features of translations."""
        return ConfidenceFeatures(self.stages, lambda: self.torch_engine)

    def token_log_probabilities(self, translation: Translation) -> list[list[tuple[str, float]]]:
        """Return the target pieces of each translation in the n-best list, each with its log-probability in nats.

        The pieces of the text's sentences follow one another, each sentence's end token included, but no language
        token. The figures are the model's own, by forced decoding.
        """
        return self.observer.tokens([alternative.hypotheses for alternative in translation.nbest], translation.pieces)

    def confidences(self, translations: Sequence[Translation]) -> list[float | None]:
        """Return the probability that each translation is good; for several sentences, that of the worst.

        It is None without an `estimator`, and where nothing was translated. One call for many translations is faster.
        """
        if not (estimator := self.estimator):
            return [None] * len(translations)
        return self.observer.confidences(estimator, [translation.parts for translation in translations])

    def assessed(self, translations: Iterable[Translation]) -> Iterator[Translation]:
        """Yield translations with their `confidence`, computed together, not each when it is first read."""
        batch = list(translations)
        for translation, confidence in zip(batch, self.confidences(batch), strict=True):
            yield translation.assessed(confidence)

    def word_probabilities(self, translations: Sequence[Translation]) -> list[list[tuple[str, float]]]:
        """Return the words of each translation, each with the product of the probabilities of its pieces.

        The probability of a piece is that given the source and all pieces before it. Copied text has probability 1.
        """
        return self.observer.words([(translation.pieces, translation.parts) for translation in translations])
