"""`translucid demo`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

BOOK = ("I like soccer", "I like soccer and also going to the beach")
"""The two sentences of the book; neither is in the training data."""


def demo(
    out: Annotated[Path, typer.Option(help="The run folder to leave behind.")] = Path("runs/demo"),
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Train again if the demo was run before.")] = False,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1, mps.")] = "auto",
) -> None:
    """Train a small English-Spanish Transformer on the built-in phrasebook, test it, and see where it looks.

    Takes about two minutes on two cores and needs no input. The run is left in runs/demo.

    **Examples**

        translucid demo

        translucid translate runs/demo "She likes soccer"

        translucid look runs/demo "They are going to the beach"
    """
    from translucid.data.phrasebook import generate
    from translucid.demonstration import TEST_FILE, train_demo
    from translucid.evaluation.report import evaluate_pairs
    from translucid.inspection.terminal import render
    from translucid.translator import Translator

    console, log = Console(highlight=False), Console(stderr=True, highlight=False)
    train_demo(out, overwrite=overwrite, device=device, console=log)
