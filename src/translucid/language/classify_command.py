"""`translucid classify`."""

from __future__ import annotations

from typing import Annotated

from typer import Argument, Option

from translucid.cli import option
from translucid.cli.arguments import lines_of, refuse_other_texts, refuse_to_replace, refuse_unreadable
from translucid.cli.run_kinds import configuration_of


def classify(
    run: option.Run,
    texts: Annotated[list[str] | None, Argument(metavar="[TEXT ...]", help="The texts to classify.")] = None,
    ensemble: option.Ensemble = None,
    input_file: option.Input = None,
    output: option.Output = None,
    overwrite: option.Overwrite = False,
    output_format: Annotated[option.Format, Option("--format", help="jsonl has all labels.")] = "text",
    device: option.Device = "auto",
    workers: option.Workers = None,
) -> None:
    """Classify texts: one output line for each text, in order.

    A blank line yields a line without a label. Repeat a command with --output that was killed: it continues where it
    stopped and writes the same file. `translucid explain` shows which words decide.

    **Examples**

        translucid classify runs/mood "I laughed, I cried, I want my money back."

        translucid classify runs/mood --input reviews.txt --output moods.tsv

        translucid classify runs/mood --ensemble runs/mood-backwards --format jsonl < reviews.txt
    """
    from translucid.jobs.running import executor_of, run_with_progress
    from translucid.language.classification_job import ClassifyJob

    refuse_other_texts(texts, input_file)
    refuse_to_replace(output, overwrite)
    ensemble_runs = tuple(ensemble or ())
    for classifier_run in (run, *ensemble_runs):
        configuration_of(classifier_run, "texts with labels")
    job = ClassifyJob(run, ensemble_runs, device=device, form=output_format)
    lines, executor = lines_of(texts, input_file), executor_of(job, workers)
    bad = run_with_progress(job, lines, output, executor, "classifying", hidden=bool(texts))
    refuse_unreadable(bad, " and have no label", input_file)
