"""`translucid look`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from translucid.cli.files import refuse_to_replace


def look(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The run folder that `translucid train` wrote.")],
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What to translate.")],
    target: Annotated[
        str | None, typer.Option(help="Watch the model write this instead of its own translation.")
    ] = None,
    layer: Annotated[int | None, typer.Option(help="One decoder layer instead of the average of all.")] = None,
    head: Annotated[int | None, typer.Option(help="One head instead of the average of all.")] = None,
    flow: Annotated[bool, typer.Option("--flow", help="What flowed through all layers (attention rollout).")] = False,
    save: Annotated[Path | None, typer.Option(metavar="FILE", help="Save as .html, .png, .svg, .pdf or .json.")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the file of --save if it is there.")] = False,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1, mps.")] = "auto",
) -> None:
    """Translate one text and show, for each word written, where the model looked.

    What is shown is cross-attention, averaged over all heads and layers if none is chosen. It tells where the model
    looked, not why it wrote what it wrote.

    **Examples**

        translucid look runs/demo "I like soccer"

        translucid look runs/demo "I like soccer" --layer 1 --head 0

        translucid look runs/demo "I like soccer and also going to the beach" --save maps.html
    """
    from translucid.inspection.saving import save as save_attention
    from translucid.inspection.terminal import heatmap, looked_at
    from translucid.translator import Translator

    refuse_to_replace(save, overwrite)
    console = Console(highlight=False)
    translator = Translator.load(run, device)
    if target is None:
        found = translator.translate(text)
        written, pieces = found.text, found.inspected
    else:
        written, pieces = target, translator.inspect([(text, target)])
    console.print(Text(written, "bold"))
    if not translator.can_look():
        console.print("\nThe model has no attention: all that it knew of the source was one vector.")
        return
    for one in pieces:
        words = one.words(one.rollout() if flow else one.cross(layer, head))
        console.print()
        console.print(heatmap(words, console.width))
        console.print()
        console.print(looked_at(words))
    if save:
        save_attention(pieces, save, text, written, layer, head)
        console.print(f"\nsaved: {save}", soft_wrap=True)
