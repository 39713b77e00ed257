"""A job from beginning to end, or from where an earlier run of it was interrupted."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from functools import partial
from typing import BinaryIO

from translucid.ground.errors import UserError
from translucid.jobs.job import AnyJob, Executor, Say
from translucid.jobs.output import FileOutput, Output, PartRecord
from translucid.jobs.windows import Reader

SAID = 3
"""Lines that can't be read of which each is told of."""


def looks_wrong(record: PartRecord) -> str | None:
    """Say what looks wrong, if anything does."""
    return record.warned.summary(record.place.lines) if record.warned.lines else None


def run(
    job: AnyJob,
    text: BinaryIO,
    output: Output,
    way: AbstractContextManager[Executor],
    *,
    say: Say,
    advance: Callable[[int], None] = lambda lines: None,
    summary: Callable[[PartRecord], str | None] = looks_wrong,
) -> int:
    """Translate a text, in order.

    Args:
        job: what is to be done.
        text: bytes; lines end at a line feed. If it can't be rewound it must begin at its beginning.
        output: where it goes.
        way: how it is done; it is entered when the output is ours, before anything is written.
        say: told what the reader should know, a line at a time.
        advance: called with the number of lines just written.
        summary: gives what is said in the end.

    Returns:
        How many lines can't be read; the first of them are told of.

    Raises:
        UserError: something is wrong that the user can put right; what is good of the output is kept.
    """
    with ExitStack() as stack:
        stack.enter_context(output)
        translated = stack.enter_context(way)
        record = output.earlier(partial(job.identity, translated.device), say)
        reader, record = _place(job, text, output, record, say)
        output.begin(record)
        if record.place.lines:
            say(f"continued after line {record.place.lines:,} of an earlier, interrupted run")
        try:
            for window, done in translated(reader.windows()):
                for i, what in done.bad[: max(0, SAID - record.bad)]:
                    say(f"line {window.before.lines + i + 1}: {what}")
                record = PartRecord(
                    identity=record.identity,
                    place=window.after,
                    written=record.written + len(done.text),
                    bad=record.bad + len(done.bad),
                    warned=record.warned.and_these((window.before.lines + i + 1, what) for i, what in done.warnings),
                )
                output.write(done.text, record, keep=window.whole)
                advance(window.after.lines - window.before.lines)
        except KeyboardInterrupt:
            if isinstance(output, FileOutput) and output.kept:
                say(f"stopped after line {output.kept:,}: the same command goes on from there")
            raise
        output.finish()
        if told := summary(record):
            say(told)
    return record.bad


def _place(job: AnyJob, text: BinaryIO, output: Output, record: PartRecord, say: Say) -> tuple[Reader, PartRecord]:
    """Go to where the earlier run stopped; to the beginning if the text has changed since."""
    start = text.tell() if text.seekable() else None
    reader = Reader(text, job.window, wrapped=job.wrapped)
    if reader.skip_to(record.place):
        return reader, record
    assert isinstance(output, FileOutput)  # nothing else has an earlier run
    if start is None:
        what = f"standard input is not what the interrupted run read up to line {record.place.lines:,}"
        raise UserError(what, file=output.file, fix=f"Start over by deleting {output.part}.")
    output.discard("the input has changed", say)
    text.seek(start)
    return Reader(text, job.window, wrapped=job.wrapped), PartRecord(identity=record.identity)
