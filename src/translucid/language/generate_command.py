"""`translucid generate`."""

from __future__ import annotations

from typing import Annotated, NamedTuple

from typer import Argument, Option

from translucid.cli import option
from translucid.cli.arguments import lines_of, refuse_other_texts, refuse_to_replace, refuse_unreadable
from translucid.cli.run_kinds import configuration_of
from translucid.ground.errors import UserError


class Input(NamedTuple):
    """Input and execution."""

    input_file: option.Input = None
    device: option.Device = "auto"
    workers: option.Workers = None


class Output(NamedTuple):
    """Output."""

    output: option.Output = None
    overwrite: option.Overwrite = False
    output_format: Annotated[option.Format, Option("--format", help="jsonl has all pieces.")] = "text"
    top_candidates: Annotated[int, Option(help="With jsonl: add the N most probable pieces of each step.", min=0)] = 0
    max_tokens: Annotated[int | None, Option(help="Maximum pieces after the prompt; default: the run's.", min=1)] = None


class Search(NamedTuple):
    """Search."""

    beam: option.Beam = None
    nbest: option.Nbest = None
    length_penalty: option.LengthPenalty = None
    no_repeat_ngram: option.NoRepeatNgram = None


class Sampling(NamedTuple):
    """Sampling."""

    sample: Annotated[bool | None, Option("--sample/--no-sample", help="Sample, or search; default: the run's.")] = None
    temperature: option.Temperature = None
    top_k: option.TopK = None
    top_p: option.TopP = None
    seed: option.Seed = None


def generate(
    run: option.Run,
    texts: Annotated[list[str] | None, Argument(metavar="[TEXT ...]", help="The prompts.")] = None,
    *,
    source: Input,
    output: Output,
    search: Search,
    sampling: Sampling,
) -> None:
    """Continue texts with a language model: one output line for each input line, in order.

    An empty prompt yields a text from its beginning. A model that was trained with `model.backwards` writes the text
    before the prompt. Repeat a command with --output that was killed: it continues where it stopped.

    **Examples**

        translucid generate runs/english "The old house"

        translucid generate runs/english "The old house" --temperature 0.7 --top-p 0.9 --nbest 5 --seed 7

        translucid generate runs/english "The old house" --beam 5 --max-tokens 20 --format jsonl --top-candidates 5

        translucid generate runs/english --input beginnings.txt --output texts.txt
    """
    from translucid.jobs.running import executor_of, run_with_progress
    from translucid.language.generation_job import GenerateJob
    from translucid.language.generator import generation_options

    refuse_other_texts(texts, source.input_file)
    if output.top_candidates and output.output_format != "jsonl":
        raise UserError("--top-candidates has no place in plain text", fix="Add --format jsonl.")
    refuse_to_replace(output.output, output.overwrite)
    options = generation_options(
        configuration_of(run, "running text").decoding, {**search._asdict(), **sampling._asdict()}
    )
    job = GenerateJob(
        run,
        options,
        device=source.device,
        form=output.output_format,
        columns=search.nbest or 1,
        max_tokens=output.max_tokens,
        top_candidates=output.top_candidates,
    )
    lines, executor = lines_of(texts, source.input_file), executor_of(job, source.workers)
    bad = run_with_progress(job, lines, output.output, executor, "writing", hidden=bool(texts))
    refuse_unreadable(bad, "; their unreadable bytes were read as �", source.input_file)
