"""`translucid terms`: term lists and termbases."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from itertools import chain
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from bitext.pair import Pair
from translucid.cli import option
from translucid.cli.arguments import pair_up
from translucid.ground.atomic import write_output
from translucid.ground.console import Console
from translucid.ground.errors import UserError

app = typer.Typer(no_args_is_help=True, help="Term lists and termbases.", rich_markup_mode="markdown")
SourceCode = Annotated[str | None, Option("--source-language", metavar="CODE", help="The language of the sources.")]
TargetCode = Annotated[str | None, Option("--target-language", metavar="CODE", help="The language of the targets.")]


class Dialect(StrEnum):
    """A value of `--dialect`."""

    DCA = "dca"
    DCT = "dct"
    MARTIF = "martif"


@app.command()
def convert(
    terms: Annotated[Path, Argument(metavar="FILE", help="A term list or a termbase: .tsv, .csv or .tbx.")],
    out: Annotated[
        Path,
        Argument(metavar="OUT", callback=option.to_write(".tsv", ".csv", ".tbx"), help="The file to write."),
    ],
    source_language: SourceCode = None,
    target_language: TargetCode = None,
    dialect: Annotated[
        Dialect, Option(help="The form of a .tbx: version 3 in either style, or version 2 (martif).")
    ] = Dialect.DCA,
    skip_bad: option.SkipBad = False,
    overwrite: option.Overwrite = False,
) -> None:
    """Convert a term list into a termbase (TBX), or the reverse.

    Domains (`subjectField`) and example sentences (`context`) stay; what a term list has no place for is counted.

    **Examples**

        translucid terms convert termbase.tbx terms.tsv --source-language en --target-language es

        translucid terms convert terms.tsv terms.tbx --source-language en --target-language es
    """
    from translucid import __version__
    from translucid.data.readers.corpus import BadLines
    from translucid.terminology.glossary import iterate_terms, senses, tsv_text
    from translucid.terminology.tbx import LeftOut, tbx_text

    languages = source_language, target_language
    ending = out.suffix.lower()
    if ending == ".tbx" and not (source_language and target_language):
        fix = "Give --source-language CODE and --target-language CODE."
        raise UserError("a .tbx names the languages of its terms", file=out, fix=fix)
    log, bad, left_out = Console(stderr=True), BadLines(), LeftOut()
    read = list(iterate_terms(terms, languages, bad if skip_bad else None, left_out))
    if ending == ".tbx":
        assert source_language and target_language
        text = "".join(tbx_text(senses(read), (source_language, target_language), dialect.value, __version__))
    else:
        text = tsv_text(read, "," if ending == ".csv" else "\t")
    write_output(out, text.encode())
    log.print(f"{out}: {len(read):,} terms", soft_wrap=True)
    if bad.count:
        log.print(f"skipped, as they are invalid: {bad.count:,}")
    if str(left_out):
        log.print(f"left out: {left_out}", soft_wrap=True)


@app.command()
def extract(
    pairs: Annotated[str, Argument(metavar="FILES", help="A memory, or sentence pairs of any kind.")],
    out: Annotated[Path, Argument(metavar="OUT", callback=option.to_write(".tsv"), help="The list to write: .tsv.")],
    least: Annotated[int, Option(help="The smallest number of occurrences with the same translation.", min=2)] = 5,
    most: Annotated[int, Option(help="The largest number of candidates.", min=1)] = 500,
    share: Annotated[
        float, Option(help="The smallest share of a term's occurrences with the translation.", min=0, max=1)
    ] = 0.3,
    known: Annotated[Path | None, Option(metavar="FILE", help="A term list; its terms are left out.")] = None,
    general: Annotated[
        list[str] | None, option.files("Pairs of the general language: what is as frequent there comes last.")
    ] = None,
    source_language: SourceCode = None,
    target_language: TargetCode = None,
    skip_bad: option.SkipBad = False,
    overwrite: option.Overwrite = False,
) -> None:
    """Find terms in sentence pairs, with counts and examples, for a person to accept.

    Write something into the column `accepted` of the terms that you want, in a text editor or a spreadsheet. As a term
    list, the file has only these.

    **Examples**

        translucid terms extract mine.memory candidates.tsv

        translucid terms extract old.tmx candidates.tsv --least 10 --known terms.tsv --general news.tsv

        translucid terms convert candidates.tsv terms.tsv
    """
    from bitext.memory.database import is_database
    from translucid.data.readers.corpus import BadLines, read_pairs
    from translucid.ground.console import progress_bar
    from translucid.memory.opening import open_memory
    from translucid.terminology.extraction import extracted, tsv_of
    from translucid.terminology.glossary import read_terms

    languages = source_language, target_language
    log = Console(stderr=True)
    known_pairs = (
        {(term.source.casefold(), term.target.casefold()) for term in read_terms(known, languages)} if known else set()
    )

    def is_known(source: str, target: str) -> bool:
        return (source.casefold(), target.casefold()) in known_pairs

    bad = BadLines() if skip_bad else None

    def read() -> Iterator[Pair]:
        if is_database(Path(pairs)):
            with open_memory(pairs, languages) as memory:
                for entry in memory.entries():
                    yield Pair(entry.source, entry.target)
        else:
            yield from read_pairs(pairs, languages=languages, on_bad=bad)

    with progress_bar(log, "reading", None) as advance:
        general_pairs = chain.from_iterable(read_pairs(file, on_bad=bad) for file in pair_up(general or []))
        candidates = extracted(
            read, least=least, least_share=share, known=is_known, general=general_pairs, advance=advance
        )
    write_output(out, tsv_of(candidates[:most]).encode())
    left_out = f" of {len(candidates):,}" if len(candidates) > most else ""
    log.print(f"{out}: {min(len(candidates), most):,}{left_out} candidates", soft_wrap=True)
