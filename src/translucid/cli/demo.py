"""`translucid demo`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text
from typer import Option

from translucid.cli import option
from translucid.data.readers.corpus import read_pairs
from translucid.ground.console import Console
from translucid.ground.errors import UserError

SPLITS = {
    "test": "held-out scenes",
    "composition": "scenes with colors on shapes that training has never shown together",
}
"""The splits that the captions demo tests on, and their descriptions."""
SHOWN = 3
"""The number of scenes whose captions are shown."""


def demo(
    context: typer.Context,
    captions: Annotated[bool, Option("--captions", help="Instead train a captioner: about eight minutes.")] = False,
    out: Annotated[Path | None, Option(help="The run folder; runs/demo(-captions).", show_default=False)] = None,
    overwrite: option.Overwrite = False,
    device: option.Device = "auto",
) -> None:
    """Train a small English-Spanish Transformer on the built-in phrasebook, test it, and show its attention.

    This takes two to five minutes on two cores and needs no input. The run is saved in runs/demo.

    **Examples**

        translucid demo

        translucid translate runs/demo "She likes soccer"

        translucid look runs/demo "They are going to the beach"

        translucid demo --captions
    """
    if captions:
        _captions(out or Path("runs/demo-captions"), overwrite, device, context.obj)
    else:
        _translations(out or Path("runs/demo"), overwrite, device, context.obj)


def _translations(out: Path, overwrite: bool, device: str, command: list[str] | None) -> None:
    from translucid.api.scoring import score
    from translucid.api.translator import Translator
    from translucid.corpora.phrasebook import ENGLISH_BOOK
    from translucid.inspection.terminal import attention_table
    from translucid.lessons.demonstration import find_alignments, phrasebook_files, train_demo

    console, log = Console(), Console(stderr=True)
    train_demo(out, overwrite=overwrite, device=device, console=log, command=command)
    translator = Translator.load(out, device)
    with log.status("finding the layer whose attention aligns words best"):
        find_alignments(out, translator)
    pairs = list(read_pairs(phrasebook_files(out)["test"]))
    evaluation, _ = score(translator, pairs, perplexity=False, console=log)
    bleu = evaluation.scores[0]
    score_text = f"\nBLEU {bleu.value:.1f}", "bold"
    console.print(
        Text.assemble(score_text, f" on {len(pairs):,} held-out sentences ({bleu.signature})"), soft_wrap=True
    )
    for text in ENGLISH_BOOK:
        translated = translator.translate(text)
        console.print(Text.assemble((f"\n{text}", "bold"), " → ", (translated.text, "bold")))
        console.print(Text("for each word written, where the model looked:", "dim"))
        for words in translated.words:
            console.print(attention_table(words))
    _suggest(
        out,
        f'translucid translate {out} "She likes soccer"',
        f'translucid look {out} "They are going to the beach"',
        f"translucid evaluate {out} --test {phrasebook_files(out)['test']} --by-length",
    )


def _captions(out: Path, overwrite: bool, device: str, command: list[str] | None) -> None:
    from translucid.captions.caption_scoring import score_captions
    from translucid.captions.captioner import Captioner
    from translucid.captions.demonstration import scene_files, train_caption_demo
    from translucid.captions.image_files import ImageFiles
    from translucid.captions.pointing import read_gold
    from translucid.captions.saliency_overlay import SaliencyOverlay
    from translucid.inspection.saving import save_attention
    from translucid.inspection.terminal import drawings

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
    _suggest(
        out,
        f"translucid caption {out} {scenes / 'images.tar'} --output captions.tsv",
        f"translucid evaluate {out} {test}",
        f"translucid serve {out}",
    )


def _suggest(out: Path, *commands: str) -> None:
    """Print what to do next with a run."""
    console = Console()
    console.print(Text.assemble("\nThe run is in ", (str(out), "bold"), ". Try:"))
    for command in commands:
        console.print(f"  {command}", soft_wrap=True)
