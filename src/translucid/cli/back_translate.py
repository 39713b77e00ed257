"""`translucid data back-translate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, NamedTuple

from typer import Option

from bitext.readers.file_kinds import refuse_as_texts
from bitext.readers.lines import DAMAGED, damaged, unpacked
from translucid.cli import option
from translucid.cli.arguments import input_bytes, refuse_to_replace
from translucid.cli.run_kinds import configuration_of
from translucid.ground.errors import UserError


class Files(NamedTuple):
    """Files."""

    text: Annotated[Path, Option(metavar="FILE", help="Text of the target language, one sentence per line.")]
    out: Annotated[Path, Option(metavar="OUT.tsv", help="The synthetic pairs.")]
    overwrite: option.Overwrite = False
    skip_bad: option.SkipBad = False
    split_sentences: Annotated[bool, Option(help="Translate each sentence of a line by itself.")] = True


class Execution(NamedTuple):
    """Execution."""

    device: option.Device = "auto"
    engine: option.Engine = "auto"
    workers: option.Workers = None


def back_translate(
    run: option.Run,
    *,
    files: Files,
    search: option.Search,
    sampling: option.Sampling,
    languages: option.Languages,
    execution: Execution,
) -> None:
    """Make sentence pairs from monolingual text of the target language: a model of the reverse direction translates it.

    OUT has `source TAB target` for each line. Lines that are empty, too long or unreadable are left out and counted,
    and so are translations that are empty, of a very different length, or repetitive. Repeat a command that was killed:
    it continues where it stopped.

    `translucid train --synthetic OUT` puts a tag before each of these sources, by which the model distinguishes them
    from real ones. The tag is no text: it is in no file, and no text to translate can contain it.

    **Examples**

        translucid train low-resource --train pairs.tsv --out runs/reverse --set data.reverse=true

        translucid data back-translate runs/reverse --text target.txt.gz --out synthetic.tsv

        translucid data back-translate runs/reverse --text target.txt --out drawn.tsv --sample --top-k 10 --workers 8

        translucid train low-resource --train pairs.tsv --synthetic synthetic.tsv --out runs/mine
    """
    from translucid.jobs.back_translating import BackTranslationJob, pair_summary
    from translucid.jobs.running import executor_of, run_with_progress

    text, out = files.text, files.out
    refuse_as_texts(str(text))
    refuse_to_replace(out, files.overwrite, (".tsv",))
    configuration = configuration_of(run, "text").between(*languages)
    options = configuration.decoding_with({**search._asdict(), **sampling.settings()})
    job = BackTranslationJob(
        run,
        options,
        device=execution.device,
        engine=execution.engine,
        split_sentences=files.split_sentences,
        configuration=configuration,
    )
    executor = executor_of(job, execution.workers)
    try:
        with input_bytes(text) as stream:
            lines = unpacked(stream, text.suffix.lower())
            bad = run_with_progress(job, lines, out, executor, "translating back", summary=pair_summary)
    except DAMAGED as error:
        raise damaged(text, error) from error
    if out.is_file() and not out.stat().st_size:
        raise UserError("gave no pair at all", file=text, fix="Is this the right file?")
    if bad and not files.skip_bad:
        fix = "That is fine with --skip-bad; else convert it, as with iconv -f latin1 -t utf-8."
        raise UserError(f"{bad} lines are not UTF-8, or hold NUL bytes, and were left out", file=text, fix=fix)
