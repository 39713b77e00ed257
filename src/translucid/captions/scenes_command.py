"""`translucid data scenes`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from translucid.cli import option
from translucid.cli.arguments import refuse_to_replace
from translucid.ground.console import Console, progress_bar
from translucid.ground.errors import missing_package


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
