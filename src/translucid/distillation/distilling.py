"""Sequence-level knowledge distillation from beginning to end, or from where an earlier run of it was interrupted.

back-translate   text of the target language becomes pairs, if there is any
translate        the teacher translates all sources, and a hypothesis of each is chosen
filter           pairs are removed by rules and by the score of the reverse run
train            the student learns from the pairs, and one of its heads from the links between their words
int8             it is fine-tuned with quantized weights if it loses too much with 8 bits
measure          teacher and student are compared, and the best way to translate with the student is kept
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from bitext.reading import digest
from translucid.data.filtering import Skipped
from translucid.data.readers.corpus import read_lines
from translucid.distillation.report import Report
from translucid.distillation.request import SMALL, Request
from translucid.distillation.stages import Results, Stage, Stages
from translucid.distillation.student import FINE_TUNED, check_int8, chosen_preset, student_configuration, train_student
from translucid.distillation.training_pairs import (
    DISTILLED,
    PAIRS,
    REFERENCE,
    TEXT,
    Counts,
    ReverseScoreJob,
    as_json,
    filter_by_rules,
    filter_by_scores,
    sentences,
    summary_of,
    teacher_job,
    write_sources,
)
from translucid.ground.atomic import output
from translucid.ground.console import Console, progress_bar
from translucid.ground.errors import UserError
from translucid.ground.lock import locked_folder
from translucid.jobs.back_translating import BackTranslationJob, pair_summary
from translucid.jobs.job import LineJob, identity_of
from translucid.jobs.output import PartRecord
from translucid.jobs.running import executor_of, run_with_progress
from translucid.runs.run_folder import RunFolder
from translucid.runs.settings import flat
from translucid.runs.staging import discard

BACK_TRANSLATE = Stage("back-translate", "translating back", ("target.txt", "synthetic.tsv"))
TRANSLATE = Stage("translate", "translating", ("sources.tsv", "decoded.tsv", "valid.tsv", "test.tsv"))
FILTER = Stage("filter", "filtering", ("clean.tsv", "scores.txt", "distilled.tsv", "references.tsv"))
TRAIN = Stage("train", "training the student")
INT8 = Stage("int8", "checking weights of 8 bits", (FINE_TUNED,), repeatable=True)
REPORT = Stage("measure", "measuring", ("report.md",), repeatable=True)
STUDENT_PAIRS = "distilled.tsv", "references.tsv"
"""The files of pairs that the student learns from; the second is empty without references."""


def distill(
    request: Request,
    *,
    report: bool = True,
    overwrite: bool = False,
    console: Console | None = None,
    command: Sequence[str] | None = None,
) -> Results:
    """Distill a student; the run folder has it, and the folder `distillation` inside has the files of all stages.

    Args:
        request: runs, files and options.
        report: whether teacher and student are measured, and the best way to translate with the student is kept.
        overwrite: whether stages are repeated whose inputs have changed, and a run in the folder may be replaced.
        console: shows the progress; standard error by default.
        command: the arguments of the command `translucid`, for the provenance.

    Returns:
        The results of each stage, by its name.

    Raises:
        UserError: for every error that the user can correct.
        KeyboardInterrupt: the same request continues from there.
    """
    request.check()
    console = console or Console(stderr=True)
    planned = [TRANSLATE, FILTER, TRAIN]
    if request.target_text:
        planned.insert(0, BACK_TRANSLATE)
    if report:
        planned += [INT8, REPORT]
    stages = Stages(request.folder, planned, console, overwrite=overwrite)
    run = RunFolder(request.out)
    if not stages.begun(TRAIN):
        run.refuse_overwrite(overwrite)
    student_configuration(request, chosen_preset(request, 0), {})  # a wrong setting is reported before hours of work
    with locked_folder(request.folder, "distillation"):
        return _Distillation(request, stages, console).run_all(command)


class _Distillation:
    """The work of each stage."""

    def __init__(self, request: Request, stages: Stages, console: Console) -> None:
        self.request, self.stages, self.console = request, stages, console
        self.folder = request.folder

    def run_all(self, command: Sequence[str] | None) -> Results:
        """Run all stages in order, and return the results of each by its name."""
        request, stages = self.request, self.stages
        results: Results = {}
        if request.target_text:
            results[BACK_TRANSLATE.name] = stages.run(
                BACK_TRANSLATE, self._identity_of_back_translation(), self._back_translate
            )
        results[TRANSLATE.name] = stages.run(TRANSLATE, self._identity_of_translation(), self._translate)
        results[FILTER.name] = stages.run(FILTER, self._identity_of_filter(), self._filter)
        pairs = {name: digest for name, digest in stages.digests(FILTER).items() if name in STUDENT_PAIRS}

        def train() -> Results:
            return train_student(request, self._preset, self.files, console=self.console, command=command)

        identity = {**pairs, **self._identity_of_training()}
        stages.check(TRAIN, identity)
        if not stages.begun(TRAIN):  # an existing run may be replaced
            discard(RunFolder(request.out))
        results[TRAIN.name] = stages.run(TRAIN, identity, train)
        if REPORT in stages.stages:
            model_identity = {"the model": results[TRAIN.name]["model"]}
            results[INT8.name] = stages.run(INT8, model_identity, self._check_int8)
            results[REPORT.name] = stages.run(REPORT, self._identity_of_report(), self._report)
        return results

    @property
    def files(self) -> dict[str, list[Path]]:
        """The files of the student's training, by setting."""
        train = [self.folder / name for name in STUDENT_PAIRS if (self.folder / name).stat().st_size]
        return {"data.train": train, "data.valid": [self.folder / "valid.tsv"]}

    @property
    def _preset(self) -> str | None:
        """The preset of the student."""
        counts = self.stages.results(FILTER)
        return chosen_preset(self.request, sum(numbers["kept"] for numbers in counts.values()))

    def _run_job(
        self,
        stage: Stage,
        job: LineJob,
        input_name: str,
        output_name: str,
        total: int,
        summary: Callable[[PartRecord], str] = lambda record: "",
    ) -> None:
        """Run a job on a file of the folder, unless it was finished before the stage was interrupted."""
        if (self.folder / output_name).exists():  # it appears when it is complete
            return
        executor = executor_of(job, self.request.workers)
        stream = (self.folder / input_name).open("rb")
        run_with_progress(
            job, stream, self.folder / output_name, executor, self.stages.label(stage), total=total, summary=summary
        )

    def _identity_of_back_translation(self) -> dict[str, Any]:
        request = self.request
        assert request.reverse
        return {**identity_of(request.reverse), "`target_text`": request.digests(request.target_text)}

    def _back_translate(self) -> Results:
        request, folder = self.request, self.folder
        configuration = request.reverse_configuration
        assert request.reverse and configuration
        skipped = Skipped()
        with output(folder / "target.txt") as stream:
            for sentence in sentences(request.target_text, configuration.data.languages[0], skipped):
                stream.write(f"{sentence}\n".encode())
        job = BackTranslationJob(
            request.reverse,
            configuration.decoding_with({}),
            device=request.device,
            engine=request.engine,
            split_sentences=False,
            configuration=configuration,
        )
        self._run_job(BACK_TRANSLATE, job, "target.txt", "synthetic.tsv", skipped.kept, pair_summary)
        if not (folder / "synthetic.tsv").stat().st_size:
            raise UserError("gave no pair at all", file=request.target_text[0], fix="Is this the right file?")
        pairs = sum(1 for _ in read_lines(folder / "synthetic.tsv"))
        return {**as_json({TEXT: skipped}), "synthetic": pairs}

    def _identity_of_translation(self) -> dict[str, Any]:
        request = self.request
        identity = teacher_job(request).identity("any device")
        for name in ("pairs", "text", "valid", "test"):
            identity[f"`{name}`"] = request.digests(getattr(request, name))
        return identity | self.stages.digests(BACK_TRANSLATE)

    def _translate(self) -> Results:
        request, folder = self.request, self.folder
        synthetic = folder / "synthetic.tsv" if request.target_text else None
        with self.console.status(f"{self.stages.label(TRANSLATE)}: reading the corpora", is_long=True):
            counts = write_sources(
                request, synthetic, folder / "sources.tsv", folder / "valid.tsv", folder / "test.tsv"
            )
        results = as_json(counts)
        self.console.print(summary_of(results), soft_wrap=True)
        total = counts[PAIRS].kept + counts[TEXT].kept
        self._run_job(TRANSLATE, teacher_job(request), "sources.tsv", "decoded.tsv", total)
        return results

    @property
    def _keeps_references(self) -> bool:
        """Whether the student also learns from the references."""
        if self.request.keep_references is not None:
            return self.request.keep_references
        return self.stages.results(TRANSLATE)[PAIRS]["kept"] <= SMALL

    def _identity_of_filter(self) -> dict[str, Any]:
        request = self.request
        identity: dict[str, Any] = {
            **self.stages.digests(TRANSLATE),
            "the languages": list(request.configuration.data.languages),
            "`keep_references`": self._keeps_references,
        }
        if request.reverse:
            identity |= {f"{name} of `reverse`": value for name, value in identity_of(request.reverse).items()}
            identity["`filter_worst`"] = request.filter_worst
        return identity

    def _filter(self) -> Results:
        request, folder = self.request, self.folder
        files = {DISTILLED: folder / "clean.tsv", REFERENCE: folder / "references.tsv"}
        collected = self.stages.results(TRANSLATE)
        total = collected[PAIRS]["kept"] + collected[TEXT]["kept"]
        if self._keeps_references:
            total += collected[PAIRS]["kept"]
        with progress_bar(self.console, self.stages.label(FILTER), total) as advance:
            counts = filter_by_rules(
                folder / "decoded.tsv",
                files,
                request.configuration.data.languages,
                references=self._keeps_references,
                advance=advance,
            )
        self._remove_worst(counts)
        results = as_json(counts)
        self.console.print(summary_of(results), soft_wrap=True)
        if not counts[DISTILLED].kept:
            fix = "Does the teacher translate these files, and in this direction?"
            raise UserError(f"no distilled pair is left ({summary_of(results)})", file=request.teachers[0], fix=fix)
        return results

    def _remove_worst(self, counts: Counts) -> None:
        """Write the distilled pairs without those with the worst scores by the reverse run, if there is one."""
        request, folder = self.request, self.folder
        clean, distilled = folder / "clean.tsv", folder / "distilled.tsv"
        if not request.reverse:
            clean.replace(distilled)
            return
        job = ReverseScoreJob(request.reverse, device=request.device, forward=request.configuration)
        self._run_job(FILTER, job, "clean.tsv", "scores.txt", counts[DISTILLED].kept)
        filter_by_scores(clean, folder / "scores.txt", request.filter_worst, distilled, counts)

    def _identity_of_training(self) -> dict[str, Any]:
        """Return the settings of the student, but for the names of its files and the versions."""
        configuration = student_configuration(self.request, self._preset, {})
        settings = flat(configuration.model_dump(mode="json", exclude={"versions"}))
        del settings["training.teachers"]  # folders may be moved
        if self.request.word_level is not None:
            settings["the teachers"] = [RunFolder(run).model_digest() for run in self.request.teachers]
        return {**settings, "the validation pairs": digest(self.folder / "valid.tsv")}

    def _check_int8(self) -> Results:
        source, target = self.request.configuration.data.languages
        check = check_int8(
            self.request.out, console=self.console, source=source, target=target, device=self.request.device
        )
        if check is None:
            self.console.print("not checked: CTranslate2 does not run such models")
            return {}
        self.console.print(str(check), soft_wrap=True)
        return check.model_dump(mode="json")

    def _identity_of_report(self) -> dict[str, Any]:
        runs = [self.request.out, *self.request.teachers]
        pairs = {name: self.stages.digests(TRANSLATE).get(name) for name in ("valid.tsv", "test.tsv")}
        return {
            **pairs,
            "the models": [RunFolder(run).model_digest() for run in runs],
            "bounds": list(self.request.bounds),
        }

    def _report(self) -> Results:
        request, test = self.request, self.folder / "test.tsv"
        source, target = request.configuration.data.languages
        notes = [
            f"Sentences to translate: {summary_of(self.stages.results(TRANSLATE))}.",
            f"Learned from {summary_of(self.stages.results(FILTER))}.",
        ]
        report = Report(request.out, request.teachers, request.bounds, self.console, notes)
        measurements = report.measure([str(test)] if test.exists() else None, source=source, target=target)
        self.console.print(report.table(measurements))
        for note in report.notes(measurements):
            self.console.print(note, soft_wrap=True)
        best_system = request.bounds.best(measurements)
        if best_system is None:
            smaller = "Choose a smaller `preset`, or fewer pieces with `data.tokenizer.vocabulary=N`"
            self.console.print(f"warning: no student is within {request.bounds}. {smaller}", soft_wrap=True)
            return {"chosen": None}
        report.adopt(best_system)
        self.console.print(
            f"{request.out} is translated by {best_system.name}, beam {best_system.beam}", soft_wrap=True
        )
        return {"chosen": best_system.model_dump(mode="json")}
