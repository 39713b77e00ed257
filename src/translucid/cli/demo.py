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
from translucid.models.kinds import resolved, task_of


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
        show_demo = resolved(task_of("images").views["demo"])
        show_demo(out or Path("runs/demo-captions"), overwrite, device, context.obj)
    else:
        _translations(out or Path("runs/demo"), overwrite, device, context.obj)


def _translations(out: Path, overwrite: bool, device: str, command: list[str] | None) -> None:
    from translucid.api.evaluation.scoring import score
    from translucid.api.translator import Translator
    from translucid.inspection.rendering.terminal import attention_table
    from translucid.lessons.demonstration import find_alignments, phrasebook_files, train_demo
    from translucid.runs.presets import DEMO_TEXTS

    console, log = Console(), Console(stderr=True)
    train_demo(out, overwrite=overwrite, device=device, console=log, command=command)
    translator = Translator.load(out, device)
    with log.status("finding the layer whose attention aligns words best"):
        find_alignments(translator)
    pairs = list(read_pairs(phrasebook_files(out)["test"]))
    evaluation, _ = score(translator, pairs, perplexity=False, console=log)
    bleu = evaluation.scores[0]
    score_text = f"\nBLEU {bleu.value:.1f}", "bold"
    console.print(
        Text.assemble(score_text, f" on {len(pairs):,} held-out sentences ({bleu.signature})"), soft_wrap=True
    )
    for text in DEMO_TEXTS:
        translated = translator.translate(text)
        console.print(Text.assemble((f"\n{text}", "bold"), " → ", (translated.text, "bold")))
        console.print(Text("for each word written, where the model looked:", "dim"))
        for words in translated.words:
            console.print(attention_table(words))
    suggest(
        out,
        f'translucid translate {out} "She likes soccer"',
        f'translucid look {out} "They are going to the beach"',
        f"translucid evaluate {out} --test {phrasebook_files(out)['test']} --by-length",
    )


def suggest(out: Path, *commands: str) -> None:
    """Print what to do next with a run."""
    console = Console()
    console.print(Text.assemble("\nThe run is in ", (str(out), "bold"), ". Try:"))
    for command in commands:
        console.print(f"  {command}", soft_wrap=True)
