"""The training of `translucid demo --captions` on the built-in scenes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from translucid.captions.image_encoder import pretrained_weights
from translucid.captions.scenes.writing import FILES, sizes, write_corpus
from translucid.ground.console import Console, progress_bar
from translucid.lessons.demonstration import resumed_or_new
from translucid.runs.run_folder import SCENES as FOLDER
from translucid.training.experiment import run_experiment

SCENES = 6000
"""The number of training scenes; the other splits have a tenth each."""
SHAPES = 12
"""The number of shapes, fewer than all so that eight minutes are enough to learn them."""
PIXELS = 160
"""The width and height of a picture."""


def scene_files(run: Path) -> Path:
    """Return the folder of a demo run's scenes."""
    return run / FOLDER


def train_caption_demo(
    run: Path, *, overwrite: bool, device: str, console: Console, command: Sequence[str] | None = None
) -> None:
    """Paint scenes into the run folder and train on them, or resume an interrupted run.

    Raises:
        UserError: the weights of the image encoder are not installed.
    """
    pretrained_weights()  # reports missing weights before anything is painted
    scenes = scene_files(run)
    overrides = {
        "data.train": [str(scenes / "train.tsv")],
        "data.valid": [str(scenes / "valid.tsv")],
        "data.images": [str(scenes / "images.tar")],
    }
    configuration, resume = resumed_or_new(run, "caption-demo", overrides, overwrite=overwrite)
    # A demo that was interrupted while it trained has all of them.
    if not all((scenes / name).exists() for name in FILES):
        with progress_bar(console, "painting scenes", sum(sizes(SCENES).values())) as advance:
            write_corpus(scenes, SCENES, size=PIXELS, shapes=SHAPES, on_done=advance)
    run_experiment(
        configuration, run, resume=resume, overwrite=overwrite, device=device, console=console, command=command
    )
