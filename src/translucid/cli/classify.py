"""`translucid classify`."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from translucid.cli.arguments import Format, RunArgument, WithOption, input_bytes, refuse_to_replace, text_bytes
from translucid.ground.console import Console


def classify(
    run: RunArgument,
    texts: Annotated[list[str] | None, typer.Argument(metavar="[TEXT ...]", help="What to classify.")] = None,
    others: WithOption = None,
    input_file: Annotated[
        Path | None, typer.Option("--input", help="A file with a text a line; - is standard input.")
    ] = None,
    output: Annotated[Path | None, typer.Option(help="Write here instead of to standard output.")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace --output if it is there.")] = False,
    output_format: Annotated[
        Format, typer.Option("--format", help="text: label, a tab and its probability; or jsonl with all labels.")
    ] = Format.text,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1, mps.")] = "auto",
    workers: Annotated[int | None, typer.Option(help="Processes that share the work; 1 if not given.", min=1)] = None,
) -> None:
    """Classify texts: one output line for each text, in order.

    A blank line gets a line without a label. With --output, a job that was killed goes on where it stopped when the
    same command is given again, and comes to the same file. `translucid explain` shows which words decided.

    **Examples**

        translucid classify runs/mood "I laughed, I cried, I want my money back."

        translucid classify runs/mood --input reviews.txt --output moods.tsv

        translucid classify runs/mood --ensemble runs/mood-backwards --format jsonl < reviews.txt
    """
    from translucid.data.readers.file_kinds import refuse_documents, refuse_file_names
    from translucid.ground.console import counting
    from translucid.ground.errors import UserError
    from translucid.jobs.classifying import ClassifyJob
    from translucid.jobs.job import alone
    from translucid.jobs.output import output_to
    from translucid.jobs.processes import processes
    from translucid.jobs.running import run as run_job
    from translucid.runs.run_folder import RunFolder

    if texts and input_file:
        raise UserError("both a text and --input were given", fix="Give one of them.")
    refuse_documents(input_file)
    refuse_file_names(texts or ())
    refuse_to_replace(output, overwrite)
    for each in (run, *(others or [])):
        RunFolder(each).configuration().refuse_other_reader("texts with labels", each)
    job = ClassifyJob(run, tuple(others or ()), device, output_format.value)
    console = Console(stderr=True)
    with ExitStack() as stack:
        text = stack.enter_context(text_bytes(texts) if texts else input_bytes(input_file))
        advance = stack.enter_context(counting(console, "classifying", None, hidden=bool(texts)))
        bad = run_job(
            job,
            text,
            output_to(output),
            processes(job, workers) if workers and workers > 1 else alone(job),
            say=lambda line: console.print(line, soft_wrap=True),
            advance=advance,
        )
    if bad:
        fix = "Convert the file first, as with iconv -f latin1 -t utf-8."
        raise UserError(f"{bad} lines are not UTF-8 and have no label", file=input_file or "standard input", fix=fix)
