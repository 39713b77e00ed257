"""Running a job, from the beginning or from where an earlier run was interrupted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from functools import partial
from pathlib import Path
from typing import BinaryIO

from translucid.ground.console import Console, progress_bar
from translucid.ground.errors import UserError
from translucid.jobs.job import Executor, LineJob, Say, in_this_process
from translucid.jobs.output import FileOutput, Output, PartRecord, output_to
from translucid.jobs.windows import Reader, RecordReader

MAX_REPORTED = 3
"""The number of unreadable lines that are reported one by one."""


def warnings_of(record: PartRecord) -> str:
    """Return a summary of the warnings; an empty text if there are none."""
    return record.warned.summary(record.place.lines)


def executor_of(job: LineJob, workers: int | None) -> AbstractContextManager[Executor]:
    """Return an executor with this many worker processes; with one or None, this process does the work."""
    if workers and workers > 1:
        from translucid.jobs.processes import processes

        return processes(job, workers)
    return in_this_process(job)


def run_with_progress(
    job: LineJob,
    text: BinaryIO,
    output: Path | None,
    executor: AbstractContextManager[Executor],
    label: str,
    *,
    total: int | None = None,
    hidden: bool = False,
    summary: Callable[[PartRecord], str] = warnings_of,
) -> int:
    """Run a job as `run` does, with progress and messages on standard error, and close its text.

    `label` and `total`: the label of the progress bar, and the number of lines, if it is known.
    """
    console = Console(stderr=True)

    def say(line: str) -> None:
        console.print(line, soft_wrap=True)

    with text as lines, progress_bar(console, label, total, hidden=hidden) as advance:
        return run(job, lines, output_to(output), executor, say=say, advance=advance, summary=summary)


def run(
    job: LineJob,
    text: BinaryIO | Sequence[object],
    output: Output,
    executor: AbstractContextManager[Executor],
    *,
    say: Say,
    advance: Callable[[int], None] = lambda lines: None,
    summary: Callable[[PartRecord], str] = warnings_of,
) -> int:
    """Run a job on the lines of a text or on records, in order.

    Args:
        job: the job.
        text: lines of bytes, or records. A stream that can't be rewound must be at its beginning.
        output: the file or stream to write.
        executor: the workers. They start after the output is locked, and before anything is written.
        say: called with each message for the user.
        advance: called with the number of lines just written.
        summary: returns the last message; an empty text is not shown.

    Returns:
        The number of unreadable lines; the first of them are reported.

    Raises:
        UserError: there is a problem that the user can correct. The valid part of the output is kept.
    """
    with ExitStack() as stack:
        stack.enter_context(output)
        execute = stack.enter_context(executor)
        record = output.earlier_record(partial(job.identity, execute.device), say)
        reader, record = _resume(job, text, output, record, say)
        output.begin(record)
        # A message, as the progress bar counts only the new lines.
        if record.place.lines:
            say(f"continued after line {record.place.lines:,} of an earlier, interrupted run")
        try:
            for window, done in execute(reader.windows()):
                for i, what in done.bad[: max(0, MAX_REPORTED - record.bad)]:
                    say(f"line {window.before.lines + i + 1}: {what}")
                record = PartRecord(
                    identity=record.identity,
                    place=window.after,
                    written=record.written + len(done.text),
                    bad=record.bad + len(done.bad),
                    warned=record.warned.with_warnings(
                        (window.before.lines + i + 1, what) for i, what in done.warnings
                    ),
                )
                output.write(done.text, record, keep=window.complete)
                advance(window.after.lines - window.before.lines)
        except KeyboardInterrupt:
            if isinstance(output, FileOutput) and output.valid_lines:
                say(f"stopped after line {output.valid_lines:,}: the same command continues from there")
            raise
        output.finish()
        if message := summary(record):
            say(message)
    return record.bad


def _resume(
    job: LineJob, text: BinaryIO | Sequence[object], output: Output, record: PartRecord, say: Say
) -> tuple[Reader | RecordReader, PartRecord]:
    """Skip what an earlier run has processed; start at the beginning if the text has changed since."""
    reader: Reader | RecordReader
    if isinstance(text, Sequence):
        reader = RecordReader(text, job.window)
    else:
        reader = Reader(text, job.window, wrapped=job.wrapped)
    if reader.skip_to(record.place):
        return reader, record
    assert isinstance(output, FileOutput)  # nothing else has an earlier run
    restarted = reader.restarted()
    if restarted is None:
        what = f"standard input is not what the interrupted run read up to line {record.place.lines:,}"
        raise UserError(what, file=output.file, fix=f"Start over by deleting {output.part_file}.")
    output.discard("the input has changed", say)
    return restarted, PartRecord(identity=record.identity)
