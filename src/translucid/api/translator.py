"""The front door: `Translator.load(run).translate(text)`. PyTorch is loaded when something needs it, not before."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from translucid.api.confidence_features import ConfidenceFeatures
from translucid.api.examiner import Examiner
from translucid.api.loaded_run import LoadedRun
from translucid.api.quality_warnings import attention_warnings, text_warnings
from translucid.api.translation import Translation, Translations, given_texts, refuse_one_text
from translucid.data.text_pipeline import TextPipeline, TextStep
from translucid.decoding.decoding_options import DecodingOptions
from translucid.engines.choosing import EngineName
from translucid.engines.confidence_file import Languages
from translucid.engines.name_stand_ins import NameStandIns, Search
from translucid.engines.ranking import Ranking
from translucid.engines.stages import SearchStages
from translucid.engines.term_constraint import TermConstraint, TermsMode, refuse_mode
from translucid.engines.term_reader import TermReader
from translucid.evaluation.quality_checks import QualityChecks
from translucid.ground.errors import UserError
from translucid.ground.special import SPECIAL
from translucid.interop.run_resolution import resolve_run
from translucid.runs.configuration import Configuration, checked
from translucid.runs.run_folder import RunFolder
from translucid.terminology.marking import TermAnnotation
from translucid.terminology.matching import TermList, term_list
from translucid.terminology.term import Term

if TYPE_CHECKING:
    import torch

    from translucid.decoding.alignment_layer import AlignmentLayer
    from translucid.decoding.trace import BeamTrace
    from translucid.engines.engine import Engine, TorchEngine
    from translucid.evaluation.confidence.estimator import Estimator
    from translucid.models.protocol import SequenceModel

WINDOW = 4096
"""Lines read ahead, sorted by length and translated together; what bounds the memory of a long job."""


class TextCounter:
    """Counts texts from call to call: with the seed, a text's number decides what sampling draws for it."""

    next_number = 0


@dataclass(frozen=True, eq=False, repr=False)
class Translator(Examiner, TermReader):
    """A trained model, its tokenizer and its settings; `Translator.load` makes one.

    A translator does not change. `between`, `with_terms` and `with_adapter` return others, which share what was loaded.
    """

    loaded: LoadedRun
    """The model, and what was fitted to it."""
    configuration: Configuration
    """Of the run, for the languages of this translator."""
    pipeline: TextPipeline
    """Makes of texts what the model reads, and texts of what it writes."""
    engine: Engine
    """Searches for translations."""
    terms: TermList | None = None
    """The terms that translations have to use, if there are any."""
    terms_mode: TermsMode = "auto"
    ranking: Ranking | None = None
    """What puts hypotheses into another order."""
    counter: TextCounter = field(default_factory=TextCounter, init=False)

    @property
    def run(self) -> str:
        """The run folder."""
        return str(self.loaded.folder.path)

    @property
    def languages(self) -> Languages:
        """Codes of source and target, if known."""
        return self.configuration.data.languages

    @cached_property
    def torch_engine(self) -> TorchEngine:
        """Our own search; it has the model."""
        engine = self.loaded.torch_engine
        return engine if self.tokenizer is self.loaded.tokenizer else engine.opened(self.tokenizer)

    @property
    def model(self) -> SequenceModel:
        """In evaluation mode."""
        return self.torch_engine.model

    @property
    def device(self) -> torch.device:
        """Where the model is."""
        return self.torch_engine.device

    @property
    def stages(self) -> SearchStages:
        """How translations come about."""
        constraints = (self.constraint,) if self.constraint else ()
        return SearchStages(self.pipeline, self.engine, constraints, self.ranking)

    @cached_property
    def constraint(self) -> TermConstraint | None:
        """Forces the terms, unless they are only pointed out to the model."""
        if self.terms is None or self.terms_mode == "annotate":
            return None
        return self._constraint(self.terms, pointed_out=self.tokenizer.marks_terms and self.terms_mode != "constrain")

    def _constraint(self, terms: TermList, *, pointed_out: bool = False) -> TermConstraint:
        alignment = self.configuration.alignment if self.can_look() else None
        return TermConstraint(lambda: self.torch_engine, terms, self.tokenizer, alignment, pointed_out=pointed_out)

    @cached_property
    def quality_checks(self) -> QualityChecks:
        """Finds what looks wrong in a translation, without a reference."""
        return QualityChecks(self.tokenizer, *self.languages, scripts=lambda: self.loaded.known_scripts)

    def showing(self, *steps: TextStep) -> Translator:
        """Return a translator whose model is shown something besides the text, with the same model."""
        return replace(self, pipeline=self.pipeline.showing(*steps))

    def ranked(self, ranking: Ranking | None) -> Translator:
        """Return a translator whose hypotheses are put into another order, with the same model."""
        return replace(self, ranking=ranking)

    def between(self, source: str | None, target: str | None) -> Translator:
        """Return a translator between two other languages of a model that has many, with the same weights.

        Terms and a ranking belong to a pair of languages, and are left behind.

        Args:
            source: code of the source language; as it is if not given.
            target: code of the target language; as it is if not given.

        Raises:
            UserError: the model does not have them.
        """
        configuration = self.configuration.between(source, target)
        languages = configuration.data.languages
        tokenizer = self.tokenizer.between(*languages, configuration.data.tokenizer)
        if languages == self.languages:
            return self
        pipeline = TextPipeline(tokenizer, self.longest, languages[0])
        return Translator(self.loaded, configuration, pipeline, self.loaded.engine_for(languages, tokenizer))

    def with_adapter(self, adapter: str | Path | None) -> Translator:
        """Return a translator with another adapter of the run, or with none; the model stays loaded.

        `adapter`: its file, the run that learned it, or its name in the run's folder `adapters`.

        Raises:
            UserError: there is none, it belongs to another model, or several runs are averaged.
        """
        loaded = self.loaded.with_adapter(adapter)
        return replace(self, loaded=loaded, engine=loaded.engine_for(self.languages, self.tokenizer))

    def with_terms(
        self,
        terms: str | Path | TermList | Iterable[Term | Iterable[str]],
        *,
        inflect: bool = False,
        mode: TermsMode = "auto",
    ) -> Translator:
        """Return a translator that uses these terms, and no others, with the same model; see docs/terminology.md.

        Args:
            terms: a file of them, or they, each a `Term` or (source, target, ...) as in the lines of a file.
            inflect: whether other forms of their words are these terms too, in the source and in the translation.
            mode: see `TermsMode`.

        Raises:
            UserError: there is something wrong with the terms; or forms can't be told, or the model can't be told.
        """
        tokenizer = self.tokenizer
        refuse_mode(mode, tokenizer)
        found = term_list(terms, self.languages, inflect, told=tokenizer.marks_terms)
        others = [step for step in self.pipeline.steps if not isinstance(step, TermAnnotation)]
        if tokenizer.marks_terms and mode != "constrain":
            others.insert(0, TermAnnotation(found, tokenizer))
        return replace(self, pipeline=replace(self.pipeline, steps=tuple(others)), terms=found, terms_mode=mode)

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
        """Load a run folder. Settings of the process stay as they are.

        A program that does little else is faster after `translucid.kernels.process.configure_process()`.

        Args:
            run: what `translucid train` or `translucid import` wrote; a Hugging Face folder is imported first, once.
            device: auto, cpu, cuda, cuda:1 or mps.
            engine: what searches for translations: `torch`, `ctranslate2`, or the faster one of those that can.
            source: code of the source language, for a model that has many, its own or the usual one, such as `es`; as
                the run says if not given.
            target: code of the target language.
            others: runs whose probabilities are averaged with those of `run` at each step; our own search does it.
            threads: how many CTranslate2 works with; one for each core if not given. If given, what comes out is the
                same for any number.
            adapter: of the run, to translate with; see `with_adapter`.

        Raises:
            UserError: it is not one, or it is damaged, or the engine can't run its model there; or one of the others
                has another vocabulary or direction.
        """
        folder = RunFolder(resolve_run(run))
        between = folder.configuration().between(source, target)
        found = [resolve_run(other) for other in others]
        return cls.open(folder, between, device, engine, others=found, threads=threads, adapter=adapter)

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
        configuration.refuse_other_reader("text", folder.path)
        loaded = LoadedRun.load(folder, configuration, device, engine, others, threads).with_adapter(adapter)
        pipeline = TextPipeline(loaded.tokenizer, loaded.ensemble.longest, configuration.data.languages[0])
        return cls(loaded, configuration, pipeline, loaded.engine)

    @overload
    def translate(
        self, text: str, options: DecodingOptions | None = None, *, split: bool = True, **changes: Any
    ) -> Translation: ...
    @overload
    def translate(
        self, text: Iterable[str], options: DecodingOptions | None = None, *, split: bool = True, **changes: Any
    ) -> Translations: ...
    def translate(
        self,
        text: str | Iterable[str],
        options: DecodingOptions | None = None,
        *,
        split: bool = True,
        **changes: Any,
    ) -> Translation | Translations:
        """Translate one text or several; an empty one gives an empty one.

        Args:
            text: one, or any number of them, which give a list.
            options: how to search; the run's own settings if not given.
            split: see `stream`.
            changes: single options by name, such as `beam=5` or `sample=True`. Sampling goes on drawing with each call;
                with a `seed` it begins anew.

        Raises:
            TypeError: `text` is no text and no texts, as bytes are.
            UserError: an option has a wrong name or value.
        """
        one = isinstance(text, str)
        texts = [text] if isinstance(text, str) else given_texts(text)
        seeded = "seed" in changes or (options is not None and "seed" in options.model_fields_set)
        if changes:
            settings = options or self.configuration.decoding
            options = checked(DecodingOptions, {**settings.model_dump(), **changes})
        translations = Translations(self.stream(texts, options, split=split, first=0 if seeded else None))
        return translations[0] if one else translations

    def stream(
        self,
        texts: Iterable[str],
        options: DecodingOptions | None = None,
        *,
        split: bool = True,
        first: int | None = None,
        on_done: Callable[[int], None] | None = None,
    ) -> Iterator[Translation]:
        """Translate any number of texts, in order, with memory that does not grow with their number.

        Args:
            texts: lines; each gives one translation.
            options: how to search; the run's own settings if not given.
            split: split each text into sentences, translate them one by one and join them again, and keep what has
                nothing to translate, such as a web address, as it is. Otherwise each text goes to the model as it is,
                which test sets want; only one that is too long for it is split.
            first: the number of the first text, which decides with the seed what sampling draws for it. If not given,
                the texts are numbered on from the last call.
            on_done: called with the number of pieces done after each batch.
        """
        refuse_one_text(texts)
        options = options or self.configuration.decoding
        number = self.counter.next_number if first is None else first
        iterator = iter(texts)
        while window := list(islice(iterator, WINDOW)):
            pieces = self.pipeline.pieces(window, split=split)
            search = partial(self.stages.search, options=options, first=number, on_done=on_done)
            if self.terms and not options.sample:
                again = partial(self._search_again, options, number)
                names = NameStandIns(self.tokenizer, self.terms, self.languages[1])
                pieces, found = names.search(pieces, search, again)
            else:
                found = search(pieces)
            number += len(window)
            if first is None:
                self.counter.next_number = number
            for text, of_text, hypotheses in zip(window, pieces, found, strict=True):
                yield Translation.of(text, of_text, hypotheses, options.nbest, self)

    def _search_again(self, options: DecodingOptions, first: int, terms: TermList | None) -> Search:
        """Return a search for pieces as `stream` makes it, with these terms as well if there are any."""
        stages = self.stages.constrained(self._constraint(terms)) if terms else self.stages
        return partial(stages.search, options=options, first=first)

    def warnings(self, found: Translation) -> list[str]:
        """Return what looks wrong in a translation, each as `kind: what was seen`."""
        return text_warnings(self, found)

    def attention_warnings(self, found: Translation) -> list[str]:
        """Return what looks wrong in the attention of a translation, if `tune --confidence` has fitted its limits."""
        return attention_warnings(self, found)

    @property
    def observer(self) -> ConfidenceFeatures:
        """Looks again at what was found."""
        return ConfidenceFeatures(self.stages, lambda: self.torch_engine)

    def token_log_probabilities(self, found: Translation) -> list[list[tuple[str, float]]]:
        """Return for each translation of the n-best list its target pieces, each with its log-probability in nats.

        The pieces of a text's sentences stand one after the other, each sentence's end token behind it, but not what
        names its language. The figures are the model's own, by forced decoding.
        """
        return self.observer.tokens([one.hypotheses for one in found.nbest], found.pieces)

    @property
    def estimator(self) -> Estimator | None:
        """What tells how sure translations are, if `translucid tune --confidence` has fitted it and it holds."""
        return self.loaded.confidence(self.languages)[0]

    @property
    def alignment_layer(self) -> AlignmentLayer | None:
        """See `Examiner`."""
        return self.loaded.alignment_layer(self.languages)

    @property
    def estimator_note(self) -> str:
        """Why what was fitted does not hold, if something was and does not."""
        return self.loaded.confidence(self.languages)[1]

    def confidences(self, found: Sequence[Translation]) -> list[float | None]:
        """Return for each translation the probability that it is good; of several sentences, that of the worst.

        None where nobody can tell: there is no `estimator`, or nothing was translated. Several are looked at together.
        """
        if not (estimator := self.estimator):
            return [None] * len(found)
        return self.observer.confidences(estimator, [one.parts for one in found])

    def assessed(self, found: Iterable[Translation]) -> Iterator[Translation]:
        """Yield translations whose `confidence` is known: they are looked at together, not each when asked."""
        all_found = list(found)
        for one, confidence in zip(all_found, self.confidences(all_found), strict=True):
            yield one.assessed(confidence)

    def word_probabilities(self, found: Sequence[Translation]) -> list[list[tuple[str, float]]]:
        """Return for each translation its words, each with its probability: the product of those of its pieces.

        A piece's probability is given the source and all before it. What stays as it is has probability 1.
        """
        return self.observer.words([(one.pieces, one.parts) for one in found])

    def trace(self, text: str, beam: int) -> BeamTrace:
        """Translate a text in one piece and return the tree of its beam search.

        Raises:
            UserError: there is nothing to translate, or it is longer than the model takes in one piece.
        """
        (pieces,) = self.pipeline.pieces([text], split=False)
        if len(pieces) != 1:
            raise UserError("a beam search is drawn of one sentence", fix="Give a text that fits in one piece.")
        options = self.configuration.decoding.model_copy(update={"beam": beam, "nbest": 1, "sample": False})
        trace, found = self.torch_engine.traced(pieces[0].ids, options)
        masked = pieces[0].masked
        trace.finish([*found.tokens, SPECIAL.end], lambda ids: masked.unmask_pieces(self.tokenizer.target_pieces(ids)))
        return trace
