"""`translucid data clean`."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO, cast

import typer
from rich.table import Table
from rich.text import Text

from translucid.cli.arguments import pair_up, refuse_to_replace, resolved
from translucid.ground.console import Console

if TYPE_CHECKING:
    from translucid.data.cleaning.cleaner import Report
    from translucid.data.cleaning.gain import Surprise
    from translucid.data.readers.corpus import Pair

ENDINGS = (".tsv", ".gz")
SHOWN = 120
"""Characters of an example."""


def clean(
    files: Annotated[list[str], typer.Argument(metavar="FILES", help="Sentence pairs of any kind.")],
    out: Annotated[Path, typer.Option(metavar="OUT.tsv", help="What is kept; .tsv.gz is packed.")],
    rejected: Annotated[
        Path | None,
        typer.Option(metavar="OUT.tsv", help="What is not, and why; OUT.rejected.tsv if not given."),
    ] = None,
    without: Annotated[list[str] | None, typer.Option(metavar="RULES", help="Rules that are not asked.")] = None,
    source_language: Annotated[
        str | None, typer.Option(metavar="CODE", help="Of the source; guessed if not given.")
    ] = None,
    target_language: Annotated[
        str | None, typer.Option(metavar="CODE", help="Of the target; guessed if not given.")
    ] = None,
    forward: Annotated[
        Path | None,
        typer.Option(
            metavar="RUN", callback=resolved, help="A translator that is asked about each pair, with --backward."
        ),
    ] = None,
    backward: Annotated[
        Path | None, typer.Option(metavar="RUN", callback=resolved, help="A translator of the other direction.")
    ] = None,
    min_gain: Annotated[
        float | None,
        typer.Option(help="Share of the surprise that the other side must take away; 0.22 if not given.", min=0, max=1),
    ] = None,
    device: Annotated[str, typer.Option(help="Of the models: auto, cpu, cuda, cuda:1, mps.")] = "auto",
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace files that are there.")] = False,
    as_json: bool = typer.Option(False, "--json"),
) -> None:
    """Part a corpus into what is kept and what is rubbish, and say of each rejected pair why.

    Rules, in the order in which they are asked: `empty`, `too-long`, `encoding`, `script`, `untranslated`, `language`,
    `length`, `placeholders`, `numbers`, `duplicate`, `near-duplicate`, and `model` if there are models to ask. The
    first one that finds something decides. The rejected pairs have the columns source, target, rule, what it has seen,
    place.

    **Examples**

        translucid data clean memory.tmx --out clean.tsv

        translucid data clean 'crawled.{en,es}.gz' --out clean.tsv.gz --without near-duplicate numbers

        translucid data clean crawled.tsv --out clean.tsv --forward runs/en-es --backward runs/es-en
    """
    from translucid.data.cleaning.cleaner import MODEL, RULES, Cleaner, Report, column, row
    from translucid.data.cleaning.gain import LEAST, asked
    from translucid.data.cleaning.reading import Reading
    from translucid.ground.console import counting
    from translucid.ground.errors import UserError, nearest

    for name in without or []:
        if name not in RULES:
            raise UserError(f"there is no rule {name!r}", fix=nearest(name, RULES))
    if (forward is None) != (backward is None) or (min_gain is not None and forward is None):
        raise UserError("models are asked in both directions", fix="Give --forward RUN and --backward RUN.")
    rejected = rejected or out.with_name(out.name.removesuffix(".gz").removesuffix(".tsv") + ".rejected.tsv")
    if rejected == out:
        raise UserError("is the file of what is kept, too", file=rejected, fix="Choose another --rejected.")
    for file in (out, rejected):
        refuse_to_replace(file, overwrite, ENDINGS)
    log = Console(stderr=True)
    models = None
    if forward and backward and MODEL not in (without or ()):
        models = surprise_of(forward, device), surprise_of(backward, device)
    reading = Reading(pair_up(files), (source_language, target_language))
    with counting(log, "looking", None) as advance:
        profile = reading.profile(advance)
    languages = " to ".join(code or "an unknown language" for code in profile.languages)
    log.print(f"{reading.count:,} pairs, {languages}", soft_wrap=True)
    report = Report()
    cleaner = Cleaner(profile, without or ())
    stopped: KeyboardInterrupt | None = None
    with ExitStack() as stack:
        kept_stream, rejected_stream = (stack.enter_context(_written(file)) for file in (out, rejected))
        advance = stack.enter_context(counting(log, "cleaning", reading.count))
        judgements = reading.judged(cleaner)
        if models:
            judgements = asked(judgements, *models, LEAST if min_gain is None else min_gain)
        try:
            for judged in judgements:
                report.add(judged)
                if judged.rule:
                    rejected_stream.write(row(judged).encode())
                else:
                    kept_stream.write("\t".join(map(column, judged.pair)).encode() + b"\n")
                advance(1)
        except KeyboardInterrupt as interruption:
            stopped = interruption
    if as_json:
        print(json.dumps(report.to_json(), ensure_ascii=False, indent=2))
    else:
        _print(Console(), report)
    files_written = f"kept: {out}; rejected, with the reasons: {rejected}"
    log.print(files_written + (f"; of the first {report.pairs:,} pairs alone" if stopped else ""), soft_wrap=True)
    if stopped:
        raise stopped


def surprise_of(run: Path, device: str) -> Surprise:
    """Return what a run's model makes of pairs."""
    from translucid.api.translator import Translator
    from translucid.decoding.pair_scores import score_pairs

    translator = Translator.load(run, device, "torch")

    def surprise(pairs: Sequence[Pair]) -> list[float | None]:
        scores = score_pairs(translator.model, translator.pipeline, pairs, translator.device)
        return [None if isinstance(one, str) else -one.log_probability for one in scores]

    return surprise


@contextmanager
def _written(file: Path) -> Iterator[BinaryIO]:
    """Give a stream to a file, packed if it ends in .gz; see `output`."""
    from translucid.ground.atomic import output

    with output(file) as stream:
        if file.suffix == ".gz":
            with gzip.GzipFile(fileobj=stream, mode="wb", mtime=0) as packed:
                yield cast(BinaryIO, packed)
        else:
            yield stream


def _print(console: Console, report: Report) -> None:
    found = report.to_json()
    table = Table(box=None, pad_edge=False)
    table.add_column("rule")
    for name in ("pairs", "of all"):
        table.add_column(name, justify="right")
    table.add_column("for example", overflow="fold")
    for name, of_rule in found["rules"].items():
        for number, one in enumerate(of_rule["examples"]):
            count = of_rule["rejected"]
            first = (Text(name, "bold"), f"{count:,}", _share(count, report)) if not number else ("", "", "")
            pair = Text.assemble((f"{Path(one['file']).name}:{one['line']} ", "dim"), (one["what"], "yellow"))
            table.add_row(*first, pair)
            for side in ("source", "target"):
                if one[side].strip():
                    table.add_row("", "", "", Text(one[side][:SHOWN]))
    table.add_row(Text("kept", "bold"), f"{report.kept:,}", _share(report.kept, report), "")
    console.print(table)


def _share(count: int, report: Report) -> str:
    return f"{100 * count / max(report.pairs, 1):.2f} %"
