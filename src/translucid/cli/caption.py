"""`translucid caption`."""

from __future__ import annotations

import os
from contextlib import ExitStack
from io import BytesIO
from pathlib import Path
from typing import Annotated

import typer

from translucid.cli.arguments import Format, RunArgument, input_bytes, refuse_to_replace
from translucid.ground.console import Console


def caption(
    run: RunArgument,
    images: Annotated[
        list[Path] | None, typer.Argument(metavar="[IMAGE ...]", help="Image files, folders of them, or tars.")
    ] = None,
    input_file: Annotated[
        Path | None, typer.Option("--input", help="A file with an image's name a line; - is standard input.")
    ] = None,
    output: Annotated[Path | None, typer.Option(help="Write here instead of to standard output.")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace --output if it is there.")] = False,
    beam: Annotated[int | None, typer.Option(help="Beam width; 1 is greedy.")] = None,
    nbest: Annotated[int | None, typer.Option(help="Captions for each image, tab-separated in text format.")] = None,
    length_penalty: Annotated[float | None, typer.Option(help="Higher favours longer captions.")] = None,
    sample: Annotated[bool, typer.Option("--sample", help="Draw at random instead of searching.")] = False,
    temperature: Annotated[float | None, typer.Option(help="Of sampling; below 1 is more careful.")] = None,
    seed: Annotated[int | None, typer.Option(help="Of sampling.")] = None,
    output_format: Annotated[
        Format, typer.Option("--format", help="text: the image's name, a tab and its caption; or jsonl with scores.")
    ] = Format.text,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1, mps.")] = "auto",
    workers: Annotated[int | None, typer.Option(help="Processes that share the work; 1 if not given.", min=1)] = None,
) -> None:
    """Caption images: one output line for each image, in order.

    JPEG, PNG, WebP, GIF and BMP. An image that can't be read gets a line without a caption, and is told of on standard
    error; the others still get theirs. With --output, a job that was killed goes on where it stopped when the same
    command is given again, and comes to the same file. `translucid look` shows where the model looked.

    **Examples**

        translucid caption runs/eyes photograph.jpg

        translucid caption runs/eyes photographs/ --output captions.tsv

        translucid caption runs/eyes photographs.tar --nbest 3 --format jsonl --workers 4

        find . -name '*.png' | translucid caption runs/eyes --input -
    """
    from translucid.ground.console import counting
    from translucid.ground.errors import UserError
    from translucid.jobs.captioning import CaptionJob, names_of
    from translucid.jobs.job import alone
    from translucid.jobs.output import output_to
    from translucid.jobs.processes import processes
    from translucid.jobs.running import run as run_job
    from translucid.runs.run_folder import RunFolder

    if images and input_file:
        raise UserError("both an image and --input were given", fix="Give one of them.")
    if not images and not input_file:
        raise UserError("there is no image to write about", fix="Give image files, folders or tars.")
    refuse_to_replace(output, overwrite)
    given = {
        "beam": beam,
        "nbest": nbest,
        "length_penalty": length_penalty,
        "sample": sample or None,
        "temperature": temperature,
        "seed": seed,
    }
    configuration = RunFolder(run).configuration()
    configuration.refuse_other_reader("images", run)
    options = configuration.searching(given)
    names = names_of(images or [])
    lone = len(names) == 1 and images == [Path(names[0])]
    job = CaptionJob(run, options, device, output_format.value, nbest or 1, named=not lone)
    console, unread = Console(stderr=True), 0
    with ExitStack() as stack:
        listed = b"".join(os.fsencode(name) + b"\n" for name in names)
        text = stack.enter_context(BytesIO(listed) if images else input_bytes(input_file))
        advance = stack.enter_context(counting(console, "captioning", len(names) or None, hidden=lone))
        unread = run_job(
            job,
            text,
            output_to(output),
            processes(job, workers) if workers and workers > 1 else alone(job),
            say=lambda line: console.print(line, soft_wrap=True),
            advance=advance,
        )
    if unread:
        raise UserError(f"{unread} images could not be read", fix="Each is told of above.")
