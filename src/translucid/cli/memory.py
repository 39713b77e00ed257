"""`translucid memory`: what was translated and corrected before: add to it, search it, write it for other programs."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.table import Table
from rich.text import Text

from translucid.cli.arguments import pair_up, refuse_to_replace
from translucid.cli.memory_learning import learn
from translucid.ground.console import Console
from translucid.ground.errors import UserError

if TYPE_CHECKING:
    from translucid.memory.match import Match
    from translucid.memory.translation_memory import TranslationMemory

app = typer.Typer(
    no_args_is_help=True,
    help="Translation memories: what was translated before, and what people corrected.",
    rich_markup_mode="markdown",
)
app.command("learn")(learn)

MemoryArgument = Annotated[
    Path, typer.Argument(metavar="MEMORY", help="What `memory add` wrote, or a corpus of any kind, such as a .tmx.")
]
DatabaseArgument = Annotated[Path, typer.Argument(metavar="MEMORY", help="A file that ends in .memory.")]
SourceCode = Annotated[str | None, typer.Option("--source-language", metavar="CODE", help="Of the sources.")]
TargetCode = Annotated[str | None, typer.Option("--target-language", metavar="CODE", help="Of the translations.")]


@app.command()
def add(
    memory: Annotated[Path, typer.Argument(metavar="MEMORY", help="A file that ends in .memory; made if not there.")],
    files: Annotated[list[str], typer.Argument(metavar="FILES", help="Sentence pairs of any kind.")],
    who: Annotated[str | None, typer.Option(help="Who has translated them; the file's name if not given.")] = None,
    source_language: SourceCode = None,
    target_language: TargetCode = None,
    skip_bad: Annotated[bool, typer.Option("--skip-bad", help="Skip lines that are no sentence pairs.")] = False,
) -> None:
    """Add sentence pairs: a corpus, or a file that was translated and corrected. Of one source the newest stays.

    A file is added as a whole or not at all. Others may use the memory, and add to it, meanwhile.

    **Examples**

        translucid memory add mine.memory old.tmx --source-language en --target-language es

        translucid memory add mine.memory corrected.po --who Ana
    """
    from translucid.data.readers.bad_lines import BadLines
    from translucid.data.readers.corpus import read_pairs
    from translucid.ground.console import counting
    from translucid.memory.database import ENDING, is_database
    from translucid.memory.translation_memory import TranslationMemory

    if not is_database(memory):
        fix = f"Name one that ends in {ENDING}, and add this file to it."
        raise UserError("is not written to", file=memory, fix=fix)
    log, corpora, bad = Console(stderr=True), pair_up(files), BadLines() if skip_bad else None
    with TranslationMemory.open(memory, write=True) as opened:
        opened.refuse_other_languages((source_language, target_language))
        given = {"source language": source_language, "target language": target_language}
        opened.note({name: code for name, code in given.items() if code})
        for file in corpora:
            with counting(log, "adding", None) as advance:
                pairs = read_pairs(file, languages=opened.languages, on_bad=bad)
                added = opened.add(pairs, who or Path(file).name, advance)
            told = ", ".join(f"{count:,} {what}" for what, count in added._asdict().items() if count)
            log.print(f"{file}: {told or 'nothing'}", soft_wrap=True)
        if bad and bad.count:
            log.print(f"skipped, as they are no sentence pairs: {bad.count:,}")
        log.print(f"{memory}: {len(opened):,} entries", soft_wrap=True)


@app.command()
def search(
    memory: MemoryArgument,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What to look up.")],
    least: Annotated[int, typer.Option(help="Percent of the words that are the same, at least.", min=30, max=100)] = 70,
    most: Annotated[int, typer.Option(help="Matches shown, at most.", min=1, max=100)] = 5,
    source_language: SourceCode = None,
    target_language: TargetCode = None,
    as_json: bool = typer.Option(False, "--json"),
) -> None:
    """Show what of a memory is like a text, with a percentage and the words that differ.

    **Examples**

        translucid memory search mine.memory "Save the file"

        translucid memory search old.tmx "Save the file" --least 50 --json
    """
    from translucid.memory.opening import open_memory

    with open_memory(memory, (source_language, target_language), Console(stderr=True)) as opened:
        found = opened.matches(text, least, most)
    if as_json:
        print(json.dumps([match.record() for match in found], ensure_ascii=False, indent=2))
        return
    console = Console()
    for match in found:
        _show(console, match)
    if not found:
        Console(stderr=True).print(f"nothing has {least} % of these words")


@app.command()
def find(
    memory: MemoryArgument,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What to find in the entries.")],
    side: Annotated[Literal["source", "target", "both"], typer.Option("--in", help="Where to look.")] = "both",
    words: Annotated[bool, typer.Option("--words", help="Find whole words only.")] = False,
    most: Annotated[int, typer.Option(help="Entries shown, at most.", min=1, max=100_000)] = 20,
    source_language: SourceCode = None,
    target_language: TargetCode = None,
    as_json: bool = typer.Option(False, "--json"),
) -> None:
    """Find a word or a part of a text in a memory, and show how it was translated; the newest entries come first.

    Case does not count. To look up whole segments that are like a text, use `memory search`.

    **Examples**

        translucid memory find mine.memory "file"

        translucid memory find mine.memory "archivo" --in target --words --json
    """
    from translucid.memory.folding import found_in
    from translucid.memory.opening import open_memory
    from translucid.memory.translation_memory import SIDES

    pattern = found_in(text, whole_words=words)
    if pattern is None:
        raise UserError("there is nothing to find", fix="Give a word, or a part of a text.")
    sides = SIDES if side == "both" else (side,)
    with open_memory(memory, (source_language, target_language), Console(stderr=True)) as opened:
        found = list(islice(opened.find(text, sides=sides, whole_words=words), most + 1))
    entries, log = found[:most], Console(stderr=True)
    if as_json:
        rows = [{**asdict(entry), "when": _day(entry.when)} for entry in entries]
        print(json.dumps(rows, ensure_ascii=False, indent=2))
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
    elif len(found) > most:
        log.print(f"there are more than {most:,}: raise --most", soft_wrap=True)


@app.command()
def edit(
    memory: DatabaseArgument,
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="The source of an entry, all of it.")],
    target: Annotated[str, typer.Argument(metavar="TARGET", help="Its new translation.")],
    who: Annotated[str, typer.Option(help="Who has translated it.")] = "edited",
) -> None:
    """Give an entry of a memory another translation.

    **Examples**

        translucid memory edit mine.memory "Save the file" "Guarde el archivo" --who Ana
    """
    with _opened_to_write(memory) as opened:
        before = opened.edit(source, target, who)
    if before is None:
        fix = f"Find its source (translucid memory find {memory} WORD), or add it (memory add)."
        raise UserError(f"has no entry of {source!r}", file=memory, fix=fix)
    Console().print(f"{before.source}: {before.target} → {' '.join(target.split())}", soft_wrap=True, markup=False)


@app.command()
def remove(
    memory: DatabaseArgument,
    sources: Annotated[list[str], typer.Argument(metavar="SOURCE...", help="The sources of entries, all of each.")],
) -> None:
    """Remove entries from a memory: all that are named or, if one of them is not there, none.

    **Examples**

        translucid memory remove mine.memory "Save the file"
    """
    with _opened_to_write(memory) as opened:
        removed = opened.remove(sources)
        left = len(opened)
    for entry in removed:
        Console().print(f"removed: {entry.source} → {entry.target}", soft_wrap=True, markup=False)
    Console(stderr=True).print(f"{memory}: {left:,} entries", soft_wrap=True, markup=False)


def _opened_to_write(memory: Path) -> TranslationMemory:
    """Open a memory whose entries are to be changed; unlike for `add`, it has to be there.

    Raises:
        UserError: it is none, or there is none.
    """
    from translucid.memory.database import ENDING, is_database
    from translucid.memory.translation_memory import TranslationMemory

    if not is_database(memory):
        fix = f"Entries of a {ENDING} file can be changed; add this file to one: translucid memory add."
        raise UserError("is not written to", file=memory, fix=fix)
    if not memory.exists():
        raise UserError("there is no such memory", file=memory, fix="Make one: translucid memory add MEMORY FILES.")
    return TranslationMemory.open(memory, write=True)


def _show(console: Console, match: Match) -> None:
    about = f"{match.entry.who}, {_day(match.entry.when)}"
    console.print(Text.assemble((f"{match.percent:>3} % ", "bold"), match.entry.source, (f"  ({about})", "dim")))
    console.print(Text(f"      {match.target}"))
    for ours, theirs in match.differing:
        console.print(Text.assemble("      ", (ours or "∅", "yellow"), " here, ", (theirs or "∅", "yellow"), " there"))


@app.command()
def stats(
    memory: MemoryArgument,
    source_language: SourceCode = None,
    target_language: TargetCode = None,
    as_json: bool = typer.Option(False, "--json"),
) -> None:
    """Show how many entries a memory has, and who they are from.

    **Examples**

        translucid memory stats mine.memory
    """
    from translucid.memory.opening import open_memory

    with open_memory(memory, (source_language, target_language), Console(stderr=True)) as opened:
        count, origins = len(opened), opened.by_origin()
        both = zip(("source language", "target language"), opened.languages, strict=True)
        languages = {name: code for name, code in both if code}
    if as_json:
        rows = [{"who": who, "entries": entries, "latest": _day(at)} for who, entries, at in origins]
        print(json.dumps({"entries": count, **languages, "from": rows}, ensure_ascii=False, indent=2))
        return
    console = Console()
    console.print(f"{count:,} entries")
    for name, code in languages.items():
        console.print(f"{name}: {code}", soft_wrap=True)
    table = Table(box=None, pad_edge=False)
    for column in ("from", "entries", "latest"):
        table.add_column(column, justify="right" if column == "entries" else "left")
    for who, entries, at in origins:
        table.add_row(Text(who), f"{entries:,}", _day(at))
    console.print(table)


@app.command()
def export(
    memory: MemoryArgument,
    out: Annotated[Path, typer.Argument(metavar="OUT", help="The file to write: .tmx, or .tsv.")],
    source_language: SourceCode = None,
    target_language: TargetCode = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a file that is there.")] = False,
) -> None:
    """Write a memory for other programs.

    **Examples**

        translucid memory export mine.memory mine.tmx

        translucid memory export mine.memory mine.tmx --source-language en --target-language es --overwrite
    """
    from translucid.ground.atomic import output
    from translucid.ground.console import counting
    from translucid.memory.exporting import export_languages, write_tmx, write_tsv
    from translucid.memory.opening import open_memory

    refuse_to_replace(out, overwrite, (".tmx", ".tsv"))
    log = Console(stderr=True)
    with open_memory(memory, (source_language, target_language), log) as opened:
        source, target = export_languages(opened, (source_language, target_language))
        if out.suffix.lower() == ".tmx" and not (source and target):
            fix = "Give --source-language CODE and --target-language CODE."
            raise UserError("a .tmx says of which languages it is, and the memory does not know", file=memory, fix=fix)
        with output(out) as stream, counting(log, "writing", len(opened)) as advance:
            if source and target and out.suffix.lower() == ".tmx":
                write_tmx(opened, stream, (source, target), advance)
            else:
                write_tsv(opened, stream, advance)


def _day(at: int) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M")
