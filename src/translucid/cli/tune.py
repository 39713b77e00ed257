"""`translucid tune`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from translucid.cli.arguments import SourceOption, TargetOption, pair_up
from translucid.engines import ALLOWED
from translucid.ground.console import Console


def tune(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The run folder that `translucid train` wrote.")],
    train: Annotated[
        list[str] | None, typer.Option("--train", metavar="FILES", help="The pairs that it was trained on.")
    ] = None,
    valid: Annotated[
        list[str] | None, typer.Option("--valid", metavar="FILES", help="Pairs to compare speed and BLEU on.")
    ] = None,
    allow: Annotated[float, typer.Option(help="BLEU that may be lost.", min=0)] = ALLOWED,
    shortlists: Annotated[
        bool, typer.Option("--shortlists", help="Also try two lexical shortlists; see above for what they cost.")
    ] = False,
    pairs: Annotated[
        int, typer.Option(help="With --shortlists: learn from so many training pairs, at most.", min=1)
    ] = 50_000,
    sentences: Annotated[int, typer.Option(help="Translate this many sentences each time.", min=1)] = 1000,
    source_language: SourceOption = None,
    target_language: TargetOption = None,
) -> None:
    """Find the fastest way to translate on this machine's CPU, and remember it.

    Tries our own engine and, for a Transformer, CTranslate2 with full and with 8-bit weights, each with all pieces of
    the vocabulary and, if both languages share one, with those alone that the training text has in the target language.
    The fastest that loses next to no BLEU is what `translate`, `evaluate` and `serve` use from then on. `translucid
    train` does this in the end, if it trains on a CPU. Without --train and --valid the run's own files are read.

    With --shortlists also with those pieces alone that the words of a sentence may become, learned from the attention
    over the training pairs: faster still, but what a sentence becomes then depends a little on the sentences that it is
    translated together with.

    Of a model of many languages, such pieces hold for the pair of languages that they were learned from; between
    others, all are considered.

    **Examples**

        translucid tune runs/mine

        translucid tune runs/mine --shortlists

        translucid tune runs/mine --train pairs.tsv --valid dev.tsv --allow 0.5
    """
    from translucid.engines.tuning import find_fastest
    from translucid.interop.on_the_fly import run_of

    console = Console(stderr=True)
    tried, best = find_fastest(
        run_of(run),
        train=pair_up(train or []),
        valid=pair_up(valid or []),
        allow=allow,
        shortlists=shortlists,
        pairs=pairs,
        sentences=sentences,
        source=source_language,
        target=target_language,
        console=console,
    )
    table = Table(box=None, pad_edge=False)
    for column in ("engine", "weights", "considered"):
        table.add_column(column)
    for column in ("sentences/s", "BLEU", ""):
        table.add_column(column, justify="right")
    for trial in tried:
        speed, kept = f"{trial.sentences_per_second:,.0f}", "← from now on" if trial is best else ""
        tuned = trial.tuned
        table.add_row(tuned.engine, tuned.quantization, tuned.considered, speed, f"{trial.bleu:.2f}", kept)
    Console().print(table)
