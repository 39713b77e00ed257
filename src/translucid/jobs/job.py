"""Jobs: what they have in common, the worker that does one, and the job of translating a text.

A job is a record of options, and names the function that makes the output of a window from it. In hard-wrapped text, a
paragraph of several lines is translated as one text, and its translation is wrapped again.
"""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass, field, fields, replace
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple, Protocol

from pydantic import BaseModel

from bitext.languages import Languages
from bitext.memory.match import EXACT, Match
from bitext.memory.translation_memory import Recall
from bitext.reading import digest, digest_if_any
from translucid import __version__
from translucid.api.pivot_translator import AnyTranslation, AnyTranslator, FirstStep, PivotTranslation, PivotTranslator
from translucid.api.segment_translator import shown_matches
from translucid.api.translation import Translation
from translucid.api.translator import WINDOW, Translator
from translucid.data.document_context import Source, lines_before
from translucid.data.formality import may_be
from translucid.decoding.decoding_options import DecodingOptions
from translucid.engines.choosing import EngineName
from translucid.engines.length_limits import length_warnings
from translucid.engines.minimum_risk import MinimumRisk
from translucid.engines.noisy_channel import WEIGHTS, ChannelWeights, NoisyChannel
from translucid.engines.run_files import fitted_file
from translucid.engines.stages import Ranking
from translucid.engines.tuned import FILE as TUNED
from translucid.engines.tuned import SHORTLIST
from translucid.evaluation.alignment_error import to_pharaoh
from translucid.ground.errors import UserError
from translucid.ground.special import Formality
from translucid.inspection.intervention import interventions_of
from translucid.jobs.windows import Window, decoded
from translucid.kernels.devices import same_sums_on_any_threads
from translucid.kernels.machine import cores
from translucid.memory.opening import open_memory
from translucid.runs.adapters import Adapter
from translucid.runs.configuration import Configuration
from translucid.runs.run_folder import ALIGNMENT, CONFIDENCE, VALIDATION, RunFolder
from translucid.terminology.glossary import TermsMode
from translucid.terminology.matching import missing_terms

Say = Callable[[str], None]
"""A function that shows a message to the user."""

_MERGED = ("run", "options", "interventions")
"""The fields whose state is several entries of an identity."""
LABELS = {
    "run": "the file",
    "form": "`form`",
    "columns": "the number of columns",
    "adapter": "the adapter",
    "others": "the other runs",
    "reverse": "the run of `ranking`",
    "channel_weights": "the weights of `ranking`",
    "risk_candidates": "`risk_candidates`",
    "memory": "the memory",
    "first_step": "the run of `pivot`",
    "configuration": "the languages and settings",
    "terms": "the terms",
    "named": "the names of images",
}
"""The names of fields in messages; those of others are the options."""


@dataclass(frozen=True)
class Done:
    """The output for a window."""

    text: bytes
    """The output, including line feeds: a line for each line of the window, unless the job leaves some out."""
    warnings: list[tuple[int, str]] = field(default_factory=list)
    """Warnings with their lines, counted from 0 within the window."""
    bad: list[tuple[int, str]] = field(default_factory=list)
    """The lines that can't be read, and why."""


class LineFunction(NamedTuple):
    """What a job does with windows once its models are loaded."""

    device: str
    """The kind of device in use: cpu, cuda or mps."""
    work: Callable[[Window], Done]


@dataclass(frozen=True)
class LineJob(ABC):
    """All that determines the output for a text; it can be sent to another process.

    Its fields are its identity, so that a new option can't be forgotten.
    """

    run: Path
    """The run folder."""
    _: KW_ONLY
    device: str = "auto"
    """The device as the user named it."""
    form: Literal["text", "jsonl"] = "text"
    wrapped: bool = False
    """Whether the text is hard-wrapped, so that sentences continue from line to line."""
    window: ClassVar[int] = WINDOW
    """The number of lines that are processed together."""

    @abstractmethod
    def load(self, threads: int) -> LineFunction:
        """Load the models, which use this number of threads, and return the function of a window.

        Raises:
            UserError: a run is damaged, does not fit on the device, or lacks what the job needs.
        """

    def identity(self, device: str) -> dict[str, Any]:
        """Return what must be equal for two jobs to write the same, given the kind of device that each works on.

        Raises:
            TypeError: a field has a value of a kind whose state is unknown.
        """
        identity: dict[str, Any] = {"the version": __version__, "the job": type(self).__name__}
        for job_field in fields(self):
            if job_field.name == "device":
                identity["the device"] = device
                continue
            state = self.state(job_field.name)
            if job_field.name in _MERGED and isinstance(state, dict):
                identity |= state
            else:
                identity[LABELS.get(job_field.name, f"`{job_field.name}`")] = state
        return {**identity, "the window": self.window, **self.files_beside_run()}

    def state(self, name: str) -> Any:
        """Return the state of a field as plain values, which are equal for equal content."""
        return state_of(getattr(self, name))

    def files_beside_run(self) -> dict[str, Any]:
        """Return the fingerprints of further files that determine the output."""
        return {}


class Executor(Protocol):
    """Runs a job in this process, in several processes or on a cluster."""

    device: str
    """The kind of device in use: cpu, cuda or mps."""

    def __call__(self, windows: Iterable[Window]) -> Iterator[tuple[Window, Done]]:
        """Yield windows and their output in the same order, with few windows in memory at a time.

        Raises:
            UserError: a worker died, or can't do the job.
        """


class Worker(Executor):
    """Does a job in this process, window by window."""

    def __init__(self, job: LineJob, threads: int | None = None) -> None:
        """Load the job's models; `threads` is the number of threads to use, all cores if not given.

        Raises:
            UserError: as `LineJob.load`.
        """
        # The output is the same, byte for byte, with any number of workers.
        same_sums_on_any_threads()
        self.device, self.work = job.load(threads or cores())

    def __call__(self, windows: Iterable[Window]) -> Iterator[tuple[Window, Done]]:
        """Process windows in order."""
        for window in windows:
            yield window, self.work(window)


@contextmanager
def in_this_process(job: LineJob) -> Iterator[Executor]:
    """Run a job in this process."""
    yield Worker(job)


class TranslationModels(NamedTuple):
    """What is loaded to translate."""

    translator: AnyTranslator
    recall: Recall | None
    """The translation memory, if there is one with entries."""


@dataclass(frozen=True)
class TranslationJob(LineJob):
    """The job of translating the lines of a text."""

    options: DecodingOptions
    _: KW_ONLY
    engine: EngineName = "auto"
    split_sentences: bool = True
    columns: int = 1
    """The number of translations that are written for each line."""
    alignments: bool = False
    token_scores: bool = False
    adapter: str | None = None
    """An adapter of the run, as `Translator.with_adapter` takes it."""
    interventions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """What is changed in the model, as `interventions_of` takes it."""
    configuration: Configuration | None = None
    """The configuration of the run, if it has been read."""
    others: tuple[Path, ...] = ()
    """Runs whose probabilities are averaged with those of `run`."""
    reverse: Path | None = None
    """A run of the reverse direction, by which `NoisyChannel` ranks the hypotheses of a beam."""
    channel_weights: ChannelWeights = WEIGHTS
    """The weights of that ranking."""
    risk_candidates: int = 0
    """The number of candidates of each sentence for minimum Bayes risk decoding; 0 for none."""
    memory: Path | None = None
    """A translation memory, or a corpus that serves as one."""
    memory_from: int = EXACT
    """The percentage from which its matches are used instead of translations."""
    knn: bool = False
    """Whether the search retrieves from the memory, as `Translator.with_knn` does."""
    first_step: FirstStep | None = None
    """The step into the pivot language, for a translation through one; `run` does the second step."""
    terms: Path | None = None
    """The file of a term list, as `Translator.with_terms` takes it."""
    inflect_terms: bool = False
    terms_mode: TermsMode = "auto"
    domain: str | None = None
    """The subject field of the texts, among those of the terms."""
    formality: Formality | None = None
    """How translations address their reader, as `Translator.with_formality` takes it."""
    context: str | None = None
    """The text before the first line, for a run with document context."""
    separate_lines: bool = False
    """Whether each line is read by itself, without the lines before it."""
    max_length: int | None = None
    """The largest number of characters of each translation."""

    @property
    def languages(self) -> Languages:
        """The source and the target language, where known."""
        configuration = self.configuration or RunFolder(self.run).configuration()
        source, target = configuration.data.languages
        if self.first_step:
            source = self.first_step.configuration.data.languages[0]
        return source, target

    def fitted_fingerprint(self, name: str) -> str | None:
        """Return the fingerprint of a result that was fitted to the run and its languages, if there is one."""
        languages = self.configuration.data.languages if self.configuration else (None, None)
        return digest_if_any(fitted_file(RunFolder(self.run), name, languages))

    def state(self, name: str) -> Any:
        """Return the state of a field; an adapter and a memory are named."""
        if name == "adapter" and self.adapter:
            return Adapter.find(self.adapter, RunFolder(self.run)).fingerprint
        if name == "interventions":
            options = self.interventions
            changes = zip(options, interventions_of(self.run, options), strict=True)
            return {f"`{option}`": [*intervention.identity] for option, intervention in changes}
        if name == "memory" and self.memory:
            with open_memory(self.memory, self.languages) as memory:
                return memory.state
        return super().state(name)

    def files_beside_run(self) -> dict[str, Any]:
        """Return the fingerprints of the tuning, and of results that were fitted to the run."""
        tuning = map(digest_if_any, (self.run / TUNED, self.run / SHORTLIST))
        return {
            "the tuning": " ".join(filter(None, tuning)) or None,
            "the alignment layer": self.fitted_fingerprint(ALIGNMENT) if self.alignments else None,
            "the validation scores": self.fitted_fingerprint(VALIDATION),
            "the confidence": self.fitted_fingerprint(CONFIDENCE) if self.form == "jsonl" else None,
        }

    def load(self, threads: int) -> LineFunction:
        """Open the memory and the translator, with all that the options add to the run."""
        recall = None
        if self.memory:
            memory = open_memory(self.memory, self.languages)
            if len(memory):
                recall = Recall(memory, self.memory_from, partial(may_be, self.formality, self.languages))
        translator = open_translator(self, recall, threads)
        if self.alignments and not translator.inspector.has_cross_attention:
            fix = "Omit `alignments`."
            raise UserError("the model has no attention, so there are no alignments", file=self.run, fix=fix)
        return LineFunction(translator.engine.device_type, partial(self.work, TranslationModels(translator, recall)))

    def work(self, models: TranslationModels, window: Window) -> Done:
        """Translate the lines of a window, also those that are not UTF-8."""
        texts, bad = decoded(window.lines)
        groups = [[i] for i in range(len(texts))]
        if self.wrapped:
            groups = paragraphs(texts)
            sources = [Source(_source(texts, group)) for group in groups]
        else:
            sources = self._in_context(models, texts, window)
        sources = [source._replace(max_length=self.max_length) for source in sources]
        matches: list[Match | None] = [None] * len(sources)
        if models.recall:
            matches = [models.recall.replacement(source.text) for source in sources]
        unmatched = [source for source, match in zip(sources, matches, strict=True) if not match]
        translations = models.translator.stream(
            unmatched, self.options, split=self.split_sentences, first=window.before.lines
        )
        if self.form == "jsonl":
            translations = models.translator.quality.assessed(translations)
        lines, warnings = [], []
        for group, source, match in zip(groups, sources, matches, strict=True):
            if match:
                text = match.target
                text_warnings = self._match_warnings(models, source.text, text)
            else:
                translation = next(translations)
                text = translation.text
                text_warnings = self._warnings(translation)
            warnings += [(group[0], warning) for warning in text_warnings]
            if self.wrapped:
                lines += wrapped(text, texts[group[0] : group[-1] + 1])
            elif match:
                lines.append(self._matched_line(models, source.text, match))
            else:
                lines.append(self._line(models, translation))
        return Done(as_lines(lines), warnings, bad)

    def _in_context(self, models: TranslationModels, texts: Sequence[str], window: Window) -> list[Source[str]]:
        """Return lines with those before each in its document, if the run has document context."""
        context = models.translator.context
        if not context:
            return list(map(Source, texts))
        initial_context = [self.context] if self.context else []
        if self.separate_lines:
            return [Source(text, tuple(initial_context)) for text in texts]
        earlier, _ = decoded(window.earlier)
        if (
            len(earlier) == window.before.lines
        ):  # these are all lines before the window, so that the context may be in reach
            earlier = [*initial_context, *earlier]
        before = lines_before(texts, context.max_sentences, earlier)
        return list(map(Source, texts, map(tuple, before)))

    def _matched_line(self, models: TranslationModels, source: str, match: Match) -> str:
        """Return the output for a source whose translation is in the memory."""
        links = None
        if self.alignments:
            links = models.translator.inspector.align(source, match.target)
        if self.form == "jsonl":
            record = {"source": source, "translation": match.target, **self._matches(models, source, "memory")}
            if links is not None:
                record["alignment"] = links
            record["warnings"] = self._match_warnings(models, source, match.target)
            return json.dumps(record, ensure_ascii=False)
        if links is not None:
            return f"{match.target}\t{to_pharaoh(links)}"
        return match.target

    def _match_warnings(self, models: TranslationModels, source: str, target: str) -> list[str]:
        """Return the warnings about a translation from the memory."""
        return [*length_warnings(target, self.max_length), *missing_terms(models.translator.terms, source, target)]

    def _matches(self, models: TranslationModels, source: str, origin: str) -> dict[str, object]:
        """Return the origin of a translation and its fuzzy matches, if there is a memory."""
        if not models.recall:
            return {}
        return {"origin": origin, "matches": [match.record() for match in models.recall.suggestions(source)]}

    def _line(self, models: TranslationModels, translation: AnyTranslation) -> str:
        if self.form == "jsonl":
            return json.dumps(self._record(models, translation), ensure_ascii=False)
        columns = [translation.text]
        if self.columns > 1:
            columns = translation.alternatives
        if self.alignments:
            columns.append(to_pharaoh(translation.alignment))
        return "\t".join(columns)

    def _record(self, models: TranslationModels, translation: AnyTranslation) -> dict[str, object]:
        record: dict[str, object] = {
            "source": translation.source,
            "translation": translation.text,
            "score": round(translation.score, 6),
        }
        if isinstance(translation, PivotTranslation):
            record["pivot"] = {"text": translation.first.text, "score": round(translation.first.score, 6)}
        record |= self._matches(models, translation.source, "model")
        if self.knn and isinstance(translation, Translation):
            record["retrieved"] = [word.record() for word in translation.retrieved]
        if self.columns > 1:
            record["alternatives"] = translation.alternatives
            record["scores"] = [round(alternative.score, 6) for alternative in translation.nbest]
        if models.translator.quality.has_confidence:
            record["confidence"] = translation.confidence
            if translation.confidence is not None:
                record["confidence"] = round(translation.confidence, 4)
        if self.token_scores:
            # One list for each translation, a pair of piece and log-probability for each token.
            score_lists = translation.token_log_probabilities[: self.columns]
            record["token_log_probabilities"] = list(map(rounded_pairs, score_lists))
            record["word_probabilities"] = rounded_pairs(translation.word_probabilities)
        if self.alignments:
            record["alignment"] = translation.alignment
        if self.terms:
            record["terms"] = [use.record() for use in translation.terms]
        return {**record, "warnings": self._warnings(translation)}

    def _warnings(self, translation: AnyTranslation) -> list[str]:
        """Return the warnings; those about attention only with alignments, which compute the attention anyway."""
        if self.alignments:
            return [*translation.warnings, *translation.attention_warnings]
        return list(translation.warnings)


def _source(texts: Sequence[str], group: Sequence[int]) -> str:
    """Return the text of some lines; one line stays exactly as it is."""
    if len(group) == 1:
        return texts[group[0]]
    return unwrapped(texts[group[0] : group[-1] + 1])


def rounded_pairs(pairs: Iterable[tuple[str, float]]) -> list[tuple[str, float]]:
    """Round the numbers of pieces or words to six decimals, for a record."""
    return [(text, round(value, 6)) for text, value in pairs]


def state_of(value: Any) -> Any:
    """Return the state of an option as plain values, which are equal for equal content.

    Raises:
        TypeError: the value is of a kind whose state is unknown.
    """
    match value:
        case None | bool() | int() | float() | str():
            return value
        case Path():
            if value.is_dir():
                return identity_of(value)
            return digest(value) if value.is_file() else str(value)
        case Configuration():
            settings = hashlib.sha256(value.model_dump_json().encode()).hexdigest()
            return [*value.data.languages, settings]
        case BaseModel():
            return value.model_dump(mode="json")
        case tuple() | list():
            return list(map(state_of, value))
    raise TypeError(f"the state of a {type(value).__name__} is unknown")


def identity_of(run: Path) -> dict[str, Any]:
    """Return what must be equal in a run for two jobs of any kind to write the same."""
    folder = RunFolder(run)
    return {
        "the version": __version__,
        "the model": folder.model_digest(),
        "the tokenizer": folder.tokenizer().fingerprint,
        "the configuration": digest(folder.config_file),
    }


def as_lines(texts: Iterable[str], errors: str = "strict") -> bytes:
    """Return texts as lines of a file."""
    return "".join(f"{text}\n" for text in texts).encode(errors=errors)


def paragraphs(lines: Sequence[str]) -> list[list[int]]:
    """Return the numbers of the lines of each paragraph; an empty line is a paragraph by itself.

    >>> paragraphs(["I like soccer and", "tennis.", "", "You sing."])
    [[0, 1], [2], [3]]
    """
    line_groups: list[list[int]] = []
    for blank, group in groupby(range(len(lines)), lambda i: not lines[i].strip()):
        numbers = list(group)
        if blank:
            line_groups += [[i] for i in numbers]
        else:
            line_groups.append(numbers)
    return line_groups


def unwrapped(lines: Sequence[str]) -> str:
    """Return a paragraph as one line; a word that is hyphenated at the end of a line continues without a space."""
    text = ""
    for line in map(str.strip, lines):
        # A dash between spaces is no hyphen.
        hyphenated = len(text) > 1 and text[-1] == "-" and text[-2].isalpha() and line[:1].isalpha()
        text += line if hyphenated or not text else f" {line}"
    return text


def wrapped(text: str, paragraph: Sequence[str]) -> list[str]:
    """Divide a text into the lines of a paragraph, with the same proportions and indentation.

    >>> wrapped("Me gusta el fútbol y el tenis.", ["I like soccer and", "tennis."])
    ['Me gusta el fútbol y', 'el tenis.']
    """
    # In a language without spaces, any character may end a line.
    space = " " if " " in text else ""
    words = text.split(" ") if space else list(text)
    lengths = [len(line.strip()) for line in paragraph]
    lines: list[str] = []
    position, room, offset = 0, 0.0, 0
    for line, length in zip(paragraph, lengths, strict=True):
        room += len(text) * length / max(sum(lengths), 1)
        start = position
        # A word belongs to the line that contains its middle.
        while position < len(words) and (len(lines) == len(paragraph) - 1 or offset + len(words[position]) / 2 < room):
            offset += len(words[position]) + len(space)
            position += 1
        indent = line[: len(line) - len(line.lstrip())]
        lines.append((indent + space.join(words[start:position])).rstrip())
    return lines


def open_translator(job: TranslationJob, recall: Recall | None, threads: int) -> AnyTranslator:
    """Load the run or the runs of a job.

    With a pivot language, terms and a ranking belong to the second step, which the job's own run does.

    Raises:
        UserError: a run is damaged, does not fit on the device, or lacks what the job needs.
    """
    translator = Translator.open(
        RunFolder(job.run),
        job.configuration or RunFolder(job.run).configuration(),
        job.device,
        job.engine,
        others=job.others,
        threads=threads,
        adapter=job.adapter,
    )
    if job.interventions:
        translator = translator.with_interventions(*interventions_of(job.run, job.interventions))
    if job.formality:
        translator = translator.with_formality(job.formality)
    first_translator = None
    if job.first_step:
        first_translator = job.first_step.open(translator, job.device, job.engine, threads)
    elif recall:
        translator = shown_matches(translator, recall)
    if job.knn and recall:
        translator = translator.with_knn(recall.memory)
    if job.terms:
        translator = translator.with_terms(job.terms, inflect=job.inflect_terms, mode=job.terms_mode, domain=job.domain)
    translator = replace(translator, ranking=_ranking(job, translator))
    return PivotTranslator(first_translator, translator) if first_translator else translator


def _ranking(job: TranslationJob, translator: Translator) -> Ranking | None:
    if job.reverse:
        configuration, pipeline = translator.configuration, translator.pipeline
        return NoisyChannel.load(job.reverse, configuration, pipeline, job.device, job.channel_weights)
    return MinimumRisk(translator.pipeline, job.risk_candidates) if job.risk_candidates else None
