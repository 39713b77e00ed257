"""The report on a student: a table, a Markdown page and a plot of its systems and its teachers; the Pareto front.

The systems are the teachers as they run, and the student with each engine and candidates.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import ctranslate2
import torch
from pydantic import BaseModel, ValidationError
from rich.table import Table

from bitext.pair import Pair
from bitext.reading import read_at_most
from translucid import __version__
from translucid.api.translator import Translator
from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.decoding.decoding_options import CandidateVocabulary
from translucid.distillation.measuring import ROUNDS, SECONDS, Measured, Measurements, Role, System, measure
from translucid.distillation.request import Bounds
from translucid.engines.tuned import Tuned, save_tuned
from translucid.engines.tuning import PAIRS, SENTENCES, Tuning, engine_for, write_lists
from translucid.ground.atomic import write_atomically
from translucid.ground.console import Console, table_of
from translucid.ground.errors import UserError
from translucid.inspection.plots.saving import save_figure
from translucid.kernels.machine import cores, instruction_set, processor
from translucid.models.protocol import SequenceModel
from translucid.runs.run_folder import RunFolder

FOLDER = "distillation"
"""The folder in the student's run folder."""
FIGURES, PAGE, SHORTLISTS = "report.json", "report.md", "shortlists.json"
PICTURES = "report.svg", "report.png"


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
        self.folder, self.student, self.teachers = student / FOLDER, student, teachers
        self.bounds, self.console = bounds, console

    def measure(
        self,
        test: list[str] | None = None,
        train: list[str] | None = None,
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
            train: files of training pairs, from which shortlists are learned; those of the student by default.
            source: the code of the source language, for multilingual models.
            target: the code of the target language.
            sentences: the largest number of test sentences.
            rounds: the number of times that each system is timed.
            seconds: the time for single sentences of a system each time; batches get the same time.

        Raises:
            UserError: a run is damaged, or files do not exist.
        """
        tuning = Tuning.of(self.student, console=self.console, train=train, valid=test, source=source, target=target)
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
        from translucid.distillation.plot import draw_report

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
