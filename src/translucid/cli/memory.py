"""`translucid memory`: translation memories."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.text import Text
from typer import Argument, Option

from translucid.cli import option
from translucid.cli.arguments import pair_up
from translucid.cli.printing import print_json
from translucid.cli.run_kinds import configuration_of
from translucid.cli.train import shares
from translucid.data.readers.corpus import BadLines, read_pairs
from translucid.ground.atomic import output, refuse_unusable_name
from translucid.ground.console import Console, progress_bar, table_of
from translucid.ground.errors import UserError

if TYPE_CHECKING:
    from bitext.memory.match import Match
    from bitext.memory.translation_memory import TranslationMemory
    from translucid.training.memory_updates import MemoryUpdate
    from translucid.training.trainer import Trainer


def learn(
    context: typer.Context,
    run: option.Run,
    memory: Annotated[Path, Argument(metavar="MEMORY", help="A memory, or a corpus.")],
    out: Annotated[Path | None, Option(help="The run folder to make.")] = None,
    adapter: Annotated[str | None, Option(metavar="NAME", help="Train an adapter for translate --adapter.")] = None,
    mix: Annotated[list[str] | None, Option(metavar="FILES=SHARE", help="General pairs; RUN's own by default.")] = None,
    relearn: Annotated[bool, Option("--relearn", help="Learn all entries, not only new ones.")] = False,
    settings: option.Set = None,
    overwrite: option.Overwrite = False,
    device: option.Device = "auto",
) -> None:
    """Fine-tune a run on the entries of a memory that are new since it last learned.

    One pair of ten is held out to measure the gain. The training data of RUN are mixed in, if the files still exist,
    and its validation pairs guard against forgetting.

    **Examples**

        translucid memory learn runs/es mine.memory --out runs/mine

        translucid memory learn runs/mine mine.memory --out runs/mine-2

        translucid memory learn runs/es mine.memory --adapter mine
    """
    from bitext.memory.database import is_database
    from bitext.memory.translation_memory import TranslationMemory
    from translucid.memory.opening import open_memory
    from translucid.runs.run_folder import RunFolder
    from translucid.training.memory_updates import keep_adapter, note_learned, prepare_update
    from translucid.training.post_training import measure_trained, tune_trained

    if out is None and adapter is None:
        raise UserError("there is nowhere to keep what is learned", fix="Give --out RUN, or --adapter NAME.")
    if adapter is not None:
        refuse_unusable_name(adapter)
    out = out or run.with_name(f"{run.name}-{adapter}")
    RunFolder(out).refuse_overwrite(overwrite)
    console = Console(stderr=True)
    if is_database(memory):
        opened = TranslationMemory.open(memory, write=True)
    else:
        opened = open_memory(memory, configuration_of(run).data.languages, console)
    with opened as entries:
        general_shares = shares(mix) if mix else None
        update = prepare_update(
            run, entries, out, relearn=relearn, adapter=adapter is not None, mix=general_shares, settings=settings or ()
        )
        trainer = _train_update(update, out, overwrite, device, context.obj, console)
        if is_database(memory):  # a corpus has no place for it
            note_learned(out, entries, update.change)
        if adapter:
            adapter_file = keep_adapter(out, run, adapter)
            console.print(f"translucid translate {run} --adapter {adapter}: {adapter_file}", soft_wrap=True)
        tune_trained(trainer, console)
        measure_trained(trainer, console)


def _train_update(
    update: MemoryUpdate, out: Path, overwrite: bool, device: str, command: list[str] | None, console: Console
) -> Trainer:
    """Train on the entries of a memory, and print the gain."""
    from translucid.training.experiment import prepared
    from translucid.training.memory_updates import remove_earlier_pairs
    from translucid.training.post_training import show_gain

    mixture = f"mixed with {', '.join(update.general)}" if update.general else "with nothing general mixed in"
    console.print(f"{update.pairs:,} new pairs, {update.held_out:,} of them held out, {mixture}", soft_wrap=True)
    with prepared(update.configuration, out, overwrite=overwrite, device=device, console=console, command=command) as (
        trainer,
        display,
    ):
        remove_earlier_pairs(out, update)
        trainer.fit(display)
    show_gain(trainer, console)
    return trainer


app = typer.Typer(
    no_args_is_help=True,
    help="Translation memories: earlier translations and corrections.",
    rich_markup_mode="markdown",
)
app.command("learn")(learn)

MemoryArgument = Annotated[Path, Argument(metavar="MEMORY", help="A memory, or a corpus of any kind, such as a .tmx.")]
DatabaseArgument = Annotated[Path, Argument(metavar="MEMORY", help="A file that ends in .memory.")]
SourceCode = Annotated[str | None, Option("--source-language", metavar="CODE", help="The language of the sources.")]
TargetCode = Annotated[str | None, Option("--target-language", metavar="CODE", help="The language of the targets.")]


@app.command()
def add(
    memory: Annotated[Path, Argument(metavar="MEMORY", help="A file that ends in .memory; created if missing.")],
    files: Annotated[list[str], Argument(metavar="FILES", help="Sentence pairs of any kind.")],
    who: Annotated[str | None, Option(help="The translator; the name of the file if not given.")] = None,
    source_language: SourceCode = None,
    target_language: TargetCode = None,
    skip_bad: option.SkipBad = False,
) -> None:
    """Add sentence pairs: a corpus, or a corrected translation. The newest translation of a source replaces others.

    A file is added as a whole or not at all. Others may use the memory and add to it at the same time.

    **Examples**

        translucid memory add mine.memory old.tmx --source-language en --target-language es

        translucid memory add mine.memory corrected.po --who Ana
    """
    from bitext.memory.database import ENDING, is_database
    from bitext.memory.translation_memory import TranslationMemory

    # A corpus is read as a memory, but never changed.
    if not is_database(memory):
        fix = f"Name one that ends in {ENDING}, and add this file to it."
        raise UserError("is not written to", file=memory, fix=fix)
    log, corpora = Console(stderr=True), pair_up(files)
    bad = BadLines() if skip_bad else None
    with TranslationMemory.open(memory, write=True) as opened:
        opened.refuse_other_languages((source_language, target_language))
        opened.note(_language_notes(source_language, target_language))
        for file in corpora:
            with progress_bar(log, "adding", None) as advance:
                pairs = read_pairs(file, languages=opened.languages, on_bad=bad)
                added = opened.add(pairs, who or Path(file).name, advance)
            counts = [f"{count:,} {outcome}" for outcome, count in added._asdict().items() if count]
            log.print(f"{file}: {', '.join(counts) or 'nothing'}", soft_wrap=True)
        if bad and bad.count:
            log.print(f"skipped, as they are no sentence pairs: {bad.count:,}")
        log.print(f"{memory}: {len(opened):,} entries", soft_wrap=True)


@app.command()
def search(
    memory: MemoryArgument,
    text: Annotated[str, Argument(metavar="TEXT", help="The text to look up.")],
    least: Annotated[int, Option(help="The minimum percentage of equal words.", min=30, max=100)] = 70,
    most: Annotated[int, Option(help="The maximum number of matches.", min=1, max=100)] = 5,
    source_language: SourceCode = None,
    target_language: TargetCode = None,
    as_json: option.Json = False,
) -> None:
    """Show fuzzy matches of a text, with their percentage and the words that differ.

    **Examples**

        translucid memory search mine.memory "Save the file"

        translucid memory search old.tmx "Save the file" --least 50 --json
    """
    from translucid.memory.opening import open_memory

    with open_memory(memory, (source_language, target_language), Console(stderr=True)) as opened:
        matches = opened.matches(text, least, most)
    if as_json:
        print_json([match.record() for match in matches])
        return
    console = Console()
    for match in matches:
        _show(console, match)
    if not matches:
        Console(stderr=True).print(f"nothing has {least} % of these words")


@app.command()
def find(
    memory: MemoryArgument,
    text: Annotated[str, Argument(metavar="TEXT", help="The text to find in the entries.")],
    side: Annotated[Literal["source", "target", "both"], Option("--in", help="The side to search.")] = "both",
    words: Annotated[bool, Option("--words", help="Find whole words only.")] = False,
    most: Annotated[int, Option(help="The maximum number of entries.", min=1, max=100_000)] = 20,
    source_language: SourceCode = None,
    target_language: TargetCode = None,
    as_json: option.Json = False,
) -> None:
    """Find a word or a part of a text in a memory, and show its translations, the newest first.

    Case is ignored. To look up segments that are similar to a text, use `memory search`.

    **Examples**

        translucid memory find mine.memory "file"

        translucid memory find mine.memory "archivo" --in target --words --json
    """
    from bitext.memory.match import search_pattern
    from bitext.memory.translation_memory import SIDES
    from translucid.memory.opening import open_memory

    pattern = search_pattern(text, whole_words=words)
    if pattern is None:
        raise UserError("there is nothing to find", fix="Give a word, or a part of a text.")
    sides = SIDES if side == "both" else (side,)
    with open_memory(memory, (source_language, target_language), Console(stderr=True)) as opened:
        # One more entry than is shown tells whether there are others.
        matching_entries = list(islice(opened.find(text, sides=sides, whole_words=words), most + 1))
    entries, log = matching_entries[:most], Console(stderr=True)
    if as_json:
        rows = [{**asdict(entry), "when": _day(entry.when)} for entry in entries]
        print_json(rows)
    else:
        console = Console()
        for entry in entries:
            context = Text.assemble(entry.source, (f"  ({entry.who}, {_day(entry.when)})", "dim"))
            translation = Text(f"      {entry.target}")
            for line, name in ((context, "source"), (translation, "target")):
                if name in sides:
                    line.highlight_regex(pattern, "bold yellow")
                console.print(line, soft_wrap=True)
    if not entries:
        log.print(f"no entry has {text!r}", soft_wrap=True)
    elif len(matching_entries) > most:
        log.print(f"there are more than {most:,}: raise --most", soft_wrap=True)


@app.command()
def edit(
    memory: DatabaseArgument,
    source: Annotated[str, Argument(metavar="SOURCE", help="The whole source of an entry.")],
    target: Annotated[str, Argument(metavar="TARGET", help="The new translation.")],
    who: Annotated[str, Option(help="The translator.")] = "edited",
) -> None:
    """Change the translation of an entry of a memory.

    **Examples**

        translucid memory edit mine.memory "Save the file" "Guarde el archivo" --who Ana
    """
    with _open_for_writing(memory) as opened:
        old_entry = opened.edit(source, target, who)
    if old_entry is None:
        fix = f"Find its source (translucid memory find {memory} WORD), or add it (memory add)."
        raise UserError(f"has no entry of {source!r}", file=memory, fix=fix)
    Console().print(
        f"{old_entry.source}: {old_entry.target} → {' '.join(target.split())}", soft_wrap=True, markup=False
    )


@app.command()
def remove(
    memory: DatabaseArgument,
    sources: Annotated[list[str], Argument(metavar="SOURCE...", help="The whole sources of entries.")],
) -> None:
    """Remove entries from a memory; if one of them does not exist, none is removed.

    **Examples**

        translucid memory remove mine.memory "Save the file"
    """
    with _open_for_writing(memory) as opened:
        removed = opened.remove(sources)
        entry_count = len(opened)
    for entry in removed:
        Console().print(f"removed: {entry.source} → {entry.target}", soft_wrap=True, markup=False)
    Console(stderr=True).print(f"{memory}: {entry_count:,} entries", soft_wrap=True, markup=False)


def _open_for_writing(memory: Path) -> TranslationMemory:
    """Open a memory to change its entries; unlike with `add`, it must exist."""
    from bitext.memory.database import ENDING, is_database
    from bitext.memory.translation_memory import TranslationMemory

    if not is_database(memory):
        fix = f"Entries of a {ENDING} file can be changed; add this file to one: translucid memory add."
        raise UserError("is not written to", file=memory, fix=fix)
    if not memory.exists():
        raise UserError("there is no such memory", file=memory, fix="Make one: translucid memory add MEMORY FILES.")
    return TranslationMemory.open(memory, write=True)


def _show(console: Console, match: Match) -> None:
    origin = f"{match.entry.who}, {_day(match.entry.when)}"
    console.print(Text.assemble((f"{match.percent:>3} % ", "bold"), match.entry.source, (f"  ({origin})", "dim")))
    console.print(Text(f"      {match.target}"))
    for query_words, entry_words in match.differing:
        console.print(
            Text.assemble("      ", (query_words or "∅", "yellow"), " here, ", (entry_words or "∅", "yellow"), " there")
        )


@app.command()
def forget(memory: DatabaseArgument) -> None:
    """Remove the latest adapter that a server has learned from a memory (`serve --learn`).

    The one before it, if there is one, or else the model alone translates from the next request on. Entries stay.

    **Examples**

        translucid memory forget mine.memory
    """
    from translucid.memory.learned_adapters import forget_latest

    removed, before = forget_latest(memory)
    rest = f"{before} applies again" if before else "there is no other"
    Console(stderr=True).print(f"removed {removed}; {rest}", soft_wrap=True)


@app.command()
def stats(
    memory: MemoryArgument,
    source_language: SourceCode = None,
    target_language: TargetCode = None,
    as_json: option.Json = False,
) -> None:
    """Show how many entries a memory has, and who wrote them.

    **Examples**

        translucid memory stats mine.memory
    """
    from translucid.memory.opening import open_memory

    with open_memory(memory, (source_language, target_language), Console(stderr=True)) as opened:
        count, origins = len(opened), opened.by_origin()
        languages = _language_notes(*opened.languages)
    if as_json:
        rows = [{"who": who, "entries": entries, "latest": _day(latest)} for who, entries, latest in origins]
        print_json({"entries": count, **languages, "from": rows})
        return
    console = Console()
    console.print(f"{count:,} entries")
    for name, code in languages.items():
        console.print(f"{name}: {code}", soft_wrap=True)
    table = table_of("from", figures=["entries"])
    table.add_column("latest")
    for who, entries, latest in origins:
        table.add_row(Text(who), f"{entries:,}", _day(latest))
    console.print(table)


@app.command()
def export(
    memory: MemoryArgument,
    out: Annotated[
        Path,
        Argument(metavar="OUT", callback=option.to_write(".tmx", ".tsv"), help="The file to write: .tmx, or .tsv."),
    ],
    source_language: SourceCode = None,
    target_language: TargetCode = None,
    overwrite: option.Overwrite = False,
) -> None:
    """Export a memory for other programs.

    **Examples**

        translucid memory export mine.memory mine.tmx

        translucid memory export mine.memory mine.tmx --source-language en --target-language es --overwrite
    """
    from bitext.memory.translation_memory import export_languages, write_tmx, write_tsv
    from translucid import __version__
    from translucid.memory.opening import open_memory

    log = Console(stderr=True)
    with open_memory(memory, (source_language, target_language), log) as opened:
        source, target = export_languages(opened, (source_language, target_language))
        # TMX requires the language of each text.
        if out.suffix.lower() == ".tmx" and not (source and target):
            fix = "Give --source-language CODE and --target-language CODE."
            raise UserError("a .tmx says of which languages it is, and the memory does not know", file=memory, fix=fix)
        with output(out) as stream, progress_bar(log, "writing", len(opened)) as advance:
            if source and target and out.suffix.lower() == ".tmx":
                write_tmx(opened, stream, (source, target), advance, __version__)
            else:
                write_tsv(opened, stream, advance)


def _language_notes(source: str | None, target: str | None) -> dict[str, str]:
    """Return the codes of the known languages under the names that a memory stores them by."""
    languages = {}
    if source:
        languages["source language"] = source
    if target:
        languages["target language"] = target
    return languages


def _day(timestamp: int) -> str:
    return datetime.fromtimestamp(timestamp, UTC).strftime("%Y-%m-%d %H:%M")
