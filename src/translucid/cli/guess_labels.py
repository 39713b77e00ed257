"""`translucid data guess-labels`."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from translucid.cli.arguments import refuse_to_replace
from translucid.ground.console import Console

if TYPE_CHECKING:
    from translucid.data.readers.corpus import Pair

WINDOW = 1000
"""Texts guessed together."""


def guess_labels(
    train: Annotated[list[Path], typer.Option(metavar="FILES", help="Texts with labels, .jsonl or .tsv; 100 will do.")],
    text: Annotated[list[Path], typer.Option(metavar="FILES", help="Texts without, a line each or .jsonl, gz or not.")],
    out: Annotated[Path, typer.Option(metavar="OUT.jsonl", help="The texts with the labels that were guessed.")],
    share: Annotated[
        float, typer.Option(help="Of the texts that seem to have a label, the surest: so many.", min=0.01, max=1)
    ] = 0.4,
    dimensions: Annotated[int, typer.Option(help="Directions in which texts differ.", min=2, max=1000)] = 50,
    seed: Annotated[int, typer.Option(help="Of what is drawn.")] = 1,
    skip_bad: Annotated[bool, typer.Option("--skip-bad", help="Lines that can't be read are no error.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace --out if it is there.")] = False,
) -> None:
    """Guess the labels of texts that have none, from a few that have: more to learn from for a classifier.

    OUT has the texts whose guess is surest, with its probability. How often guesses are right is told: of the texts
    with labels, each as it would be guessed from the others.

    **Examples**

        translucid data guess-labels --train labelled.jsonl --text reviews.txt.gz --out guess.jsonl

        translucid train --model classifier --init-from runs/english --train labelled.jsonl guess.jsonl --out runs/mood
    """
    from translucid.data.filtering import draw
    from translucid.data.readers.bad_lines import BadLines
    from translucid.data.readers.texts import read_texts
    from translucid.ground.atomic import output
    from translucid.ground.console import counting
    from translucid.ground.errors import UserError, missing_package
    from translucid.training.text import counted

    try:
        from translucid.data.guessing import SPACE, LabelGuesser
    except ModuleNotFoundError as error:
        raise missing_package("guessing labels", "scikit-learn", "labels") from error

    refuse_to_replace(out, overwrite, (".jsonl",))
    log, on_bad = Console(stderr=True), BadLines() if skip_bad else None
    labelled = []
    for file in train:
        for line, one in enumerate(read_texts(file, on_bad=on_bad), 1):
            if one.source.strip() and not one.target:
                raise UserError("has no label", file=file, line=None if skip_bad else line, fix="Each text needs one.")
            if one.source.strip():
                labelled.append(one)
    known = {one.source for one in labelled}

    def unlabelled() -> Iterator[Pair]:
        texts = read_texts(*text, on_bad=on_bad)
        return (one for one in texts if one.source.strip() and one.source not in known)

    with counting(log, "reading", None) as advance:
        texts = [one.source for one in draw(counted(unlabelled(), advance), SPACE, seed)]
    log.print(f"finding out how {len(texts):,} texts differ")
    guesser = LabelGuesser.learn(labelled, texts, share=share, dimensions=dimensions, seed=seed)
    right = guesser.right
    percents = f"{100 * right.all:.0f} % of them, and {100 * right.sure:.0f} % of the {right.counted} surest"
    log.print(f"{len(labelled):,} texts with labels, each guessed from the others: right are {percents}")
    counts: Counter[str] = Counter()
    with output(out) as stream, counting(log, "guessing", None) as advance:
        coming = (one.source for one in unlabelled())
        while window := list(islice(coming, WINDOW)):
            for source, guess in zip(window, guesser.guess(window), strict=True):
                if guess:
                    counts[guess.label] += 1
                    record = {"text": source, "label": guess.label, "probability": round(guess.probability, 4)}
                    stream.write(json.dumps(record, ensure_ascii=False).encode() + b"\n")
            advance(len(window))
    log.print(", ".join(f"{label}: {counts[label]:,}" for label in guesser.labels) + f" texts in {out}", soft_wrap=True)
