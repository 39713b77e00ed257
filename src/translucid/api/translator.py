"""`Translator.load(run).translate(text)`. PyTorch is imported when it is first needed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, overload

from bitext.documents.document import RetrievedWord
from bitext.languages import Languages
from translucid.api.inspector import Inspector, refuse_without_context
from translucid.api.loaded_run import LoadedRun
from translucid.api.quality import QualityEstimation
from translucid.api.translation import (
    TextCounter,
    Translation,
    Translations,
    call_options,
    refuse_one_text,
    text_list,
)
from translucid.data.document_context import ContextOptions, Source, as_source
from translucid.data.formality import FORMALITIES, address_loss, languages_with_rules, rules_of
from translucid.data.text_pipeline import Piece, TextPipeline, TextStep
from translucid.decoding.decoding_options import DecodingOptions
from translucid.decoding.hypothesis import Hypothesis
from translucid.engines.choosing import Engine, EngineName
from translucid.engines.length_limits import LongText, long_text, refuse_length
from translucid.engines.name_stand_ins import NameStandIns, Search
from translucid.engines.sense_choice import SenseChooser
from translucid.engines.stages import Part, Ranking, SearchStages
from translucid.engines.term_constraint import TermConstraint, refuse_mode
from translucid.ground.errors import UserError
from translucid.ground.iteration import batched
from translucid.ground.special import Formality
from translucid.inspection.ablation import Ablation, mean_outputs
from translucid.inspection.intervention import Intervention
from translucid.interop.run_resolution import resolve_run
from translucid.models.kinds import extension_method
from translucid.runs.configuration import Configuration
from translucid.runs.run_folder import RunFolder
from translucid.terminology.glossary import Term, TermsMode
from translucid.terminology.marking import TermAnnotation
from translucid.terminology.matching import TermList, term_list

if TYPE_CHECKING:
    import torch

    from bitext.memory.translation_memory import TranslationMemory
    from translucid.data.tokenizing.tokenizer import Tokenizer
    from translucid.decoding.search import TorchEngine
    from translucid.models.protocol import SequenceModel

WINDOW = 4096
"""The number of lines that are sorted by length and translated together; it bounds the memory of a long job."""

_INSPECTOR = "align forced_decoding forced_scores has_contributions heads inspect inspect_all lens decoder_lens patch"
_QUALITY = "assessed confidences estimator has_confidence word_probabilities"
MOVED = {
    **{name: f"inspector.{name}" for name in _INSPECTOR.split()},
    **{name: f"quality.{name}" for name in _QUALITY.split()},
    "score": "inspector.score",
    "trace": "inspector.trace",
    "can_look": "inspector.has_cross_attention",
    "longest": "pipeline.longest",
    "observer": "quality",
    "quality_checks": "quality.checks",
    "ranked": "dataclasses.replace(translator, ranking=...)",
    "token_log_probabilities": "translation.token_log_probabilities",
    "through": "PivotTranslator.through(translator, pivot)",
}
"""The places of the methods and properties that a translator had before version 0.2, for the message of an error."""


class RetrievalEngine(Engine, Protocol):
    """An engine that retrieves from a memory in the decoder."""

    memory: TranslationMemory

    @property
    def torch_engine(self) -> TorchEngine:
        """The PyTorch engine with retrieval."""

    def words(self, pieces: Sequence[Piece], parts: Sequence[Part]) -> list[RetrievedWord]:
        """Return the words of a translation that the memory has changed or supported.

        `parts`: those of its pieces that were translated, with their translations.
        """


class Retrieval(Protocol):
    """A memory from which a translator retrieves in the decoder."""

    def engine(self, translator: Translator) -> RetrievalEngine:
        """Return the engine for a translator."""


@dataclass(frozen=True, eq=False, repr=False)
class Translator:
    """A trained model, its tokenizer and its settings; load one with `Translator.load`.

    `inspector` looks inside the model, and `quality` estimates how good translations are.

    A translator never changes. `between`, `with_formality`, `with_terms`, `with_knn`, `with_adapter`,
    `with_interventions` and `ablated` return others, which share the loaded run.
    """

    loaded: LoadedRun
    """The model, and the files fitted to it."""
    configuration: Configuration
    """The configuration of the run, for the languages of this translator."""
    pipeline: TextPipeline
    """Converts texts to the model's input, and its output to texts."""
    engine: Engine
    """The engine that searches for translations."""
    terms: TermList | None = None
    """The terms that translations have to use, if there are any."""
    terms_mode: TermsMode = "auto"
    ranking: Ranking | None = None
    """The ranking that reorders hypotheses, if there is one."""
    retrieval: Retrieval | None = None
    """The memory from which the search retrieves in the decoder, if there is one."""
    _counter: TextCounter = field(default_factory=TextCounter, init=False)

    @property
    def inspector(self) -> Inspector:
        """Looks inside the model: attention, alignment, lenses, patching."""
        return Inspector(self)

    @property
    def quality(self) -> QualityEstimation:
        """Estimates the quality of translations without references."""
        return QualityEstimation(self)

    @property
    def run(self) -> str:
        """The run folder."""
        return str(self.loaded.folder.path)

    @property
    def languages(self) -> Languages:
        """The codes of the source and target language, where known."""
        return self.configuration.data.languages

    @property
    def tokenizer(self) -> Tokenizer:
        """The model's tokenizer, for its languages."""
        return self.pipeline.tokenizer

    @cached_property
    def torch_engine(self) -> TorchEngine:
        """The PyTorch engine, which has the model."""
        return self.loaded.torch_engine_for(self.languages, self.tokenizer)

    @property
    def model(self) -> SequenceModel:
        """The model, in evaluation mode."""
        return self.torch_engine.model

    @property
    def device(self) -> torch.device:
        """The device of the model."""
        return self.torch_engine.device

    @property
    def context(self) -> ContextOptions | None:
        """How sentences are joined to those before them, if the model has learned that."""
        return self.pipeline.context

    @property
    def protected(self) -> tuple[str, ...]:
        """The patterns of parts that a translation must keep (`data.protected`)."""
        return tuple(self.configuration.data.protected)

    @property
    def has_placeholders(self) -> bool:
        """Whether the vocabularies have the pieces that stand for placeholders."""
        return self.tokenizer.has_placeholders

    @property
    def formality(self) -> Formality | None:
        """How translations address their reader, if `with_formality` has chosen."""
        return self.tokenizer.formality

    @property
    def has_formality(self) -> bool:
        """Whether `with_formality` can choose how translations address their reader."""
        return self.tokenizer.has_formality and not self._lacks_formality_of_target

    @property
    def _lacks_formality_of_target(self) -> bool:
        """Whether the model is multilingual, and no rules have labeled the formality of its target language."""
        return bool(self.configuration.data.tokenizer.languages) and rules_of(self.languages[1]) is None

    @property
    def stages(self) -> SearchStages:
        """The stages of a translation."""
        constraints = (self._term_constraint,) if self._term_constraint else ()
        engine = self.retrieval_engine if self.retrieval else self.engine
        address = partial(address_loss, self.formality, self.languages) if self.formality else None
        return SearchStages(self.pipeline, engine, constraints, self.ranking, address)

    @cached_property
    def retrieval_engine(self) -> RetrievalEngine:
        """The engine that retrieves from a memory, if there is one."""
        assert self.retrieval
        return self.retrieval.engine(self)

    @cached_property
    def _term_constraint(self) -> TermConstraint | None:
        """The constraint that enforces the terms, unless they are only annotated for the model."""
        if self.terms is None or self.terms_mode == "annotate":
            return None
        return self._constraint(self.terms, annotated=self.tokenizer.marks_terms and self.terms_mode != "constrain")

    def _constraint(self, terms: TermList, *, annotated: bool = False) -> TermConstraint:
        attention = None
        if self.inspector.has_cross_attention:
            options = self.configuration.alignment.of(has_layer=False)
            attention = partial(self.inspector.word_weights, options=options)

        return TermConstraint(self._searching_torch_engine, terms, self.tokenizer, attention, annotated=annotated)

    def with_steps(self, *steps: TextStep) -> Translator:
        """Return a translator with the same model and further steps, which annotate the text for it."""
        return replace(self, pipeline=self.pipeline.with_steps(*steps))

    def between(self, source: str | None, target: str | None) -> Translator:
        """Return a translator between two other languages of a multilingual model, with the same weights.

        Terms, a ranking, a memory and a formality belong to a pair of languages, and are dropped.

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
            tokenizer, self.pipeline.longest, languages[0], protected=self.protected, context=self.pipeline.context
        )
        return Translator(self.loaded, configuration, pipeline, self.loaded.engine_for(languages, tokenizer))

    def with_formality(self, formality: Formality | None) -> Translator:
        """Return a translator whose translations address their reader so, with the same model; see docs/formality.md.

        Args:
            formality: `formal` (*usted*, *Sie*, *vous*), `informal` (*tú*, *du*, *tu*), or None for no choice.

        Raises:
            UserError: there is no such formality, or the run was trained without data.formality.
        """
        if formality not in (None, *FORMALITIES):
            raise UserError(f"there is no formality {formality!r}", fix=f"Give {' or '.join(FORMALITIES)}.")
        if formality and not self.tokenizer.has_formality:
            what = f"was trained without data.formality, so it can't be {formality} on request"
            fix = "Leave `formality` out, or fine-tune it with data.formality=0.5 (docs/formality.md)."
            raise UserError(what, file=self.run, fix=fix)
        if formality and self._lacks_formality_of_target:
            codes = ", ".join(languages_with_rules())
            fix = f"Leave `formality` out; it is for {codes}."
            raise UserError(f"has not learned the formality of {self.languages[1]}", file=self.run, fix=fix)
        tokenizer = self.tokenizer.with_formality(formality)
        if tokenizer is self.tokenizer:
            return self
        return replace(self, pipeline=replace(self.pipeline, tokenizer=tokenizer))

    def with_adapter(self, adapter: str | Path | None) -> Translator:
        """Return a translator with another adapter of the run, or with none; the model stays loaded.

        `adapter`: its file, the run that learned it, or its name in the run's folder `adapters`.

        Raises:
            UserError: there is no such adapter, it belongs to another model, or several runs are averaged.
        """
        return self._with_loaded(self.loaded.with_adapter(adapter))

    def ablated(self, *heads: str, mean: Sequence[tuple[str, str]] = ()) -> Translator:
        """Return a translator with these heads off, and no others, by the PyTorch engine; the model stays loaded.

        Other interventions stay. Files that were fitted to the model (confidence, alignment layer) hold for all heads,
        and are not used.

        Args:
            heads: names such as `encoder.1.self.head.2` (see `attention.points`); without any, all heads are on again.
            mean: pairs of texts; the mean output of each head over them, not 0, replaces its output. Pairs that are too
                long for the model are left out.

        Raises:
            UserError: there is no such head, several runs are averaged, or the engine is CTranslate2.
        """
        others = [change for change in self.loaded.interventions if not isinstance(change, Ablation)]
        if not heads:
            return self.with_interventions(*others)
        off = self.with_interventions(*others, Ablation(heads))
        if not mean:
            return off
        engine = self.loaded.with_interventions(*others).torch_engine
        ids = self.pipeline.short_pairs(mean)
        means = mean_outputs(engine.model, heads, ids, engine.device)
        return self.with_interventions(*others, Ablation(heads, means))

    def with_interventions(self, *interventions: Intervention) -> Translator:
        """Return a translator with these interventions and no others, by the PyTorch engine; the model stays loaded.

        Raises:
            UserError: the model lacks what they change, several runs are averaged, or the engine is CTranslate2.
        """
        return self._with_loaded(self.loaded.with_interventions(*interventions))

    def with_knn(self, memory: TranslationMemory | str | Path, **options: float) -> Translator:
        """Return a translator that retrieves from a memory in the decoder (kNN-MT); see docs/memory.md.

        The tokens of the at most 16 most similar segments raise the probability of the same tokens where the decoder is
        in a similar state. Each translation lists the words that were `retrieved`.

        Args:
            memory: a memory, or the file of a memory or a corpus. Later changes apply at once.
            options: `bandwidth` T, `reach` R and `weight` λ₀ of `retrieval.mixture`.

        Raises:
            UserError: the memory can't be read, an option is out of range, several runs are averaged, or a fast engine
                is required.
        """
        translator: Translator = extension_method("with_knn")(self, memory, **options)
        return translator

    def _with_loaded(self, loaded: LoadedRun) -> Translator:
        return replace(self, loaded=loaded, engine=loaded.engine_for(self.languages, self.tokenizer))

    def with_terms(
        self,
        terms: str | Path | TermList | Iterable[Term | Iterable[str]],
        *,
        inflect: bool = False,
        mode: TermsMode = "auto",
        domain: str | None = None,
    ) -> Translator:
        """Return a translator that uses these terms, and no others, with the same model; see docs/terminology.md.

        Args:
            terms: a file of terms, or the terms, each a `Term` or (source, target, ...) as in the lines of a file.
            inflect: whether inflected forms of the words are terms too, in the source and in the translation.
            mode: whether to annotate terms for the model, to constrain the search, or both; see `TermsMode`.
            domain: the subject field of the texts, if the terms name theirs: others are left out.

        Raises:
            UserError: the terms are damaged, their languages can't be inflected, the model reads no annotations, or no
                term is of the domain.
        """
        tokenizer = self.tokenizer
        refuse_mode(mode, tokenizer)
        loaded_terms = term_list(terms, self.languages, inflect, read_by_model=tokenizer.marks_terms, domain=domain)
        if loaded_terms.has_conditions:
            chooser = SenseChooser(lambda: self.torch_engine, tokenizer, self.pipeline.longest)
            loaded_terms = loaded_terms.choosing(chooser)
        steps = [step for step in self.pipeline.steps if not isinstance(step, TermAnnotation)]
        if tokenizer.marks_terms and mode != "constrain":
            # First, as terms are annotated only in a text that no other step has changed.
            steps.insert(0, TermAnnotation(loaded_terms, tokenizer))
        return replace(self, pipeline=replace(self.pipeline, steps=tuple(steps)), terms=loaded_terms, terms_mode=mode)

    def with_senses(self, targets: Mapping[str, str]) -> Translator:
        """Return a translator with senses of terms that a person has chosen: `{"bank": "orilla"}`.

        Args:
            targets: a target of the sense, by the term as it is in the text.
        """
        if self.terms is None:
            return self
        terms = self.terms.with_senses(targets)
        steps = list(self.pipeline.steps)
        for index, step in enumerate(steps):
            if isinstance(step, TermAnnotation):
                steps[index] = TermAnnotation(terms, self.tokenizer)
        return replace(self, pipeline=replace(self.pipeline, steps=tuple(steps)), terms=terms)

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
        max_length: int | None = None,
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
        max_length: int | None = None,
        **changes: Any,
    ) -> Translations: ...
    def translate(
        self,
        text: str | Iterable[str],
        options: DecodingOptions | None = None,
        *,
        split: bool = True,
        context: str | Sequence[str] | None = None,
        max_length: int | None = None,
        **changes: Any,
    ) -> Translation | Translations:
        """Translate one text or several; an empty text gives an empty translation.

        Args:
            text: one text, or any number of texts, which give a list.
            options: how to search; the run's own settings by default.
            split: whether to split texts into sentences; see `stream`.
            context: the text before each of the texts, or the texts, in order, for a run with data.context. It is read
                and not translated.
            max_length: the largest number of characters of each translation (docs/translating.md). If none fits, the
                translation is the shortest one found, with a warning.
            changes: single options by name, such as `beam=5` or `sample=True`. Each call of sampling gives new
                translations; with a `seed` it starts again.

        Raises:
            TypeError: `text` is neither a text nor texts; bytes are not.
            UserError: an option has a wrong name or value, the run was trained without context, or samples are to have
                a largest length.
        """
        before: tuple[str, ...] = ()
        if context is not None:
            refuse_without_context(self)
            before = tuple(text_list(context))
        sources = [Source(source, before, max_length) for source in text_list(text)]
        options, first = call_options(self.configuration, options, changes)
        refuse_length(max_length, options)
        translations = Translations(self.stream(sources, options, split=split, first=first))
        if isinstance(text, str):
            return translations[0]
        return translations

    def live(self, policy: str = "alignatt", **options: Any) -> Any:
        """Begin a session that translates text while it arrives; see docs/live.md.

        Args:
            policy: when to write: `alignatt`, `edatt`, `wait-k`, `agreement` or `whole`.
            options: others by name, such as `lag=2`; see `LiveOptions`.

        Raises:
            UserError: an option has a wrong name or value, or the translator has something that can't be used live,
                such as an engine that returns no attention.
        """
        return extension_method("live")(self, policy, options)

    def stream(
        self,
        texts: Iterable[str | Source[str]],
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
            texts: lines, or sources with the texts before them; each gives one translation.
            options: how to search; the run's own settings by default.
            split: whether to split each text into sentences, translate them separately and join them again, and to copy
                text that needs no translation, such as a web address. Otherwise each text goes to the model unchanged,
                as test sets require, and only a text that is too long is split.
            first: the number of the first text, on which sampling depends together with the seed. By default, the
                numbers continue those of the last call.
            on_done: called with the number of finished texts after each batch.
            before: for each text, the texts before it in its document (`data.document_context.lines_before`).

        Raises:
            UserError: there are texts before others, and the run was trained without context.
        """
        refuse_one_text(texts)
        if before is not None:
            refuse_without_context(self)
            texts = _in_context(texts, before)
        for window in batched(map(as_source, texts), WINDOW):
            if any(source.before for source in window):
                refuse_without_context(self)
            pieces = self.pipeline.pieces(window, split=split)
            window_texts = [source.text for source in window]
            limits = [source.max_length for source in window]
            yield from self.translate_pieces(window_texts, pieces, options, first=first, on_done=on_done, limits=limits)
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
        limits: Sequence[int | None] = (),
    ) -> Iterator[Translation]:
        """Translate texts that have been cut into `pieces`, together.

        `limits`: the largest number of characters of each translation, if any; other arguments are those of `stream`.
        """
        options = options or self.configuration.decoding
        number = self._counter.next_number if first is None else first
        search = partial(self.stages.search, options=options, first=number, on_done=on_done)
        if self.terms and not options.sample:
            search_again = partial(self._search_again, options, number)
            stand_ins = NameStandIns(self.tokenizer, self.terms, self.languages[1])
            pieces, nbest_lists = stand_ins.search(pieces, search, search_again)
        else:
            nbest_lists = search(pieces)
        if first is None:
            self._counter.next_number = number + len(texts)
        limits = limits or [None] * len(texts)
        if not options.sample:  # a search draws nothing at random
            self._add_shorter(pieces, nbest_lists, limits, options)
        for text, text_pieces, hypotheses, limit in zip(texts, pieces, nbest_lists, limits, strict=True):
            yield Translation.of(text, text_pieces, hypotheses, options.nbest, self, limit)

    def _add_shorter(
        self,
        pieces: Sequence[Sequence[Piece]],
        nbest_lists: list[list[list[Hypothesis]]],
        limits: Sequence[int | None],
        options: DecodingOptions,
    ) -> None:
        """Add shorter hypotheses to the n-best lists of texts whose best translations are too long."""
        long_texts: list[LongText] = []
        for number, limit in enumerate(limits):
            if limit is not None:
                best = [nbest[0] for nbest in nbest_lists[number]]
                text = long_text(number, pieces[number], best, limit, self.pipeline)
                long_texts += [text] if text else []
        if not long_texts:
            return
        parts, free, part_limits = list[Piece](), list[list[Hypothesis]](), list[int]()
        for text in long_texts:
            parts += text.pieces
            free += nbest_lists[text.number]
            part_limits += text.limits
        shorter = iter(self.stages.shorter(parts, free, part_limits, options, self._searching_torch_engine))
        for text in long_texts:
            nbest_lists[text.number] = list(islice(shorter, len(text.pieces)))

    def _searching_torch_engine(self) -> TorchEngine:
        """Return the PyTorch engine, with retrieval if there is any."""
        return self.retrieval_engine.torch_engine if self.retrieval else self.torch_engine

    def _search_again(self, options: DecodingOptions, first: int, terms: TermList | None) -> Search:
        """Return a search with the options of `stream`, also constrained by these terms if there are any."""
        stages = self.stages
        if terms:
            stages = stages.constrained(self._constraint(terms))
        return partial(stages.search, options=options, first=first)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Name the new place of a former method."""
            place = f"; it is now {MOVED[name]}" if name in MOVED else ""
            raise AttributeError(f"'Translator' object has no attribute {name!r}{place}")


def _in_context(texts: Iterable[str | Source[str]], before: Iterable[Sequence[str]]) -> Iterator[Source[str]]:
    """Yield each text with those before it."""
    for source, earlier in zip(map(as_source, texts), before, strict=True):
        yield source._replace(before=tuple(earlier))
