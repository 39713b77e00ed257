"""`translucid distill`.

**Examples**

A teacher translates the sources of your pairs, and a small student learns its translations:

    translucid distill runs/teacher --pairs pairs.tsv --valid dev.tsv --out runs/student

Use several teachers, more text, and a run of the reverse direction that removes bad translations:

    translucid distill runs/a runs/b --pairs pairs.tsv --text news.en.gz --reverse runs/reverse --out runs/student

Choose the student yourself:

    translucid distill runs/teacher --pairs pairs.tsv --out runs/student --preset student-tiny --set model.width=192
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

import typer
from typer import Argument, Option

from translucid.cli import option
from translucid.cli.arguments import pair_up
from translucid.cli.printing import with_examples

if TYPE_CHECKING:
    from translucid.distillation.request import Request


class Data(NamedTuple):
    """Data."""

    out: Annotated[Path, Option(help="The run folder of the student; its folder distillation/ has all stages.")]
    pairs: Annotated[list[str] | None, option.files("Sentence pairs, whose sources are translated.")] = None
    text: Annotated[list[str] | None, option.files("Text of the source language, one or more sentences a line.")] = None
    target_text: Annotated[
        list[str] | None, option.files("Text of the target language, which --reverse translates first.")
    ] = None
    valid: Annotated[list[str] | None, option.files("Validation pairs; some of --pairs if not given.")] = None
    test: Annotated[list[str] | None, option.files("Test pairs, for the report.")] = None
    overwrite: option.Overwrite = False


class Teaching(NamedTuple):
    """Teaching."""

    choose: Annotated[
        Literal["nearest", "best", "mbr", "sample"],
        Option(help="The hypothesis: nearest to the reference, best, by minimum Bayes risk, or sampled."),
    ] = "nearest"
    nbest: Annotated[int, Option(help="The number of hypotheses to choose from.", min=1, max=1000)] = 8
    beam: option.Beam = None
    seed: option.Seed = None
    keep_references: Annotated[
        bool | None,
        Option("--keep-references/--no-references", help="Learn from the pairs, too; default: up to a million."),
    ] = None
    reverse: Annotated[Path | None, option.run("A run of the reverse direction, which scores translations.")] = None
    filter_worst: Annotated[float, Option(help="Remove this share, the worst by --reverse.", min=0, max=0.99)] = 0.05


class Student(NamedTuple):
    """Student."""

    size: Annotated[
        str | None, Option(metavar="10MB", help="The largest size of the exported student with its tokenizer.")
    ] = None
    latency: Annotated[
        str | None, Option(metavar="5ms", help="The longest time for one sentence, measured at the end.")
    ] = None
    preset: Annotated[
        str | None,
        Option(
            metavar="NAME", help="Its preset; the size of the data decides.", autocompletion=option.complete_presets
        ),
    ] = None
    config: Annotated[
        Path | None,
        Option(metavar="FILE", help="Its settings, or the name of a recipe.", autocompletion=option.complete_recipes),
    ] = None
    vocabulary: Annotated[
        Literal["own", "teacher"], Option(help="Learn a vocabulary of its own, or use that of the teacher.")
    ] = "own"
    word_level: Annotated[
        float,
        Option(
            metavar="SHARE", help="The share of the loss from the teacher's probabilities of each piece.", max=1, min=0
        ),
    ] = 0.0
    align: Annotated[
        bool, Option(help="Link the words of the pairs, and teach the links to one head (guided alignment).")
    ] = True
    settings: option.Set = None
    report: Annotated[
        bool, Option(help="Finally check int8, measure teacher and student, and keep the fastest way to translate.")
    ] = True


class Execution(NamedTuple):
    """Execution."""

    device: option.Device = "auto"
    engine: option.Engine = "auto"
    workers: option.Workers = None


@with_examples(__doc__)
def distill(
    context: typer.Context,
    teachers: Annotated[
        list[Path],
        Argument(
            metavar="TEACHER...", callback=option.resolved, help="Runs; the probabilities of several are averaged."
        ),
    ],
    *,
    data: Data,
    teaching: Teaching,
    student: Student,
    languages: option.Languages,
    execution: Execution,
) -> None:
    """Train a small, fast student on the translations of a teacher (knowledge distillation).

    The stages: translate text of the target language back, if there is any; translate all sources with the teacher;
    filter the pairs; link their words; train the student. Repeat a command that was interrupted: it continues where it
    stopped (docs/distillation.md).
    """
    from translucid.distillation.distilling import distill as run

    request = _request(tuple(teachers), data, teaching, student, languages, execution)
    run(request, report=student.report, overwrite=data.overwrite, command=context.obj)


def _request(
    teachers: tuple[Path, ...],
    data: Data,
    teaching: Teaching,
    student: Student,
    languages: option.Languages,
    execution: Execution,
) -> Request:
    from translucid.distillation.request import Bounds, Request
    from translucid.runs.settings import without_none

    search = without_none({"beam": teaching.beam, "seed": teaching.seed})
    return Request(
        teachers,
        data.out,
        pairs=tuple(pair_up(data.pairs or [])),
        text=tuple(data.text or ()),
        target_text=tuple(data.target_text or ()),
        valid=tuple(pair_up(data.valid or [])),
        test=tuple(pair_up(data.test or [])),
        reverse=teaching.reverse,
        languages=(languages.source_language, languages.target_language),
        choose=teaching.choose,
        candidates=teaching.nbest,
        search=tuple(search.items()),
        keep_references=teaching.keep_references,
        filter_worst=teaching.filter_worst,
        bounds=Bounds.of(student.latency, student.size),
        preset=student.preset,
        config=student.config,
        align=student.align,
        shares_vocabulary=student.vocabulary == "teacher",
        word_level=student.word_level,
        settings=tuple(student.settings or ()),
        **execution._asdict(),
    )
