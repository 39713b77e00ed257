"""The report on a student: its systems and those of its teachers, measured in turn; the Pareto front.

The systems are the teachers as they run, and the student with each engine and candidates. BLEU and chrF, the time for
one sentence, throughput and size on disk are in a table, on a Markdown page and in a plot.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from statistics import median
from typing import Literal, NamedTuple, Self, TypeAlias

import ctranslate2
import torch
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from rich.table import Table

from bitext.pair import Pair
from bitext.reading import read_at_most
from translucid import __version__
from translucid.api.translator import Translator
from translucid.data.readers.corpus import sources_of, targets_of
from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.decoding.decoding_options import CandidateVocabulary
from translucid.engines import ALLOWED
from translucid.engines.tuned import ResultFile, Tuned, save_tuned
from translucid.engines.tuning import PAIRS, SENTENCES, Tuning, engine_for, write_lists
from translucid.evaluation.metrics import Criterion
from translucid.ground.atomic import write_atomically
from translucid.ground.console import Console, progress_bar, table_of
from translucid.ground.errors import UserError
from translucid.inspection.plots import SERIES, new_figure, save_figure
from translucid.kernels.machine import cores, instruction_set, processor
from translucid.models.protocol import SequenceModel
from translucid.runs.run_folder import DISTILLATION, RunFolder

FIGURES, PAGE, SHORTLISTS = "report.json", "report.md", "shortlists.json"
PICTURES = "report.svg", "report.png"


ROUNDS = 3
"""The number of times that each system is timed; the median counts."""
SECONDS = 1.0
"""The time for single sentences of a system in a round; batches get the same time."""
ALONE = 40
"""The largest number of sentences that are translated one at a time in a round."""
FEWEST_ALONE = 5
"""The smallest number of them, however slow the system is."""
FEWEST_TOGETHER = 64
"""The smallest number of sentences that are translated together."""
MOST_BYTES = 1 << 22
"""The largest size of a saved report, in bytes."""
MEGABYTE = 1e6

Role: TypeAlias = Literal["teacher", "student"]


class Round(BaseModel):
    """The speed of a system in one round."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    milliseconds: float
    """The median time for a sentence that is translated alone."""
    sentences_per_second: float
    """The number of sentences that are translated in a second, many together."""
    words_per_second: float
    """The number of source words, separated by white space, that are translated in a second, many together."""


class Measured(BaseModel):
    """The figures of one system."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    role: Role
    tuned: Tuned
    """The engine, its weights and its candidates."""
    beam: int
    bleu: float
    chrf: float
    bytes: int
    """The size on disk of all that the system needs: the exported folder with its tokenizer, or the run folders."""
    seconds: float
    """The time of the first translation of all sentences, by which the size of a batch of later ones is chosen."""
    rounds: list[Round] = []

    @property
    def name(self) -> str:
        """The name of the system, without its beam."""
        weights: str = self.tuned.quantization
        if self.tuned.engine == "torch":
            weights += ", our search"
        return f"{self.role}, {weights}{CANDIDATES[self.tuned.considered]}"

    @property
    def megabytes(self) -> float:
        """The size on disk in 10^6 bytes."""
        return self.bytes / MEGABYTE

    @property
    def milliseconds(self) -> float:
        """The time for one sentence: the median of the rounds."""
        return median(figures.milliseconds for figures in self.rounds)

    @property
    def sentences_per_second(self) -> float:
        """The throughput in sentences: the median of the rounds."""
        return median(figures.sentences_per_second for figures in self.rounds)

    @property
    def words_per_second(self) -> float:
        """The throughput in source words: the median of the rounds."""
        return median(figures.words_per_second for figures in self.rounds)


CANDIDATES: dict[CandidateVocabulary, str] = {
    "all pieces": "",
    "seen pieces": ", target-side vocabulary",
    "small shortlist": ", small shortlist",
    "large shortlist": ", large shortlist",
}
"""The part of a system's name that describes its candidates."""


class Measurements(ResultFile):
    """The figures of all systems, complete or not."""

    key: str
    """A fingerprint of everything that the figures depend on, but the machine."""
    machine: str
    """The processor, its cores and its instructions."""
    busy: float = 0.0
    """The highest load average of the last minute, the number of threads that were running or waiting for a core."""
    sentences: int
    """The number of test sentences."""
    metric: Literal["BLEU", "chrF"] = "BLEU"
    """The metric by which systems are compared: chrF where references are too short for BLEU, or BLEU is too low."""
    signatures: list[str] = Field(default_factory=list)
    """sacreBLEU's signatures of BLEU and chrF."""
    count: int | None = None
    """The number of systems; None as long as they have not been opened."""
    systems: list[Measured] = Field(default_factory=list)

    @classmethod
    def resumed(cls, file: Path, empty: Measurements) -> Measurements:
        """Return what a file has of the same systems on the same machine; `empty` if it has nothing."""
        with suppress(OSError, ValidationError):
            saved = cls.model_validate_json(read_at_most(file, MOST_BYTES))
            if (saved.key, saved.machine) == (empty.key, empty.machine):
                return saved
        return empty

    def complete(self, rounds: int) -> bool:
        """Return whether all systems are measured."""
        done = [len(system.rounds) >= rounds for system in self.systems]
        return self.count is not None and len(done) == self.count and all(done)

    def score(self, system: Measured) -> float:
        """Return the score of a system by the metric."""
        return system.bleu if self.metric == "BLEU" else system.chrf

    def with_system(self, index: int, system: Measured) -> Self:
        """Return measurements with other figures of the system at an index, or with a new one at the end."""
        systems = [*self.systems]
        systems[index : index + 1] = [system]
        return self.model_copy(update={"systems": systems})


_UNITS = {
    "ms": ("milliseconds", 1.0),
    "s": ("milliseconds", 1000.0),
    "MB": ("megabytes", 1.0),
    "kB": ("megabytes", 1e-3),
    "GB": ("megabytes", 1e3),
    "MiB": ("megabytes", (1 << 20) / MEGABYTE),
    "KiB": ("megabytes", (1 << 10) / MEGABYTE),
}
"""What each unit is of, and how many milliseconds or megabytes it is."""


class Bounds(NamedTuple):
    """Bounds on the time for one sentence and on the size on disk."""

    milliseconds: float | None = None
    megabytes: float | None = None

    @classmethod
    def of(cls, *limits: str) -> Self:
        """Read bounds such as `5ms` and `10MB`.

        Raises:
            UserError: a bound is not a positive number with a unit of time or size.
        """
        units = {unit.lower(): meaning for unit, meaning in _UNITS.items()}
        bounds = {}
        for limit in limits:
            match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-z]+)\s*", limit.lower(), re.ASCII)
            if not match or match[2] not in units or not float(match[1]):
                what = f"`limit` {limit!r} is not a positive number with a unit ({', '.join(_UNITS)})"
                raise UserError(what, fix="Examples: 5ms, 10MB.")
            name, factor = units[match[2]]
            bounds[name] = float(match[1]) * factor
        return cls(**bounds)

    def __str__(self) -> str:
        parts = []
        if self.milliseconds is not None:
            parts.append(f"{self.milliseconds:g} ms per sentence")
        if self.megabytes is not None:
            parts.append(f"{self.megabytes:g} MB")
        return " and ".join(parts)

    def met_by(self, system: Measured) -> bool:
        """Return whether a system is within the bounds."""
        fast = self.milliseconds is None or system.milliseconds <= self.milliseconds
        small = self.megabytes is None or system.megabytes <= self.megabytes
        return fast and small

    def best(self, measurements: Measurements, allowed: float = ALLOWED) -> Measured | None:
        """Return the best student within the bounds; None if there is none.

        Of those whose score is at most `allowed` below that of the best, it is the one with the shortest time for a
        sentence.
        """
        candidates = [system for system in measurements.systems if system.role == "student" and self.met_by(system)]
        if not candidates:
            return None
        threshold = max(map(measurements.score, candidates)) - allowed
        acceptable = [system for system in candidates if measurements.score(system) >= threshold]
        return min(acceptable, key=lambda system: system.milliseconds)


UNBOUNDED = Bounds()


@dataclass(frozen=True)
class System:
    """A system that is ready to translate."""

    role: Role
    tuned: Tuned
    translator: Translator
    beam: int
    bytes: int
    """The size on disk of all that it needs."""

    def translate(self, texts: Sequence[str]) -> list[str]:
        """Translate sentences, none of which is split."""
        options = self.translator.configuration.decoding.model_copy(update={"beam": self.beam, "nbest": 1})
        translations = self.translator.translate(texts, options, split=False)
        return [translation.text for translation in translations]


def measure(
    systems: Sequence[System],
    pairs: Sequence[Pair],
    measurements: Measurements,
    file: Path,
    *,
    console: Console,
    language: str | None = None,
    rounds: int = ROUNDS,
    seconds: float = SECONDS,
) -> Measurements:
    """Score each system once, and time all of them in rounds; return what was measured.

    The figures are saved after each step. What `measurements` already has is not measured again.

    Args:
        systems: the systems.
        pairs: the test sentences with references.
        measurements: the figures that there are; its systems are the first of `systems`.
        file: the file with the figures.
        console: shows the progress.
        language: the code of the target language, if it is known.
        rounds: the number of rounds.
        seconds: the time for single sentences of a system in a round; batches get the same time.
    """
    sources = sources_of(pairs)
    measurements = measurements.model_copy(update={"count": len(systems)})
    steps = len(systems) * (1 + rounds) - len(measurements.systems)
    for saved in measurements.systems:
        steps -= len(saved.rounds)
    with progress_bar(console, "measuring", steps) as advance:
        criterion = Criterion([targets_of(pairs)], language)
        for index in range(len(measurements.systems), len(systems)):
            measurements = _score_system(systems[index], sources, criterion, measurements)
            measurements.write(file)
            advance(1)
        # The systems take turns, so that a time at which the machine is busy slows all of them down.
        texts = Random(1).sample(sources, len(sources))
        for number in range(rounds):
            for index, system in enumerate(systems):
                measured = measurements.systems[index]
                if len(measured.rounds) > number:
                    continue
                timed = _time_system(system, texts, measured.seconds, seconds)
                measured = measured.model_copy(update={"rounds": [*measured.rounds, timed]})
                busy = max(measurements.busy, load_average())
                measurements = measurements.with_system(index, measured).model_copy(update={"busy": busy})
                measurements.write(file)
                advance(1)
    return measurements


def load_average() -> float:
    """Return the load average of the last minute; 0 where the system has none."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0


def _score_system(
    system: System, sources: Sequence[str], criterion: Criterion, measurements: Measurements
) -> Measurements:
    """Add a system with its scores; the first one decides on the metric."""
    started = time.perf_counter()
    texts = system.translate(sources)
    elapsed = time.perf_counter() - started
    if not measurements.systems:
        criterion.choose_metric(texts)
        measurements = measurements.model_copy(update={"metric": criterion.name})
    bleu, chrf = criterion.scores(texts)
    signatures = [f"{score.name}|{score.signature}" for score in (bleu, chrf)]
    measured = Measured(
        role=system.role,
        tuned=system.tuned,
        beam=system.beam,
        bleu=bleu.value,
        chrf=chrf.value,
        bytes=system.bytes,
        seconds=elapsed,
    )
    with_signatures = measurements.model_copy(update={"signatures": signatures})
    return with_signatures.with_system(len(measurements.systems), measured)


def _time_system(system: System, texts: Sequence[str], total_seconds: float, seconds: float) -> Round:
    """Time a system.

    Args:
        system: the system.
        texts: sentences in random order.
        total_seconds: the time in which the system translates all of them, roughly.
        seconds: the time for single sentences; batches get the same time.
    """
    system.translate(texts[:1])  # its memory has been displaced from the processor's cache by other systems
    times = []
    deadline = time.perf_counter() + seconds
    for text in texts[:ALONE]:
        started = time.perf_counter()
        system.translate([text])
        ended = time.perf_counter()
        times.append(ended - started)
        if ended > deadline and len(times) >= FEWEST_ALONE:
            break
    size = max(FEWEST_TOGETHER, int(len(texts) * seconds / max(total_seconds, 1e-9)))
    batch = texts[:size]
    repetitions = 0
    started = time.perf_counter()
    deadline = started + seconds
    while not repetitions or time.perf_counter() < deadline:
        system.translate(batch)
        repetitions += 1
    elapsed = time.perf_counter() - started
    words = sum(len(text.split()) for text in batch)
    return Round(
        milliseconds=1000 * median(times),
        sentences_per_second=repetitions * len(batch) / elapsed,
        words_per_second=repetitions * words / elapsed,
    )


def pareto_front(systems: Sequence[Measured], measurements: Measurements) -> list[Measured]:
    """Return the systems that no other one dominates, the fastest first.

    A system dominates another one if it is at least as good and as fast, and better in one of the two. Quality is the
    score by the metric of the measurements, speed the time for one sentence.
    """
    front: list[Measured] = []
    # The better of two equally fast ones comes first.
    for system in sorted(systems, key=lambda system: (system.milliseconds, -measurements.score(system))):
        if not front or measurements.score(system) > measurements.score(front[-1]):
            front.append(system)
    return front


class Report:
    """The report on a student, in the folder `distillation` of its run."""

    def __init__(
        self, student: Path, teachers: Sequence[Path], bounds: Bounds, console: Console, data: Sequence[str] = ()
    ) -> None:
        """Describe a report, and measure nothing yet.

        Args:
            student: the run folder of the student.
            teachers: the run folders of the teacher, or of an ensemble.
            bounds: the bounds on the student.
            console: shows the progress.
            data: notes on the data from which the student has learned.
        """
        self.data = data
        self.folder, self.student, self.teachers = student / DISTILLATION, student, teachers
        self.bounds, self.console = bounds, console

    def measure(
        self,
        test: list[str] | None = None,
        *,
        source: str | None = None,
        target: str | None = None,
        sentences: int = SENTENCES,
        rounds: int = ROUNDS,
        seconds: float = SECONDS,
    ) -> Measurements:
        """Measure all systems, and write the page and the plots; what was measured before is not measured again.

        Args:
            test: files of test pairs; the validation pairs of the student by default.
            source: the code of the source language, for multilingual models.
            target: the code of the target language.
            sentences: the largest number of test sentences.
            rounds: the number of times that each system is timed.
            seconds: the time for single sentences of a system each time; batches get the same time.

        Raises:
            UserError: a run is damaged, or files do not exist.
        """
        tuning = Tuning.of(self.student, console=self.console, valid=test, source=source, target=target)
        pairs = tuning.corpora.valid[:sentences]
        if not pairs:
            raise UserError("there are no sentences to measure with", file=self.student, fix="Give them with `test`.")
        self.folder.mkdir(exist_ok=True)
        file, key = self.folder / FIGURES, self._key(tuning, pairs)
        empty = Measurements(key=key, machine=machine(), sentences=len(pairs))
        measurements = Measurements.resumed(file, empty)
        if not measurements.complete(rounds):
            language = tuning.configuration.data.languages[1]
            with tempfile.TemporaryDirectory(prefix="translucid-") as name:
                measurements = measure(
                    self._systems(tuning, key, Path(name), source, target),
                    pairs,
                    measurements,
                    file,
                    console=self.console,
                    language=language,
                    rounds=rounds,
                    seconds=seconds,
                )
        self._write(measurements)
        return measurements

    def _systems(self, tuning: Tuning, key: str, folder: Path, source: str | None, target: str | None) -> list[System]:
        """Open all systems; the files of their shortlists are in `folder`."""
        shortlists = Shortlists.of(tuning, self.folder / SHORTLISTS, key)
        lists = write_lists(shortlists.lists, folder)
        return [*teacher_systems(self.teachers, source, target), *student_systems(tuning, lists)]

    def _key(self, tuning: Tuning, pairs: Sequence[Pair]) -> str:
        """Return a fingerprint of everything that the figures depend on, but the machine."""
        inputs = {
            "runs": [RunFolder(run).model_digest() for run in (self.student, *self.teachers)],
            "tokenizer": tuning.tokenizer.fingerprint,
            "decoding": tuning.configuration.decoding.model_dump(exclude={"beam"}),
            "languages": tuning.configuration.data.languages,
            "training text": tuning.corpora.digest,
            "pairs": pairs,
            "versions": [__version__, ctranslate2.__version__, torch.__version__],
        }
        return hashlib.sha256(json.dumps(inputs, sort_keys=True).encode()).hexdigest()

    def _write(self, measurements: Measurements) -> None:
        """Write the page and the plots."""
        write_atomically(self.folder / PAGE, self.markdown(measurements).encode())
        figure = draw_report(measurements, pareto_front(measurements.systems, measurements))
        for name in PICTURES:
            save_figure(figure, self.folder / name)

    def markdown(self, measurements: Measurements) -> str:
        """Return the report as a Markdown page."""
        lines = [f"# {self.student.name}: quality, speed and size", ""]
        lines += ["| " + " | ".join(COLUMNS) + " |", "|---|" + "---:|" * (len(COLUMNS) - 2) + "---|"]
        for row in rows(measurements, self.bounds):
            lines.append("| " + " | ".join(row) + " |")
        lines += ["", f"![{measurements.metric} and time for one sentence]({PICTURES[0]})", ""]
        for note in self.notes(measurements):
            lines.append(f"- {note}")
        return "\n".join(lines) + "\n"

    def table(self, measurements: Measurements) -> Table:
        """Return the table for the terminal."""
        system_column, *figures, mark = COLUMNS
        table = table_of(system_column, figures=figures)
        table.add_column(mark)
        for row in rows(measurements, self.bounds):
            table.add_row(*row)
        return table

    def notes(self, measurements: Measurements) -> Iterator[str]:
        """Yield the conditions of the measurement, and whether the bounds are met."""
        teachers = " + ".join(run.name for run in self.teachers)
        yield f"Teacher: {teachers}. Student: {self.student.name}. Test sentences: {measurements.sentences:,}."
        yield from self.data
        busy = ""
        if measurements.busy > cores() + 1:  # the measurement itself keeps all cores at work
            busy = ": other programs were running, so compare the systems with one another only"
        yield f"{measurements.machine}; load average at most {measurements.busy:.1f}{busy}."
        yield (
            "ms: median time for a sentence that is translated alone. Sentences/s and source words/s: many sentences "
            "together. Systems were timed in turn, in rounds; the median of the rounds counts."
        )
        yield "MB: the exported folder with its tokenizer, or what our search needs of the run folders."
        yield from measurements.signatures
        if any(self.bounds):
            best = self.bounds.best(measurements)
            answer = f"met by {best.name}, beam {best.beam}" if best else "met by no student"
            yield f"{self.bounds}: {answer}."

    def adopt(self, system: Measured) -> None:
        """Save the engine, weights, candidates and beam of a student as the defaults of its run."""
        shortlist = None
        if system.tuned.considered != "all pieces":
            shortlist = Shortlists.read(self.folder / SHORTLISTS).lists[system.tuned.considered]
        save_tuned(self.student, system.tuned, shortlist)
        folder = RunFolder(self.student)
        configuration = folder.configuration()
        decoding = configuration.decoding.model_copy(update={"beam": system.beam})
        folder.save_configuration(configuration.model_copy(update={"decoding": decoding}))


COLUMNS = "system", "beam", "BLEU", "chrF", "ms", "sentences/s", "words/s", "MB", ""


def rows(measurements: Measurements, bounds: Bounds) -> Iterator[list[str]]:
    """Yield the figures of each system as texts, with marks of the front and of the best student within the bounds."""
    front = pareto_front(measurements.systems, measurements)
    best = bounds.best(measurements)
    for system in measurements.systems:
        marks = []
        if system in front:
            marks.append("front")
        if system == best:
            marks.append("← chosen")
        yield [
            system.name,
            str(system.beam),
            f"{system.bleu:.2f}",
            f"{system.chrf:.2f}",
            f"{system.milliseconds:.2f}",
            f"{system.sentences_per_second:,.0f}",
            f"{system.words_per_second:,.0f}",
            f"{system.megabytes:.2f}",
            " ".join(marks),
        ]


def machine() -> str:
    """Return the processor, the number of its cores that this process may use, and its instructions."""
    return ", ".join(filter(None, [f"{cores()} cores of {processor()}", instruction_set()]))


BEAMS = 5, 1
"""The beams that each system is measured with."""
LARGEST = 1 << 27
"""The largest size of the file with shortlists, in bytes."""


class Shortlists(BaseModel):
    """The lists of candidates of a model, as `translucid tune` makes them."""

    key: str
    """A fingerprint of the model and of the corpora."""
    lists: dict[CandidateVocabulary, str]

    @classmethod
    def of(cls, tuning: Tuning, file: Path, key: str) -> Shortlists:
        """Read the lists from a file, or learn them from the training pairs of the run and save them there."""
        with suppress(OSError, ValidationError):
            saved = cls.read(file)
            if saved.key == key:
                return saved
        pairs = 0
        if tuning.configuration.model.has_cross_attention and tuning.data.train:
            pairs = PAIRS
        shortlists = cls(key=key, lists=tuning.lists(pairs))
        write_atomically(file, shortlists.model_dump_json().encode())
        return shortlists

    @classmethod
    def read(cls, file: Path) -> Shortlists:
        """Read the lists from a file."""
        return cls.model_validate_json(read_at_most(file, LARGEST))


def teacher_systems(teachers: Sequence[Path], source: str | None, target: str | None) -> list[System]:
    """Return a teacher as `translate` runs it, or an ensemble of several, with each beam.

    Raises:
        UserError: a run is damaged, or they can't be averaged.
    """
    first, *others = teachers
    translator = Translator.load(first, "cpu", source=source, target=target, others=others)
    engine, weights, candidates = str(translator.engine).split(", ")
    tuned = Tuned.model_validate({"engine": engine, "quantization": weights, "considered": candidates})
    return _systems("teacher", translator, tuned, teachers, tuned.shortlist(first))


def student_systems(tuning: Tuning, lists: Mapping[CandidateVocabulary, Path]) -> list[System]:
    """Return a student with each kind of weights and candidates, and each beam."""
    run = tuning.folder.path
    translator = Translator.open(tuning.folder, tuning.configuration, "cpu", "torch")
    systems = []
    for tuned in _systems_to_report(tuning.configurations(lists)):
        shortlist = lists.get(tuned.considered)
        engine = engine_for(translator.torch_engine, translator.tokenizer, tuned, shortlist)
        systems += _systems("student", replace(translator, engine=engine), tuned, [run], shortlist)
    return systems


def _systems_to_report(configurations: Sequence[Tuned]) -> list[Tuned]:
    """Leave out our search if CTranslate2 runs the model, and lists of candidates with float32 weights."""
    if configurations[0].engine == "torch":
        return list(configurations)
    reported = []
    for tuned in configurations:
        has_shortlist = tuned.considered != "all pieces"
        if tuned.engine == "ctranslate2" and not (has_shortlist and tuned.quantization == "float32"):
            reported.append(tuned)
    return reported


def _systems(
    role: Role, translator: Translator, tuned: Tuned, runs: Sequence[Path], shortlist: Path | None
) -> list[System]:
    """Return the same system with each beam."""
    if tuned.engine == "ctranslate2":
        size = exported_size(translator.torch_engine.model, translator.tokenizer, tuned, shortlist)
    else:
        size = run_size(runs, shortlist)
    return [System(role, tuned, translator, beam, size) for beam in BEAMS]


def exported_size(model: SequenceModel, tokenizer: Tokenizer, tuned: Tuned, shortlist: Path | None) -> int:
    """Return the bytes of the folder to which a model is exported for CTranslate2, with its tokenizer and shortlist."""
    from translucid.engines.ctranslate2.convert import save_ctranslate2

    with tempfile.TemporaryDirectory(prefix="translucid-") as name:
        folder = Path(name)
        save_ctranslate2(model, tokenizer, folder, tuned.quantization, shortlist)
        tokenizer.save(folder)
        return sum(file.stat().st_size for file in folder.iterdir())


def run_size(runs: Sequence[Path], shortlist: Path | None) -> int:
    """Return the bytes of what our search needs of runs: weights, configurations, the tokenizer that they share."""
    files = [shortlist] if shortlist else []
    for run in runs:
        folder = RunFolder(run)
        files += [folder.model_file, folder.config_file]
    tokenizers = [runs[0] / name for name in ("tokenizer.model", "source.model", "target.model")]
    return sum(file.stat().st_size for file in [*files, *tokenizers] if file.exists())


_MARKERS = {1: "v", 5: "o"}
"""The marker of each beam."""


def draw_report(measurements: Measurements, front: Sequence[Measured]) -> Figure:
    """Draw a point for each system: its score, and the time for one sentence on a logarithmic axis.

    Names are in a legend beside the plot, where they can't overlap. A line joins the systems of the Pareto front.
    """
    figure = new_figure(9, 4.8)
    axes = figure.subplots()
    # Between two systems of the front, the faster one is the best within the time.
    times = [system.milliseconds for system in front]
    scores = list(map(measurements.score, front))
    axes.step(times, scores, where="post", color="gray", linewidth=1, zorder=1)
    colors: dict[str, str] = {}
    for system in measurements.systems:
        color = colors.setdefault(system.name, SERIES[len(colors) % len(SERIES)])
        face = color if system in front else "none"
        axes.plot(
            system.milliseconds,
            measurements.score(system),
            marker=_MARKERS.get(system.beam, "s"),
            markersize=8,
            color=color,
            markerfacecolor=face,
            linestyle="none",
        )
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set(xlabel="ms for one sentence", ylabel=measurements.metric)
    axes.set_title("quality and speed; filled: on the Pareto front", fontsize=10)
    axes.grid(alpha=0.3)
    axes.margins(0.08)
    figure.legend(handles=_handles(measurements, colors), loc="outside right upper", fontsize=8)
    return figure


def _handles(measurements: Measurements, colors: dict[str, str]) -> list[Line2D]:
    """Return the entries of the legend: a line for each name, a marker for each beam, and the front."""
    handles = [Line2D([], [], color=color, linewidth=4, label=name) for name, color in colors.items()]
    beams = {system.beam for system in measurements.systems}
    for beam in sorted(beams, reverse=True):
        label = "greedy" if beam == 1 else f"beam {beam}"
        marker = _MARKERS.get(beam, "s")
        handles.append(Line2D([], [], marker=marker, color="black", linestyle="none", label=label))
    return [*handles, Line2D([], [], color="gray", linewidth=1, label="Pareto front")]
