"""`translucid terms`: term lists and termbases."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from translucid.cli import option
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
