"""`translucid tune`, and what `translucid train` does of it in the end."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from translucid.cli.files import pair_up

if TYPE_CHECKING:
    from translucid.interop.tuned import Considered
    from translucid.interop.tuning import Trial

ALLOWED = 0.1
"""BLEU that may be lost."""
PAIRS = 50_000
"""Training pairs that are looked at for the shortlists, at most."""
SENTENCES = 1000
"""Sentences that are translated each time, at most."""

LISTS: dict[Considered, tuple[int, int]] = {"short list": (20, 400), "long list": (80, 1200)}
"""Of each shortlist tried: the pieces that a source piece brings in, and the frequent ones that are always in."""


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
    pairs: Annotated[int, typer.Option(help="Learn them from this many training pairs, at most.", min=1)] = PAIRS,
    sentences: Annotated[int, typer.Option(help="Translate this many sentences each time.", min=1)] = SENTENCES,
) -> None:
    """Find the fastest way to translate on this machine's CPU, and remember it.

    Tries our own engine and, for a Transformer, CTranslate2 with full and with 8-bit weights, each with all pieces of
    the vocabulary and, if both languages share one, with those alone that the training text has in the target language.
    The fastest that loses next to no BLEU is what `translate`, `evaluate` and `serve` use from then on. `translucid
    train` does this in the end, if it trains on a CPU. Without --train and --valid the run's own files are read.

    With --shortlists also with those pieces alone that the words of a sentence may become, learned from the attention
    over the training pairs: faster still, but what a sentence becomes then depends a little on the sentences that it is
    translated together with.

    **Examples**

        translucid tune runs/mine

        translucid tune runs/mine --shortlists

        translucid tune runs/mine --train pairs.tsv --valid dev.tsv --allow 0.2
    """
    console = Console(stderr=True, highlight=False)
    tried, best = find_fastest(
        run,
        train=pair_up(train or []),
        valid=pair_up(valid or []),
        allow=allow,
        shortlists=shortlists,
        pairs=pairs,
        sentences=sentences,
        console=console,
    )
    table = Table(box=None, pad_edge=False)
    for column in ("engine", "weights", "considered"):
        table.add_column(column)
    for column in ("sentences/s", "BLEU", ""):
        table.add_column(column, justify="right")
    for trial in tried:
        speed, kept = f"{trial.sentences_per_second:,.0f}", "← from now on" if trial is best else ""
        tuned = trial.way.tuned
        table.add_row(tuned.engine, tuned.quantization, tuned.considered, speed, f"{trial.bleu:.2f}", kept)
    Console(highlight=False).print(table)


def tune_trained(run: Path, console: Console) -> None:
    """Do the same for a run that has just been trained, in a few words; its files may be gone, Ctrl-C leaves it."""
    from translucid.errors import UserError

    try:
        tried, best = find_fastest(run, console=console)
    except UserError as error:
        console.print(f"not tuned: {error}", markup=False, soft_wrap=True)
        return
    except KeyboardInterrupt:
        console.print(f"not tuned; translucid tune {run} does it later", markup=False, soft_wrap=True)
        return
    instead = "" if best is tried[0] else f", not {tried[0]}"
    console.print(f"from now on translated by {best}{instead}", soft_wrap=True)


def find_fastest(
    run: Path,
    *,
    console: Console,
    train: list[str] | None = None,
    valid: list[str] | None = None,
    allow: float = ALLOWED,
    shortlists: bool = False,
    pairs: int = PAIRS,
    sentences: int = SENTENCES,
) -> tuple[list[Trial], Trial]:
    """Try every way to translate with a run, remember the fastest of those that cost next to nothing, and return all.

    Raises:
        UserError: the run is damaged, has no attention to learn shortlists from, or its files, if no others are given,
            are not there.
    """
    import tempfile
    from itertools import islice

    from translucid.data.corpus import read_pairs
    from translucid.errors import UserError
    from translucid.interop.shortlist import learn_links, seen_pieces
    from translucid.interop.tuned import save_tuned
    from translucid.interop.tuning import all_ways, fastest, trials
    from translucid.progress import counting
    from translucid.training.run_folder import RunFolder
    from translucid.translator import Translator

    translator = Translator.load(run, "cpu", "torch")
    tokenizer = translator.tokenizer
    if shortlists and not translator.can_look():
        raise UserError("there are no shortlists: they are learned from attention, and it has none", file=run)
    data = translator.configuration.data
    train, valid = train or data.train, valid or data.valid
    test = list(islice(read_pairs(*valid), sentences)) if valid else (RunFolder(run).held_out() or [])[:sentences]
    for option, there in (("--train", train), ("--valid", valid or test)):
        if not there:
            raise UserError("the run does not say which files it was trained on", fix=f"Give them with {option} FILES.")
    if not test:
        raise UserError("holds no sentence pairs", file=valid[0], fix="Check the file.")
    lists: dict[Considered, str] = {}
    if tokenizer.joint:
        with counting(console, "reading the training text", None) as advance:
            lists["seen pieces"] = seen_pieces(tokenizer, (pair.target for pair in read_pairs(*train)), advance)
    if shortlists:
        texts = list(islice(read_pairs(*train), pairs))
        ids = [pair for pair in translator.pair_ids(texts) if max(map(len, pair)) <= translator.longest]
        with counting(console, "learning the shortlists", len(ids)) as advance:
            links = learn_links(translator.model, ids, translator.device, advance)
        lists |= {name: links.shortlist(tokenizer, each, always) for name, (each, always) in LISTS.items()}
    tried = []
    with tempfile.TemporaryDirectory(prefix="translucid-") as folder:
        files = {name: Path(folder) / f"{name}.tsv" for name in lists}
        for name, file in files.items():
            file.write_text(lists[name], encoding="utf-8")
        ways = all_ways(translator.model, files)
        with counting(console, "trying ways to translate", len(ways)) as advance:
            for trial in trials(translator.model, tokenizer, test, translator.configuration.decoding, ways):
                tried.append(trial)
                advance(1)
    best = fastest(tried, allow)
    save_tuned(run, best.way.tuned, lists.get(best.way.tuned.considered))
    Translator.load(run, "cpu")  # which converts the model if need be, so that the first translation need not wait
    return tried, best
