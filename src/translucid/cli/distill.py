"""`translucid distill`.

**Examples**

A teacher translates the sources of your pairs, and a small student learns its translations:

    translucid distill runs/teacher --pairs pairs.tsv --valid dev.tsv --out runs/student

Use several teachers, more text, and a run of the reverse direction that removes bad translations:

    translucid distill runs/a runs/b --pairs pairs.tsv --text news.en.gz --reverse runs/reverse --out runs/student

Choose the student yourself:

    translucid distill runs/teacher --pairs pairs.tsv --out runs/student --student student-tiny --set model.width=192
"""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, get_args

import typer
from typer import Argument, Option

from translucid.cli import option
from translucid.cli.arguments import name_and_number, pair_up
from translucid.cli.printing import with_examples
from translucid.ground.errors import UserError

if TYPE_CHECKING:
    from translucid.distillation.request import Request


_MOST = 1000
"""The largest number of hypotheses to choose from."""
_WORST = 0.99
"""The largest share of translations to remove."""


class Skippable(StrEnum):
    """What a distillation can leave out."""

    ALIGN = "align"
    REPORT = "report"


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
        str,
        Option(
            metavar="nearest:N|best|mbr:N|sample",
            help="The hypothesis: of N, that nearest to the reference or by minimum Bayes risk; the best; a sample.",
        ),
    ] = "nearest:8"
    beam: option.Beam = None
    seed: option.Seed = None
    keep_references: Annotated[
        bool | None,
        Option("--keep-references/--no-references", help="Learn from the pairs, too; default: up to a million."),
    ] = None
    reverse: Annotated[
        str | None,
        Option(
            metavar="RUN[:SHARE]",
            help="A run of the reverse direction: this share of the translations, the worst by it, is removed; 0.05 if "
            "not given.",
        ),
    ] = None


class Student(NamedTuple):
    """Student."""

    limit: Annotated[
        list[str] | None,
        Option(
            metavar="10MB|5ms",
            help="The largest size of the exported student with its tokenizer, or the longest time for one sentence, "
            "measured at the end. Repeat it for both.",
        ),
    ] = None
    student: Annotated[
        list[str] | None,
        Option(
            metavar="NAME|FILE",
            help="Its preset, recipe, or file of settings; the size of the data decides. Repeat it for a preset and a "
            "file that changes it.",
            autocompletion=option.complete_students,
        ),
    ] = None
    vocabulary: Annotated[
        str,
        Option(
            metavar="own|teacher[:SHARE]",
            help="Learn a vocabulary of its own, or use that of the teacher. SHARE: how much of the loss is from the "
            "teacher's probabilities of each piece.",
        ),
    ] = "own"
    settings: option.Set = None
    skip: Annotated[
        list[Skippable] | None,
        Option(
            help="align: teach no links between words to one head (guided alignment). report: neither check int8, "
            "nor measure teacher and student, nor keep the fastest way to translate. Repeat it for both.",
        ),
    ] = None


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
    execution: option.Execution,
) -> None:
    """Train a small, fast student on the translations of a teacher (knowledge distillation).

    The stages: translate text of the target language back, if there is any; translate all sources with the teacher;
    filter the pairs; train the student; measure it. Repeat a command that was interrupted: it continues where it
    stopped (docs/distillation.md).
    """
    from translucid.distillation.distilling import distill as run

    request = _request(tuple(teachers), data, teaching, student, languages, execution)
    run(request, report=Skippable.REPORT not in (student.skip or ()), overwrite=data.overwrite, command=context.obj)


def _request(
    teachers: tuple[Path, ...],
    data: Data,
    teaching: Teaching,
    student: Student,
    languages: option.Languages,
    execution: option.Execution,
) -> Request:
    from translucid.distillation.report import Bounds
    from translucid.distillation.request import Request
    from translucid.runs.settings import without_none

    search = without_none({"beam": teaching.beam, "seed": teaching.seed})
    preset, config = _preset_and_file(student.student or [])
    request = Request(
        teachers,
        data.out,
        pairs=tuple(pair_up(data.pairs or [])),
        text=tuple(data.text or ()),
        target_text=tuple(data.target_text or ()),
        valid=tuple(pair_up(data.valid or [])),
        test=tuple(pair_up(data.test or [])),
        languages=(languages.source_language, languages.target_language),
        search=tuple(search.items()),
        keep_references=teaching.keep_references,
        bounds=Bounds.of(*(student.limit or ())),
        preset=preset,
        config=config,
        align=Skippable.ALIGN not in (student.skip or ()),
        word_level=_word_level(student.vocabulary),
        settings=tuple(student.settings or ()),
        **execution._asdict(),
    )
    return replace(request, **_choice(teaching.choose), **_reverse(teaching.reverse))


def _choice(text: str) -> dict[str, Any]:
    """Return the choice among hypotheses, and their number if it is given."""
    from translucid.distillation.request import Choice

    choice, number = name_and_number(text)
    if choice not in get_args(Choice) or (number and choice in ("best", "sample")):
        what = f"--choose {text!r} is none of nearest:N, best, mbr:N and sample"
        raise UserError(what, fix="Example: --choose nearest:8.")
    if number is None:
        return {"choose": choice}
    if not 1 <= int(number) <= _MOST:
        raise UserError(f"--choose {text} chooses among too few or too many", fix=f"Give 1 to {_MOST}.")
    return {"choose": choice, "candidates": int(number)}


def _reverse(text: str | None) -> dict[str, Any]:
    """Return the reverse run, and the share of translations that is removed if it is given."""
    from translucid.interop.run_resolution import resolve_run

    if text is None:
        return {}
    name, share = _name_and_share(text, _WORST, is_path=True)
    run = {"reverse": resolve_run(Path(name))}
    return run if share is None else {**run, "filter_worst": share}


def _word_level(text: str) -> float | None:
    """Return the share of the loss from the probabilities of the teacher; None for a vocabulary of its own."""
    name, share = _name_and_share(text, 1)
    if name not in ("own", "teacher") or (name == "own" and share is not None):
        what = f"--vocabulary {text!r} is none of own, teacher and teacher:SHARE"
        raise UserError(what, fix="Example: --vocabulary teacher:0.5.")
    return (share or 0.0) if name == "teacher" else None


def _name_and_share(text: str, most: float, *, is_path: bool = False) -> tuple[str, float | None]:
    """Divide `NAME:SHARE`; the share is None if there is none."""
    name, share = name_and_number(text, r"\d*\.?\d+", is_path=is_path)
    if share is None:
        return name, None
    if float(share) > most:
        raise UserError(f"the share in {text!r} is not from 0 to {most:g}", fix=f"Example: {name}:0.1.")
    return name, float(share)


def _preset_and_file(names: list[str]) -> tuple[str | None, Path | None]:
    """Return the preset, and the recipe or file of settings, among the values of `--student`."""
    from translucid.runs.presets import recipes

    files = [name for name in names if Path(name).suffix in (".yaml", ".yml") or name in recipes()]
    presets = [name for name in names if name not in files]
    for kind, values in (("preset", presets), ("file of settings", files)):
        if len(values) > 1:
            raise UserError(f"a student has one {kind}, not {' and '.join(values)}", fix="Give --student once for it.")
    return next(iter(presets), None), Path(files[0]) if files else None
