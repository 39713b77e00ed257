"""`translucid nearest`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table
from rich.text import Text

from translucid.cli.arguments import RunArgument
from translucid.cli.embed import LayerOption, layer_of
from translucid.ground.console import Console

if TYPE_CHECKING:
    from translucid.api.embedder import Neighbour

AROUND = 8
"""Words shown on either side."""


def nearest(
    run: RunArgument,
    sentence: Annotated[str, typer.Argument(metavar="SENTENCE", help="What the word stands in.")],
    word: Annotated[str, typer.Option(help="A word of the sentence; the first, if it is there more than once.")],
    among: Annotated[list[Path], typer.Option(metavar="FILES", help="A text a line, .tsv or .jsonl, gz or not.")],
    layer: LayerOption = "mix",
    top: Annotated[int, typer.Option(help="How many are shown.", min=1, max=1000)] = 10,
    same: Annotated[bool, typer.Option("--same", help="The same word only, in the other places it has.")] = False,
    jsonl: Annotated[bool, typer.Option("--jsonl", help="One JSON object a line instead of a table.")] = False,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1, mps.")] = "auto",
) -> None:
    """Find the words of a text whose contextual embeddings are most similar to that of a word in a sentence.

    The vectors are those of `translucid embed`, alike is what has a cosine near 1. The text may be of any size.

    **Examples**

        translucid nearest runs/elmo "Queen of the United Kingdom" --word Queen --among news.txt

        translucid nearest runs/elmo "they play chess" --word play --among reviews.jsonl --same --layer 2 --jsonl
    """
    from translucid.api.embedder import Embedder
    from translucid.data.readers.texts import read_texts
    from translucid.ground.console import counting

    wanted = layer_of(layer)
    embedder = Embedder.load(run, device)
    texts = (text.source for text in read_texts(*among))
    with counting(Console(stderr=True), "reading", None) as advance:
        found = embedder.nearest(sentence, word, texts, layer=wanted, top=top, same=same, on_done=advance)
    if jsonl:
        for one in found:
            facts = {"similarity": one.similarity, "word": one.words[one.place], "text": one.text, "place": one.place}
            print(json.dumps({**facts, "sentence": " ".join(one.words)}, ensure_ascii=False))
        return
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(justify="right")
    table.add_column()
    for one in found:
        table.add_row(Text(f"{one.similarity:.3f}"), _shown(one))
    Console().print(table)


def _shown(one: Neighbour) -> Text:
    """The word, marked, and some of what stands around it."""
    start, end = max(0, one.place - AROUND), one.place + 1 + AROUND
    before, after = " ".join(one.words[start : one.place]), " ".join(one.words[one.place + 1 : end])
    return Text.assemble(
        "… " if start else "",
        f"{before} " if before else "",
        (f"«{one.words[one.place]}»", "bold"),
        f" {after}" if after else "",
        " …" if end < len(one.words) else "",
    )
