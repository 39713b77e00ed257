"""`translucid generate`."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from translucid.cli.arguments import Format, RunArgument, input_bytes, refuse_to_replace, text_bytes
from translucid.ground.console import Console


def generate(
    run: RunArgument,
    texts: Annotated[list[str] | None, typer.Argument(metavar="[TEXT ...]", help="What to go on from.")] = None,
    input_file: Annotated[Path | None, typer.Option("--input", help="One prompt a line; - is standard input.")] = None,
    output: Annotated[Path | None, typer.Option(help="Write here instead of to standard output.")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace --output if it is there.")] = False,
    max_tokens: Annotated[
        int | None, typer.Option(help="Pieces after the prompt, at most; as the run has it if not given.", min=1)
    ] = None,
    sample: Annotated[
        bool | None,
        typer.Option("--sample/--no-sample", help="Draw at random, or search for a likely text; as the run has it."),
    ] = None,
    temperature: Annotated[float | None, typer.Option(help="Of sampling; below 1 is more careful.")] = None,
    top_k: Annotated[int | None, typer.Option(help="Sample from the K likeliest pieces.")] = None,
    top_p: Annotated[float | None, typer.Option(help="Sample from the likeliest pieces of this probability.")] = None,
    seed: Annotated[int | None, typer.Option(help="Of sampling.")] = None,
    beam: Annotated[int | None, typer.Option(help="Search with this beam width; 1 is greedy.")] = None,
    nbest: Annotated[int | None, typer.Option(help="Texts for each prompt, tab-separated in text format.")] = None,
    length_penalty: Annotated[float | None, typer.Option(help="Of a beam; higher favours longer texts.")] = None,
    no_repeat_ngram: Annotated[int | None, typer.Option(help="No run of this many pieces comes twice.")] = None,
    top_candidates: Annotated[
        int, typer.Option(help="In jsonl, add the N pieces that were likeliest at each step.", min=0)
    ] = 0,
    output_format: Annotated[
        Format, typer.Option("--format", help="text, or jsonl with each piece written and its log-probability.")
    ] = Format.text,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1, mps.")] = "auto",
    workers: Annotated[int | None, typer.Option(help="Processes that share the work; 1 if not given.", min=1)] = None,
) -> None:
    """Continue texts with a language model: one output line for each input line, in order.

    An empty prompt gives a text from its beginning. A model that was trained with `model.backwards` writes what comes
    before. With --output, a job that was killed goes on where it stopped when the same command is given again.

    **Examples**

        translucid generate runs/english "The old house"

        translucid generate runs/english "The old house" --temperature 0.7 --top-p 0.9 --nbest 5 --seed 7

        translucid generate runs/english "The old house" --beam 5 --max-tokens 20 --format jsonl --top-candidates 5

        translucid generate runs/english --input beginnings.txt --output texts.txt
    """
    from translucid.api.generator import writing
    from translucid.data.readers.file_kinds import refuse_documents, refuse_file_names
    from translucid.ground.console import counting
    from translucid.ground.errors import UserError
    from translucid.jobs.generating import GenerateJob
    from translucid.jobs.job import alone
    from translucid.jobs.output import output_to
    from translucid.jobs.processes import processes
    from translucid.jobs.running import run as run_job
    from translucid.runs.run_folder import RunFolder

    if texts and input_file:
        raise UserError("both a text and --input were given", fix="Give one of them.")
    if top_candidates and output_format is not Format.jsonl:
        raise UserError("--top-candidates has no place in plain text", fix="Add --format jsonl.")
    refuse_documents(input_file)
    refuse_file_names(texts or ())
    refuse_to_replace(output, overwrite)
    configuration = RunFolder(run).configuration()
    configuration.refuse_other_reader("running text", run)
    given = {
        "beam": beam,
        "nbest": nbest,
        "length_penalty": length_penalty,
        "no_repeat_ngram": no_repeat_ngram,
        "sample": sample,
        "temperature": temperature,
        "top_k": top_k,
        "top_p": top_p,
        "seed": seed,
    }
    options = writing(configuration.decoding, given)
    job = GenerateJob(run, options, max_tokens, device, output_format.value, nbest or 1, top_candidates)
    console = Console(stderr=True)
    with ExitStack() as stack:
        text = stack.enter_context(text_bytes(texts) if texts else input_bytes(input_file))
        advance = stack.enter_context(counting(console, "writing", None, hidden=bool(texts)))
        bad = run_job(
            job,
            text,
            output_to(output),
            processes(job, workers) if workers and workers > 1 else alone(job),
            say=lambda line: console.print(line, soft_wrap=True),
            advance=advance,
        )
    if bad:
        raise UserError(
            f"{bad} lines are not UTF-8; their unreadable bytes were read as �",
            file=input_file or "standard input",
            fix="Convert the file first, as with iconv -f latin1 -t utf-8.",
        )
