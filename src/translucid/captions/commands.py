"""`translucid caption` and `translucid data scenes`."""

from __future__ import annotations

import os
from io import BytesIO
from pathlib import Path
from typing import Annotated, BinaryIO

from typer import Argument, Option

from translucid.cli import option
from translucid.cli.arguments import input_bytes, refuse_to_replace, refuse_two_inputs
from translucid.cli.run_kinds import configuration_of
from translucid.ground.console import Console, progress_bar
from translucid.ground.errors import UserError, missing_package


def caption(
    run: option.Run,
    images: Annotated[list[Path] | None, Argument(metavar="[IMAGE ...]", help="Image files, folders or tars.")] = None,
    input_file: Annotated[Path | None, Option("--input", help="A file of image names; - is standard input.")] = None,
    output: option.Output = None,
    overwrite: option.Overwrite = False,
    beam: option.Beam = None,
    nbest: option.Nbest = None,
    length_penalty: option.LengthPenalty = None,
    temperature: option.Temperature = None,
    seed: option.Seed = None,
    output_format: Annotated[
        option.Format, Option("--format", help="text: name of the image, tab, caption; jsonl: with scores.")
    ] = "text",
    device: option.Device = "auto",
    workers: option.Workers = None,
) -> None:
    """Caption images: one output line for each image, in order.

    JPEG, PNG, WebP, GIF and BMP. An image that can't be read yields a line without a caption, and a message on standard
    error. Repeat a command with --output that was killed: it continues where it stopped and writes the same file.
    `translucid look` shows where the model looks.

    **Examples**

        translucid caption runs/eyes photograph.jpg

        translucid caption runs/eyes photographs/ --output captions.tsv

        translucid caption runs/eyes photographs.tar --nbest 3 --format jsonl --workers 4

        find . -name '*.png' | translucid caption runs/eyes --input -
    """
    from translucid.captions.job import CaptionJob, image_names
    from translucid.jobs.running import executor_of, run_with_progress

    refuse_two_inputs("an image", images, input_file)
    if not images and not input_file:
        raise UserError("there is no image to write about", fix="Give image files, folders or tars.")
    sampling = option.Sampling(temperature, seed=seed).settings()
    settings = {"beam": beam, "nbest": nbest, "length_penalty": length_penalty, **sampling}
    options = configuration_of(run, "images").decoding_with(settings)
    names = image_names(images or [])
    # The caption of a single image file is written without its name.
    single_file = len(names) == 1 and images == [Path(names[0])]
    job = CaptionJob(run, options, device=device, form=output_format, columns=nbest or 1, named=not single_file)
    if images:
        # Names of files may hold bytes that are no UTF-8, which `encode` would refuse.
        lines: BinaryIO = BytesIO(os.fsencode("".join(f"{name}\n" for name in names)))
    else:
        lines = input_bytes(input_file)
    executor = executor_of(job, workers)
    total = len(names) or None
    if unread := run_with_progress(job, lines, output, executor, "captioning", total=total, hidden=single_file):
        raise UserError(f"{unread} images could not be read", fix="Each is reported above.")


def scenes(
    out: Annotated[Path, Argument(metavar="OUT", help="The folder to write.")],
    count: Annotated[int, Option(help="Training scenes; other splits have a tenth, at most 1,000.", min=1)] = 1000,
    size: Annotated[int, Option(help="The width and height of a picture in pixels.", min=32, max=1024)] = 96,
    shapes: Annotated[int | None, Option(help="The number of shapes; default: all 85.", min=2, max=83)] = None,
    seed: Annotated[int, Option(help="The seed of the scenes.")] = 1,
    overwrite: option.Overwrite = False,
) -> None:
    """Write pictures of the built-in scenes, each with five captions and gold boxes of what the words refer to.

    OUT holds images.tar, gold.jsonl, and picture TAB caption in train.tsv, valid.tsv, test.tsv and composition.tsv. No
    scene is in two splits. Scenes of composition.tsv combine a color with a shape that no other split combines.

    **Examples**

        translucid data scenes scenes --count 8000

        translucid data scenes large --count 100 --size 224
    """
    try:
        from translucid.captions.scenes.scene import SHAPES
        from translucid.captions.scenes.writing import FILES, sizes, write_corpus
    except ModuleNotFoundError as error:
        raise missing_package("painting", error.name, "vision") from error

    for name in FILES if out.exists() else ():
        refuse_to_replace(out / name, overwrite)
    with progress_bar(Console(stderr=True), "painting", sum(sizes(count).values())) as advance:
        write_corpus(out, count, seed=seed, size=size, shapes=shapes or len(SHAPES), on_done=advance)
