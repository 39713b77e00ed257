"""`translucid nearest`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from rich.table import Table
from rich.text import Text
from typer import Argument, Option

from translucid.cli import option
from translucid.ground.console import Console, progress_bar
from translucid.language.embed_command import LayerOption, layer_of

if TYPE_CHECKING:
    from translucid.language.embedder import Neighbor

AROUND = 8
"""The number of words shown on either side."""


def nearest(
    run: option.Run,
    sentence: Annotated[str, Argument(metavar="SENTENCE", help="A sentence that contains the word.")],
    word: Annotated[str, Option(help="The word; its first occurrence in the sentence counts.")],
    among: Annotated[list[Path], option.files("Files with one text per line, .tsv or .jsonl, gzipped or not.")],
    layer: LayerOption = "mix",
    top: Annotated[int, Option(help="The number of results.", min=1, max=1000)] = 10,
    same: Annotated[bool, Option("--same", help="Only other occurrences of the same word.")] = False,
    jsonl: Annotated[bool, Option("--jsonl", help="One JSON object per line instead of a table.")] = False,
    device: option.Device = "auto",
) -> None:
    """Find the words of a text whose contextual embeddings are most similar to that of a word in a sentence.

    The vectors are those of `translucid embed`, compared by their cosine. The text may be of any size.

    **Examples**

        translucid nearest runs/elmo "Queen of the United Kingdom" --word Queen --among news.txt

        translucid nearest runs/elmo "they play chess" --word play --among reviews.jsonl --same --layer 2 --jsonl
    """
    from translucid.data.readers.texts import read_texts
    from translucid.language.embedder import Embedder

    chosen_layer = layer_of(layer)
    embedder = Embedder.load(run, device)
    texts = (text.source for text in read_texts(*among))
    with progress_bar(Console(stderr=True), "reading", None) as advance:
        neighbors = embedder.nearest(sentence, word, texts, layer=chosen_layer, top=top, same=same, on_done=advance)
    if jsonl:
        for neighbor in neighbors:
            record = {
                "similarity": neighbor.similarity,
                "word": neighbor.words[neighbor.place],
                "text": neighbor.text,
                "place": neighbor.place,
                "sentence": " ".join(neighbor.words),
            }
            print(json.dumps(record, ensure_ascii=False))
        return
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(justify="right")
    table.add_column()
    for neighbor in neighbors:
        table.add_row(Text(f"{neighbor.similarity:.3f}"), _in_context(neighbor))
    Console().print(table)


def _in_context(neighbor: Neighbor) -> Text:
    """Return the word, highlighted, between its neighbors in the text."""
    words, place = neighbor.words, neighbor.place
    start, end = max(0, place - AROUND), place + 1 + AROUND
    before = "".join(f"{word} " for word in words[start:place])
    after = "".join(f" {word}" for word in words[place + 1 : end])
    opening, closing = "… " if start else "", " …" if end < len(words) else ""
    return Text.assemble(opening, before, (f"«{words[place]}»", "bold"), after, closing)
