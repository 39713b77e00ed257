"""`translucid demo`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from translucid.ground.console import Console

BOOK = ("I like soccer", "I like soccer and also going to the beach")
"""The book's two sentences; neither is in the training data."""


def demo(
    context: typer.Context,
    out: Annotated[Path, typer.Option(help="The run folder to leave behind.")] = Path("runs/demo"),
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Train again if the demo was run before.")] = False,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1, mps.")] = "auto",
) -> None:
    """Train a small English-Spanish Transformer on the built-in phrasebook, test it, and show where it looks.

    Takes about two minutes on two cores and needs no input. The run is left in runs/demo.

    **Examples**

        translucid demo

        translucid translate runs/demo "She likes soccer"

        translucid look runs/demo "They are going to the beach"
    """
    from translucid.data.corpus import read_pairs
    from translucid.demonstration import find_alignments, phrasebook_files, train_demo
    from translucid.inspection.terminal import looked_at
    from translucid.scoring import score
    from translucid.translator import Translator

    console, log = Console(), Console(stderr=True)
    train_demo(out, overwrite=overwrite, device=device, console=log, command=context.obj)
    translator = Translator.load(out, device)
    with log.status("finding the layer whose attention aligns words best"):
        find_alignments(out, translator)
    pairs = list(read_pairs(phrasebook_files(out)["test"]))
    found, _ = score(translator, pairs, perplexity=False, console=log)
    bleu = found.scores[0]
    figure = f"\nBLEU {bleu.value:.1f}", "bold"
    console.print(Text.assemble(figure, f" on {len(pairs):,} held-out sentences ({bleu.signature})"))
    for text in BOOK:
        translated = translator.translate(text)
        console.print(Text.assemble((f"\n{text}", "bold"), " → ", (translated.text, "bold")))
        console.print(Text("for each word written, where the model looked:", "dim"))
        for words in translated.words:
            console.print(looked_at(words))
    console.print(Text.assemble("\nThe run is in ", (str(out), "bold"), ". Go on with:"))
    for command in (
        f'translucid translate {out} "She likes soccer"',
        f'translucid look {out} "They are going to the beach"',
        f"translucid evaluate {out} --test {phrasebook_files(out)['test']} --by-length",
    ):
        console.print(f"  {command}", soft_wrap=True)
