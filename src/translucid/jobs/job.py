"""What is to be done to each window, and the worker that does it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, Protocol, Self

from translucid import __version__
from translucid.api.segment_translator import links_between, shown_matches
from translucid.api.translation import Translation
from translucid.api.translator import WINDOW, Translator
from translucid.decoding.decoding_options import DecodingOptions
from translucid.engines.alignment_file import alignment_mark
from translucid.engines.choosing import EngineName
from translucid.engines.confidence_file import confidence_mark
from translucid.engines.minimum_risk import MinimumRisk
from translucid.engines.noisy_channel import WEIGHTS, ChannelWeights, NoisyChannel
from translucid.engines.ranking import Ranking
from translucid.engines.term_constraint import TermsMode
from translucid.engines.tuned import FILE as TUNED
from translucid.engines.tuned import SHORTLIST
from translucid.engines.validation_file import validation_mark
from translucid.evaluation.alignment_error import to_pharaoh
from translucid.ground.errors import UserError
from translucid.ground.reading import digest
from translucid.jobs.windows import Window
from translucid.jobs.wrapping import paragraphs, unwrapped, wrapped
from translucid.kernels.devices import same_sums_on_any_threads
from translucid.kernels.machine import cores
from translucid.memory.match import EXACT, Match
from translucid.memory.opening import open_memory
from translucid.memory.recall import Recall
from translucid.runs.adapters import Adapter
from translucid.runs.configuration import Configuration
from translucid.runs.run_folder import RunFolder

Say = Callable[[str], None]
"""Takes a line for the person who waits."""


@dataclass(frozen=True)
class Job:
    """Everything that decides what comes out for a text; it can be sent to another process."""

    run: Path
    options: DecodingOptions
    device: str = "auto"
    engine: EngineName = "auto"
    split_sentences: bool = True
    wrapped: bool = False
    """Whether the text is hard-wrapped, so that sentences go on from line to line."""
    form: Literal["text", "jsonl"] = "text"
    columns: int = 1
    """Translations of each line that are written."""
    alignments: bool = False
    token_scores: bool = False
    adapter: str | None = None
    """Of the run; see `Translator.use`."""
    configuration: Configuration | None = None
    """Of the run, if it has been read."""
    others: tuple[Path, ...] = ()
    """Runs whose probabilities are averaged with those of `run`."""
    reverse: Path | None = None
    """A run of the other direction, by which the hypotheses of a beam are ranked; see `NoisyChannel`."""
    channel_weights: ChannelWeights = WEIGHTS
    """Of that ranking."""
    risk_candidates: int = 0
    """Candidates of each sentence among which the one of minimum Bayes risk is taken; 0 for none."""
    memory: Path | None = None
    """A translation memory, or a corpus that is one; see `open_memory`."""
    memory_from: int = EXACT
    """Percent from which on its entries are used instead of translations."""
    terms: Path | None = None
    """A file of terms to apply; see `Translator.with_terms`."""
    inflect_terms: bool = False
    terms_mode: TermsMode = "auto"

    def identity(self, device: str) -> dict[str, Any]:
        """Return what must be equal for two jobs to write the same, given the kind of device that each works on."""
        folder = RunFolder(self.run)
        tuning = [file for name in (TUNED, SHORTLIST) if (file := self.run / name).exists()]
        return {
            "the version": __version__,
            "the model": folder.model_digest(),
            "the adapter": self.adapter and Adapter.find(self.adapter, folder).fingerprint,
            "the tokenizer": folder.tokenizer().fingerprint,
            "the configuration": digest(folder.config_file),
            "the languages": list(self.configuration.data.languages) if self.configuration else None,
            "the other runs": _runs(self.others),
            "the run of --rerank-with": _runs([self.reverse] if self.reverse else []),
            "the weights of --rerank-with": str(tuple(self.channel_weights)) if self.reverse else None,
            "--mbr": self.risk_candidates,
            "the memory": _state(self),
            "--memory-from": self.memory_from,
            "the terms": self.terms and digest(self.terms),
            "--inflect-terms": self.inflect_terms,
            "--terms-mode": self.terms_mode,
            "the tuning": " ".join(map(digest, tuning)) or None,
            "the alignment layer": alignment_mark(self.run) if self.alignments else None,
            "the validation scores": validation_mark(self.run),
            "the confidence": confidence_mark(self.run) if self.form == "jsonl" else None,
            "the device": device,
            "--engine": self.engine,
            "--format": self.form,
            "--alignments": self.alignments,
            "--token-scores": self.token_scores,
            "--split-sentences": self.split_sentences,
            "--wrapped": self.wrapped,
            "the number of columns": self.columns,
            "the window": WINDOW,
            **self.options.model_dump(),
        }

    @property
    def window(self) -> int:
        """See `AnyJob`."""
        return WINDOW

    def on(self, device: str) -> Self:
        """Return the same on another device."""
        return replace(self, device=device)

    def worker(self, threads: int | None = None) -> Worker:
        """Load the run."""
        return Worker(self, threads)


@dataclass(frozen=True)
class Done:
    """What came of a window."""

    text: bytes
    """What is written, line feeds included: one line for each of its lines, unless the job leaves some out."""
    warnings: list[tuple[int, str]] = field(default_factory=list)
    """(line, what the reader should know), lines counted from 0 within the window."""
    bad: list[tuple[int, str]] = field(default_factory=list)
    """(line, what is wrong with it), of lines that can't be read."""


class AnyJob(Protocol):
    """What a job must tell those that distribute it; it can be sent to another process."""

    @property
    def run(self) -> Path:
        """The run folder."""

    @property
    def device(self) -> str:
        """As it was asked for."""

    @property
    def wrapped(self) -> bool:
        """Whether lines belong together."""

    @property
    def window(self) -> int:
        """Lines that are worked on together."""

    def identity(self, device: str) -> dict[str, Any]:
        """Return what must be equal for two jobs to write the same."""

    def on(self, device: str) -> Self:
        """Return the same on another device."""

    def worker(self, threads: int | None = None) -> AnyWorker:
        """Load the run, to be used with so many threads."""


class AnyWorker(Protocol):
    """Does a job, window by window."""

    device: str

    def work(self, window: Window) -> tuple[Window, Done]:
        """Return a window, and what came of it."""

    def __call__(self, windows: Iterable[Window]) -> Iterator[tuple[Window, Done]]:
        """Work on windows in this process, in order."""


class Executor(Protocol):
    """A way to get windows translated: in this process, in several, on a cluster."""

    device: str
    """The kind of device at work: cpu, cuda or mps."""

    def __call__(self, windows: Iterable[Window]) -> Iterator[tuple[Window, Done]]:
        """Translate windows; the results come in the same order, with few windows in memory at a time.

        Raises:
            UserError: a worker died, or can't do it.
        """


class Worker:
    """Translates one window after the other."""

    def __init__(self, job: Job, threads: int | None = None) -> None:
        """Load the run folder, to be used with so many threads, or with all cores if not given.

        Raises:
            UserError: it is damaged, can't run there, or can't do what the job asks for.
        """
        same_sums_on_any_threads()
        self.job = job
        folder = RunFolder(job.run)
        configuration = job.configuration or folder.configuration()
        self.translator = Translator.open(
            folder,
            configuration,
            job.device,
            job.engine,
            others=job.others,
            threads=threads or cores(),
            adapter=job.adapter,
        )
        self.device = self.translator.engine.device_type
        memory = open_memory(job.memory, configuration.data.languages) if job.memory else None
        self.recall = Recall(memory, job.memory_from) if memory else None
        if self.recall:
            self.translator = shown_matches(self.translator, self.recall)
        if job.terms:
            self.translator = self.translator.with_terms(job.terms, inflect=job.inflect_terms, mode=job.terms_mode)
        self.translator = self.translator.ranked(_ranking(job, self.translator))
        if job.alignments and not self.translator.can_look():
            fix = "Omit --alignments."
            raise UserError("the model has no attention, so there are no alignments", file=job.run, fix=fix)

    def __call__(self, windows: Iterable[Window]) -> Iterator[tuple[Window, Done]]:
        """Work on windows in this process, in order."""
        return map(self.work, windows)

    def work(self, window: Window) -> tuple[Window, Done]:
        """Translate the lines of a window, also those that are not UTF-8; return it, and what came of it."""
        lines, first = window.lines, window.before.lines
        bad = [(i, "not UTF-8") for i, line in enumerate(lines) if not is_utf8(line)]
        texts = [line.decode("utf-8", errors="replace") for line in lines]
        groups = paragraphs(texts) if self.job.wrapped else [[i] for i in range(len(texts))]
        sources = [unwrapped([texts[i] for i in group]) if len(group) > 1 else texts[group[0]] for group in groups]
        known = [self.recall.used(source) if self.recall else None for source in sources]
        unknown = [source for source, match in zip(sources, known, strict=True) if not match]
        found = self.translator.stream(unknown, self.job.options, split=self.job.split_sentences, first=first)
        if self.job.form == "jsonl":
            found = self.translator.assessed(found)
        written, warnings = [], []
        for source, group, match in zip(sources, groups, known, strict=True):
            translation = None
            if match:
                text, line = match.target, partial(self._remembered, source, match)
            else:
                translation = next(found)
                text, line = translation.text, partial(self._line, translation)
            written += wrapped(text, [texts[i] for i in group]) if self.job.wrapped else [line()]
            if translation:
                warnings += [(group[0], warning) for warning in self._warnings(translation)]
        return window, Done("".join(f"{line}\n" for line in written).encode(), warnings, bad)

    def _remembered(self, source: str, match: Match) -> str:
        """Write a line of which the memory has the translation."""
        links = links_between(self.translator, source, match.target) if self.job.alignments else []
        if self.job.form != "jsonl":
            return f"{match.target}\t{to_pharaoh(links)}" if self.job.alignments else match.target
        record: dict[str, object] = {"source": source, "translation": match.target, **self._matches(source, "memory")}
        return json.dumps({**record, "alignment": links} if self.job.alignments else record, ensure_ascii=False)

    def _matches(self, source: str, origin: str) -> dict[str, object]:
        """Return what is told of the memory, if there is one."""
        if not self.recall:
            return {}
        return {"origin": origin, "matches": [match.record() for match in self.recall.shown(source)]}

    def _line(self, found: Translation) -> str:
        job = self.job
        if job.form == "jsonl":
            return json.dumps(self._record(found), ensure_ascii=False)
        columns = found.alternatives if job.columns > 1 else [found.text]
        return "\t".join([*columns, to_pharaoh(found.alignment)] if job.alignments else columns)

    def _record(self, found: Translation) -> dict[str, object]:
        job = self.job
        record: dict[str, object] = {"source": found.source, "translation": found.text, "score": round(found.score, 6)}
        record |= self._matches(found.source, "model")
        if job.columns > 1:
            record["alternatives"] = found.alternatives
            record["scores"] = [round(one.score, 6) for one in found.nbest]
        if self.translator.estimator:
            record["confidence"] = None if found.confidence is None else round(found.confidence, 4)
        if job.token_scores:
            # One list for each translation, a pair of piece and log-probability for each token.
            record["token_log_probabilities"] = [
                [(piece, round(value, 6)) for piece, value in one]
                for one in self.translator.token_log_probabilities(found)[: job.columns]
            ]
            record["word_probabilities"] = [(word, round(value, 6)) for word, value in found.word_probabilities]
        if job.alignments:
            record["alignment"] = found.alignment
        if job.terms:
            record["terms"] = [asdict(use) for use in found.terms]
        return {**record, "warnings": self._warnings(found)}

    def _warnings(self, found: Translation) -> list[str]:
        """Return what looks wrong; also in the attention, where alignments need it anyway."""
        return [*found.warnings, *(found.attention_warnings if self.job.alignments else [])]


def _ranking(job: Job, translator: Translator) -> Ranking | None:
    if job.reverse:
        configuration, pipeline = translator.configuration, translator.pipeline
        return NoisyChannel.load(job.reverse, configuration, pipeline, job.device, job.channel_weights)
    return MinimumRisk(translator.pipeline, job.risk_candidates) if job.risk_candidates else None


def _state(job: Job) -> str | None:
    """Return what tells what is in the memory, if there is one."""
    if not job.memory:
        return None
    configuration = job.configuration or RunFolder(job.run).configuration()
    with open_memory(job.memory, configuration.data.languages) as memory:
        return memory.state


def _runs(runs: Iterable[Path]) -> str | None:
    """Return what tells runs apart, if there are any."""
    marks = [RunFolder(run).model_digest() + digest(RunFolder(run).config_file) for run in runs]
    return " ".join(marks) or None


@contextmanager
def alone(job: AnyJob) -> Iterator[Executor]:
    """Work in this process."""
    yield job.worker()


def is_utf8(line: bytes) -> bool:
    """Say whether a line can be read."""
    try:
        line.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True
