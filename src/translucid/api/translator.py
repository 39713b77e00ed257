"""The front door: `Translator.load(run).translate(text)`. PyTorch is loaded when something needs it, not before."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from functools import cached_property, partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from translucid.api import translation
from translucid.api.confidence_features import ConfidenceFeatures
from translucid.api.examiner import Examiner
from translucid.api.loaded_run import LoadedRun
from translucid.api.translation import Alternative, Translation, Translations, given_texts, refuse_one_text
from translucid.data.text_pipeline import Piece, TextPipeline, TextStep
from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.decoding.decoding_options import DecodingOptions
from translucid.decoding.hypothesis import Hypothesis, total_score
from translucid.engines.choosing import EngineName
from translucid.engines.confidence_file import Languages
from translucid.engines.name_stand_ins import NameStandIns, Search
from translucid.engines.piece_search import search_pieces
from translucid.engines.ranking import Ranking
from translucid.engines.stages import SearchStages
from translucid.engines.term_constraint import TermConstraint, TermsMode, refuse_mode
from translucid.engines.term_reader import TermReader
from translucid.evaluation.quality_checks import QualityChecks
from translucid.ground.errors import UserError
from translucid.ground.special import SPECIAL
from translucid.interop.on_the_fly import run_of
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
    from translucid.evaluation.familiarity import Familiarity
    from translucid.models.protocol import SequenceModel

WINDOW = 4096
"""Lines read ahead, sorted by length and translated together; what bounds the memory of a long job."""


class Translator(Examiner, TermReader):
    """A trained model, its tokenizer and its settings."""

    def __init__(
        self,
        tokenizer: Tokenizer,
        configuration: Configuration,
        own: Callable[[], TorchEngine],
        engine: Engine | None = None,
        longest: int | None = None,
        wide: Callable[[], Engine] | None = None,
    ) -> None:
        """`Translator.load` is the usual way in.

        Args:
            tokenizer: the model's.
            configuration: of the run.
            own: gives our own search, and with it the model, when it is wanted.
            engine: what searches for translations; our own if not given.
            longest: source tokens that are translated in one piece; those of the configuration if not given.
            wide: gives what searches where the target language is another one; the same if not given.
        """
        self.tokenizer, self.configuration = tokenizer, configuration
        self.longest = longest or configuration.longest
        self.pipeline = TextPipeline(tokenizer, self.longest, configuration.data.languages[0])
        """Makes of texts what the model reads, and texts of what it writes."""
        self.constraint: TermConstraint | None = None
        """What translations have to have."""
        self.ranking: Ranking | None = None
        """What puts hypotheses into another order."""
        self._doubts = QualityChecks(tokenizer, *configuration.data.languages)
        self._drawn = 0
        self._own = own
        self._opened: LoadedRun | None = None
        self._fitted: Callable[[Languages], tuple[Estimator | None, str]] = lambda languages: (None, "")
        self._linking: Callable[[Languages], AlignmentLayer | None] = lambda languages: None
        self._familiar: Callable[[Languages, Tokenizer], Familiarity] | None = None
        self.engine = engine or own()
        self._wide = wide or (lambda: self.engine)

    @cached_property
    def own(self) -> TorchEngine:
        """Our own search; it has the model."""
        return self._own()

    @property
    def model(self) -> SequenceModel:
        """In evaluation mode."""
        return self.own.model

    @property
    def device(self) -> torch.device:
        """Where the model is."""
        return self.own.device

    @property
    def stages(self) -> SearchStages:
        """How translations come about."""
        constraints = (self.constraint,) if self.constraint else ()
        return SearchStages(self.pipeline, self.engine, constraints, self.ranking)

    def showing(self, *steps: TextStep) -> Translator:
        """Return a translator whose model is shown something besides the text, with the same model."""
        other = copy(self)
        other._opened, other.pipeline = None, self.pipeline.showing(*steps)
        return other

    def ranked(self, ranking: Ranking | None) -> Translator:
        """Return a translator whose hypotheses are put into another order, with the same model."""
        other = copy(self)
        other._opened, other.ranking = None, ranking
        return other

    def between(self, source: str | None, target: str | None) -> Translator:
        """Return a translator between two other languages of a model that has many, with the same weights.

        Args:
            source: code of the source language; as it is if not given.
            target: code of the target language; as it is if not given.

        Raises:
            UserError: the model does not have them.
        """
        configuration = self.configuration.between(source, target)
        languages = configuration.data.languages
        tokenizer = self.tokenizer.between(*languages, configuration.data.tokenizer)
        engine = (self.engine if languages == self.configuration.data.languages else self._wide()).opened(tokenizer)
        given = engine, self.longest, self._wide
        other = Translator(tokenizer, configuration, lambda: self.own.opened(tokenizer), *given)
        other._fitted, other._linking, other.run = self._fitted, self._linking, self.run
        other._familiar = self._familiar
        if languages == self.configuration.data.languages:
            other.terms, other.constraint = self.terms, self.constraint
            other.pipeline, other.ranking = self.pipeline, self.ranking
        other._doubts = self._doubts.between(tokenizer, *languages)
        return other

    def use(self, adapter: str | Path | None) -> None:
        """Translate with another adapter of the run, or with none; the model stays loaded.

        `adapter`: its file, the run that learned it, or its name in the run's folder `adapters`.

        Raises:
            UserError: there is none, it belongs to another model, or this translator was made by `between`.
        """
        if not self._opened:
            raise UserError("only a translator that was loaded takes an adapter", fix="Give it to load.")
        self.engine = self._opened.engine(adapter)

    def with_terms(
        self,
        terms: str | Path | TermList | Iterable[Term | Iterable[str]],
        *,
        inflect: bool = False,
        mode: TermsMode = "auto",
    ) -> Translator:
        """Return a translator that applies terms, with the same model; see docs/terms.md.

        Args:
            terms: a file of them, or they, each a `Term` or (source, target, ...) as in the lines of a file.
            inflect: whether other forms of their words are these terms too, in the source and in the translation.
            mode: see `TermsMode`.

        Raises:
            UserError: there is something wrong with the terms; or forms can't be told, or the model can't be told.
        """
        tokenizer = self.tokenizer
        refuse_mode(mode, tokenizer)
        found = term_list(terms, self.configuration.data.languages, inflect, told=tokenizer.marks_terms)
        points_out = tokenizer.marks_terms and mode != "constrain"
        other = copy(self)
        other._opened, other.terms = None, found
        if points_out:
            other.pipeline = self.pipeline.before(TermAnnotation(found, tokenizer))
        if mode != "annotate":
            other.constraint = self._constraint(found, pointed_out=points_out)
        return other

    def _constraint(self, terms: TermList, *, pointed_out: bool = False) -> TermConstraint:
        alignment = self.configuration.alignment if self.can_look() else None
        return TermConstraint(lambda: self.own, terms, self.tokenizer, alignment, pointed_out=pointed_out)

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
            adapter: of the run, to translate with; see `use`.

        Raises:
            UserError: it is not one, or it is damaged, or the engine can't run its model there; or one of the others
                has another vocabulary or direction.
        """
        folder = RunFolder(run_of(Path(run)))
        between = folder.configuration().between(source, target)
        found = [run_of(Path(other)) for other in others]
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
        tokenizer = folder.tokenizer().between(*configuration.data.languages, configuration.data.tokenizer)
        opened = LoadedRun(folder, configuration, tokenizer, device, engine, others, threads)
        made = cls(tokenizer, configuration, opened.own, opened.engine(adapter), opened.together.longest, opened.wide)
        made._opened, made._fitted, made._linking = opened, opened.confidence, opened.alignment_layer
        made._familiar = opened.familiarity
        made.run = str(folder.path)
        return made

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
        number = self._drawn if first is None else first
        iterator = iter(texts)
        while window := list(islice(iterator, WINDOW)):
            pieces = self.pipeline.pieces(window, split=split)
            search = partial(search_pieces, self.stages, options=options, first=number, on_done=on_done)
            if self.terms and not options.sample:
                again = partial(self._search_again, options, number)
                names = NameStandIns(self.tokenizer, self.terms, self.configuration.data.languages[1])
                pieces, found = names.search(pieces, search, again)
            else:
                found = search(pieces)
            number += len(window)
            if first is None:
                self._drawn = number
            for text, of_text, hypotheses in zip(window, pieces, found, strict=True):
                yield self._joined(text, of_text, hypotheses, options.nbest)

    def _search_again(self, options: DecodingOptions, first: int, terms: TermList | None) -> Search:
        """Return a search for pieces as `stream` makes it, with these terms as well if there are any."""
        stages = self.stages.constrained(self._constraint(terms)) if terms else self.stages
        return partial(search_pieces, stages, options=options, first=first)

    def _joined(self, text: str, pieces: list[Piece], found: Sequence[list[Hypothesis]], count: int) -> Translation:
        """Put the `count` best translations of a text together from what was found for its pieces."""
        nbest: dict[str, Alternative] = {}
        for way in translation.best_together(found, count):
            joined = self.pipeline.join(pieces, [hypothesis.tokens for hypothesis in way])
            score, unit = total_score(way)
            nbest.setdefault(joined, Alternative(joined, score, way, unit))
        return Translation(text, [*nbest.values()], pieces, self)

    def doubts_about(self, found: Translation) -> list[str]:
        """Return what looks wrong in a translation, each as `kind: what was seen`; in attention, if that was seen."""
        doubts = list(self.pipeline.warnings(found.pieces))
        if found.was_inspected and self.estimator and (detached := self.estimator.detached):
            watched = map(self.observer.watched, found.parts, found.inspected)
            doubts += [doubt for seen in watched for doubt in detached.about(seen)]
        uses = self.term_uses(found)
        doubts += [f"term not used: {use}" for use in uses if use.outcome == "missing"]
        given = {word.casefold() for use in uses for word in use.source.split()}
        familiarity = self._familiar(self.configuration.data.languages, self.tokenizer) if self._familiar else None
        for piece, best in found.parts:
            text = self.pipeline.text(piece, best.tokens)
            doubts += self._doubts.about(piece.text, piece.ids[:-1], text, best.tokens, best.log_probability)
            if familiarity:
                doubts += familiarity.about(piece.text, piece.ids[:-1], best.tokens, best.log_probability, given)
        return list(dict.fromkeys(doubts))

    @property
    def observer(self) -> ConfidenceFeatures:
        """Looks again at what was found."""
        return ConfidenceFeatures(self.stages, lambda: self.own)

    def token_log_probabilities(self, found: Translation) -> list[list[tuple[str, float]]]:
        """Return for each translation of the n-best list its target pieces, each with its log-probability in nats.

        The pieces of a text's sentences stand one after the other, each sentence's end token behind it, but not what
        names its language. The figures are the model's own, by forced decoding.
        """
        return self.observer.tokens([one.hypotheses for one in found.nbest], found.pieces)

    @property
    def estimator(self) -> Estimator | None:
        """What tells how sure translations are, if `translucid tune --confidence` has fitted it and it holds."""
        return self._fitted(self.configuration.data.languages)[0]

    @property
    def alignment_layer(self) -> AlignmentLayer | None:
        """See `Examiner`."""
        return self._linking(self.configuration.data.languages)

    @property
    def estimator_note(self) -> str:
        """Why what was fitted does not hold, if something was and does not."""
        return self._fitted(self.configuration.data.languages)[1]

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
        trace, found = self.own.traced(pieces[0].ids, options)
        masked = pieces[0].masked
        trace.finish([*found.tokens, SPECIAL.end], lambda ids: masked.unmask_pieces(self.tokenizer.target_pieces(ids)))
        return trace
