"""`translucid look`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text


def look(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The run folder that `translucid train` wrote.")],
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What to translate.")],
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1, mps.")] = "auto",
) -> None:
    """Translate one text and show, for each word written, where the model looked.

    What is shown is cross-attention averaged over all heads and layers. It tells where the model looked, not why it
    wrote what it wrote.

    **Examples**

        translucid look runs/demo "I like soccer"
    """
    from translucid.inspection.terminal import heatmap, looked_at
    from translucid.translator import Translator

    console = Console(highlight=False)
    translator = Translator.load(run, device)
    found = translator.translate(text)
    console.print(Text(found.text, "bold"))
    if not translator.can_look():
        console.print("\nThe model has no attention: all that it knew of the source was one vector.")
        return
    for words in found.words:
        console.print()
        console.print(heatmap(words, console.width))
        console.print()
        console.print(looked_at(words))
