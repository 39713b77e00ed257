"""The training of `translucid demo --captions` on the built-in scenes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.text import Text

from translucid.captions.image_encoder import pretrained_weights
from translucid.captions.scenes.writing import FILES, sizes, write_corpus
from translucid.cli.demo import suggest
from translucid.data.readers.corpus import read_pairs
from translucid.ground.console import Console, progress_bar
from translucid.ground.errors import UserError
from translucid.lessons.demonstration import resumed_or_new
from translucid.runs.run_folder import SCENES as FOLDER
from translucid.training.experiment import run_experiment

SPLITS = {
    "test": "held-out scenes",
    "composition": "scenes with colors on shapes that training has never shown together",
}
"""The splits that the captions demo tests on, and their descriptions."""
SHOWN = 3
"""The number of scenes whose captions are shown."""
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


def show_demo(out: Path, overwrite: bool, device: str, command: list[str] | None) -> None:
    """Train a captioner on the built-in scenes, test it, and show where it looks."""
    from translucid.captions.caption_scores import score_captions
    from translucid.captions.captioner import Captioner
    from translucid.captions.image_files import ImageFiles
    from translucid.captions.pointing import read_gold
    from translucid.captions.saliency_overlay import SaliencyOverlay, drawings, save_attention

    console, log = Console(), Console(stderr=True)
    train_caption_demo(out, overwrite=overwrite, device=device, console=log, command=command)
    captioner, scenes = Captioner.load(out, device), scene_files(out)
    files, gold = ImageFiles.open([scenes / "images.tar"]), read_gold(scenes / "gold.jsonl")
    names: list[str] = []
    for split, description in SPLITS.items():
        pairs = list(read_pairs(scenes / f"{split}.tsv"))
        scores, texts = score_captions(captioner, pairs, files, perplexity=False, gold=gold, console=log)
        names = names or list(texts)
        console.print(
            Text.assemble((f"\nBLEU-4 {scores.scores.bleu[3]:.1f}", "bold"), f" on {len(texts):,} {description}")
        )
        for kind, score in scores.pointing.items():
            if kind in ("object", "colour", "relation"):
                share = f"{100 * score.overlaps:.0f}%"
                chance = f"{100 * score.chance:.0f}% by chance"
                console.print(f"for {kind} words it looks most at what they speak of: {share} ({chance})")
    for name in names[:SHOWN]:
        caption = captioner.caption(captioner.picture(files.read(name), name))
        console.print(Text.assemble(f"\n{name}: ", (caption.text, "bold")))
        console.print(Text("for each word written, where the model looked:", "dim"))
        console.print(drawings(SaliencyOverlay.of(caption.looked), console.width, color=console.is_terminal))
        picture = out / f"looked-{Path(name).stem}.png"
        # Matplotlib is an extra: without it, the demo prints a message and continues.
        try:
            save_attention(caption.looked, picture, name)
        except UserError as error:
            console.print(str(error), soft_wrap=True)
        else:
            console.print(Text.assemble(("as a picture: ", "dim"), str(picture)))
    test = f"--test {scenes / 'test.tsv'} --images {scenes / 'images.tar'} --gold {scenes / 'gold.jsonl'}"
    suggest(
        out,
        f"translucid caption {out} {scenes / 'images.tar'} --output captions.tsv",
        f"translucid evaluate {out} {test}",
        f"translucid serve {out}",
    )
