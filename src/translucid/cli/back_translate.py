"""`translucid data back-translate`."""

from __future__ import annotations

import gzip
import zlib
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, BinaryIO, cast

import typer

from translucid.cli.arguments import EngineOption, SourceOption, TargetOption, input_bytes, refuse_to_replace, resolved
from translucid.ground.console import Console


def back_translate(
    run: Annotated[
        Path,
        typer.Argument(
            metavar="RUN", callback=resolved, help="A translator from the language of the text, trained the other way."
        ),
    ],
    text: Annotated[
        Path,
        typer.Option("--text", metavar="FILE", help="Text of the target language, one sentence a line, gz or not."),
    ],
    out: Annotated[Path, typer.Option(metavar="OUT.tsv", help="The synthetic pairs.")],
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace --out if it is there.")] = False,
    source_language: SourceOption = None,
    target_language: TargetOption = None,
    beam: Annotated[int | None, typer.Option(help="Beam width; 1 is greedy.")] = None,
    length_penalty: Annotated[float | None, typer.Option(help="Higher favours longer translations.")] = None,
    no_repeat_ngram: Annotated[int | None, typer.Option(help="No run of this many pieces comes twice.")] = None,
    max_length_ratio: Annotated[float | None, typer.Option(help="Output tokens for each input token, at most.")] = None,
    sample: Annotated[bool, typer.Option("--sample", help="Draw at random instead of searching.")] = False,
    temperature: Annotated[float | None, typer.Option(help="Of sampling; below 1 is more careful.")] = None,
    top_k: Annotated[int | None, typer.Option(help="Sample from the K likeliest pieces.")] = None,
    top_p: Annotated[float | None, typer.Option(help="Sample from the likeliest pieces of this probability.")] = None,
    seed: Annotated[int | None, typer.Option(help="Of sampling.")] = None,
    split_sentences: Annotated[bool, typer.Option(help="Translate each sentence of a line by itself.")] = True,
    skip_bad: Annotated[bool, typer.Option("--skip-bad", help="Lines that can't be read are no error.")] = False,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1, mps.")] = "auto",
    engine: EngineOption = "auto",
    workers: Annotated[int | None, typer.Option(help="Processes that share the work; 1 if not given.", min=1)] = None,
) -> None:
    """Make sentence pairs of text of the target language alone: a model of the other direction writes their sources.

    OUT has `source TAB target` for each line; lines that are empty, too long or unreadable are left out and counted,
    and so are translations that are empty, of another length by far, or say the same time and again. A job that was
    killed goes on when the same command is given again.

    `translucid train --synthetic OUT` puts a tag before each of these sources, by which the model tells them from real
    ones. The tag is no text: it stands in no file, and nothing that is translated later can hold it.

    **Examples**

        translucid train low-resource --train pairs.tsv --out runs/reverse --set data.reverse=true

        translucid data back-translate runs/reverse --text target.txt.gz --out synthetic.tsv

        translucid data back-translate runs/reverse --text target.txt --out drawn.tsv --sample --top-k 10 --workers 8

        translucid train low-resource --train pairs.tsv --synthetic synthetic.tsv --out runs/mine
    """
    from translucid.data.readers.file_kinds import refuse_as_texts
    from translucid.ground.console import counting
    from translucid.ground.errors import UserError
    from translucid.jobs.back_translating import BackTranslationJob, pairs_made
    from translucid.jobs.job import alone
    from translucid.jobs.output import output_to
    from translucid.jobs.processes import processes
    from translucid.jobs.running import run as run_job
    from translucid.runs.run_folder import RunFolder

    refuse_as_texts(str(text))
    refuse_to_replace(out, overwrite, (".tsv",))
    configuration = RunFolder(run).configuration().between(source_language, target_language)
    configuration.refuse_other_reader("text", run)
    given = {
        "beam": beam,
        "length_penalty": length_penalty,
        "no_repeat_ngram": no_repeat_ngram,
        "max_length_ratio": max_length_ratio,
        "sample": sample or None,
        "temperature": temperature,
        "top_k": top_k,
        "top_p": top_p,
        "seed": seed,
    }
    options = configuration.searching(given)
    job = BackTranslationJob(run, options, device, engine, split_sentences=split_sentences, configuration=configuration)
    console = Console(stderr=True)
    try:
        with ExitStack() as stack:
            packed = stack.enter_context(input_bytes(text))
            gz = text.suffix == ".gz"
            lines = cast(BinaryIO, stack.enter_context(gzip.open(packed))) if gz else packed
            advance = stack.enter_context(counting(console, "translating back", None))
            bad = run_job(
                job,
                lines,
                output_to(out),
                processes(job, workers) if workers and workers > 1 else alone(job),
                say=lambda line: console.print(line, soft_wrap=True),
                advance=advance,
                summary=pairs_made,
            )
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise UserError(f"is damaged or not gzip ({error})", file=text, fix="Fetch it again.") from error
    if out.is_file() and not out.stat().st_size:
        raise UserError("gave no pair at all", file=text, fix="Is this the right file?")
    if bad and not skip_bad:
        fix = "That is fine with --skip-bad; else convert it, as with iconv -f latin1 -t utf-8."
        raise UserError(f"{bad} lines are not UTF-8, or hold NUL bytes, and were left out", file=text, fix=fix)
