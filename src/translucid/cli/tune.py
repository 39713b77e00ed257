"""`translucid tune`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from translucid.cli.files import pair_up


def tune(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The run folder that `translucid train` wrote.")],
    train: Annotated[
        list[str] | None, typer.Option("--train", metavar="FILES", help="Pairs to learn the shortlist from.")
    ] = None,
    valid: Annotated[
        list[str] | None, typer.Option("--valid", metavar="FILES", help="Pairs to compare speed and BLEU on.")
    ] = None,
    allow: Annotated[float, typer.Option(help="BLEU that may be lost.", min=0)] = 0.1,
    pairs: Annotated[int, typer.Option(help="Look at this many training pairs, at most.", min=1)] = 50_000,
    sentences: Annotated[int, typer.Option(help="Translate this many sentences each time.", min=1)] = 1000,
) -> None:
    """Find the fastest way to translate on this machine's CPU, and remember it.

    Tries our own engine and, for a Transformer, CTranslate2 with full and with 8-bit weights, each with the whole
    vocabulary and with a shortlist of the target pieces that the words of a sentence may become. The fastest that
    loses next to no BLEU is what `translate`, `evaluate` and `serve` use from then on. Without --train and --valid the
    run's own files are read.

    **Examples**

        translucid tune runs/mine

        translucid tune runs/mine --train pairs.tsv --valid dev.tsv --allow 0.2
    """
    from itertools import islice

    from translucid.atomic import write_atomically
    from translucid.data.corpus import read_pairs
    from translucid.errors import UserError
    from translucid.interop.shortlist import learn_shortlist
    from translucid.interop.tuned import SHORTLIST, save_tuned
    from translucid.interop.tuning import all_ways, fastest, trials
    from translucid.progress import counting
    from translucid.translator import Translator

    console = Console(stderr=True, highlight=False)
    translator = Translator.load(run, "cpu", "torch")
    if not translator.can_look():
        raise UserError("there is nothing to tune: a shortlist is learned from attention, and it has none", file=run)
    data = translator.configuration.data
    files = {"--train": pair_up(train or data.train), "--valid": pair_up(valid or data.valid)}
    for option, given in files.items():
        if not given:
            raise UserError("the run does not say which files it was trained on", fix=f"Give them with {option} FILES.")
    texts = list(islice(read_pairs(*files["--train"]), pairs))
    ids = [pair for pair in translator.pair_ids(texts) if max(map(len, pair)) <= translator.longest]
    with counting(console, "learning the shortlist", len(ids)) as advance:
        shortlist = learn_shortlist(translator.model, translator.tokenizer, ids, translator.device, advance)
    write_atomically(run / SHORTLIST, shortlist.encode())

    test = list(islice(read_pairs(*files["--valid"]), sentences))
    if not test:
        raise UserError("holds no sentence pairs", file=files["--valid"][0], fix="Check the file.")
    options = translator.configuration.decoding
    tried = []
    ways = all_ways(translator.model)
    with counting(console, "trying", len(ways)) as advance:
        for trial in trials(translator.model, translator.tokenizer, test, options, run / SHORTLIST, ways):
            tried.append(trial)
            advance(1)
    best = fastest(tried, allow)
    save_tuned(run, best.tuned)
    table = Table(box=None, pad_edge=False)
    for column in ("engine", "weights", "vocabulary"):
        table.add_column(column)
    for column in ("sentences/s", "BLEU", ""):
        table.add_column(column, justify="right")
    for trial in tried:
        way, chosen = trial.tuned, "← from now on" if trial is best else ""
        words = "shortlist" if way.shortlist else "whole"
        speed = f"{trial.sentences_per_second:,.0f}"
        table.add_row(way.engine, way.quantization, words, speed, f"{trial.bleu:.2f}", chosen)
    Console(highlight=False).print(table)
