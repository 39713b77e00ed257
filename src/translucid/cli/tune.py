"""`translucid tune`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from translucid.cli.files import pair_up

LISTS = {"short": (20, 400), "long": (80, 1200)}
"""Of each shortlist tried: the pieces that a source piece brings in, and the frequent ones that are always in."""


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
    vocabulary and with two shortlists of the target pieces that the words of a sentence may become. The fastest that
    loses next to no BLEU is what `translate`, `evaluate` and `serve` use from then on. Without --train and --valid the
    run's own files are read.

    **Examples**

        translucid tune runs/mine

        translucid tune runs/mine --train pairs.tsv --valid dev.tsv --allow 0.2
    """
    import tempfile
    from itertools import islice

    from translucid.data.corpus import read_pairs
    from translucid.errors import UserError
    from translucid.interop.shortlist import learn_links
    from translucid.interop.tuned import save_tuned
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
    test = list(islice(read_pairs(*files["--valid"]), sentences))
    if not test:
        raise UserError("holds no sentence pairs", file=files["--valid"][0], fix="Check the file.")
    with counting(console, "learning the shortlists", len(ids)) as advance:
        links = learn_links(translator.model, ids, translator.device, advance)
    options = translator.configuration.decoding
    tried = []
    with tempfile.TemporaryDirectory(prefix="translucid-") as folder:
        shortlists = [Path(folder) / f"{name}.tsv" for name in LISTS]
        for file, (each, always) in zip(shortlists, LISTS.values(), strict=True):
            file.write_text(links.shortlist(translator.tokenizer, each, always), encoding="utf-8")
        ways = all_ways(translator.model, shortlists)
        with counting(console, "trying", len(ways)) as advance:
            for trial in trials(translator.model, translator.tokenizer, test, options, ways):
                tried.append(trial)
                advance(1)
        best = fastest(tried, allow)
        chosen = best.way.shortlist
        save_tuned(run, best.way.tuned, chosen.read_text(encoding="utf-8") if chosen else None)
    table = Table(box=None, pad_edge=False)
    for column in ("engine", "weights", "vocabulary"):
        table.add_column(column)
    for column in ("sentences/s", "BLEU", ""):
        table.add_column(column, justify="right")
    for trial in tried:
        tuned, words = trial.way
        vocabulary = f"{words.stem} shortlist" if words else "whole"
        speed, kept = f"{trial.sentences_per_second:,.0f}", "← from now on" if trial is best else ""
        table.add_row(tuned.engine, tuned.quantization, vocabulary, speed, f"{trial.bleu:.2f}", kept)
    Console(highlight=False).print(table)
