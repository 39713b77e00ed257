"""The translation of a document, which a later run can continue."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from io import BytesIO
from pathlib import Path

from translucid.documents.document import Document
from translucid.ground.atomic import write_output
from translucid.jobs.job import Executor, Say
from translucid.jobs.output import FileOutput, PartRecord, StreamOutput
from translucid.jobs.running import run
from translucid.jobs.segments import SegmentJob, marked_lines, target_of


def asked_for(document: Document, *, again: bool) -> list[int]:
    """Return the numbers of the segments to translate; those that have a translation only if `again`."""
    return [i for i, segment in enumerate(document.segments) if again or not segment.existing]


def translate_document(
    job: SegmentJob,
    document: Document,
    numbers: Sequence[int],
    output: Path | None,
    executor: AbstractContextManager[Executor],
    *,
    say: Say,
    advance: Callable[[int], None] = lambda segments: None,
) -> None:
    """Translate segments of a document and write it.

    Args:
        job: the job.
        document: the document.
        numbers: the numbers of the segments to translate.
        output: a file, which appears when it is complete; standard output if not given.
        executor: the workers.
        say: called with each message for the user.
        advance: called with the number of segments just translated.

    Raises:
        UserError: the user can correct what is wrong. What was translated is kept.
    """
    segments = document.segments

    def place(line: int) -> str:
        return segments[numbers[line - 1]].place

    def warnings_of(record: PartRecord) -> str | None:
        return record.warned.summary(len(numbers), "segment", place) if record.warned.lines else None

    lines = BytesIO(marked_lines(segments[i] for i in numbers))
    to = FilledFile(output, document, numbers) if output else FilledStream(document, numbers)
    run(job, lines, to, executor, say=say, advance=advance, summary=warnings_of)


class FilledFile(FileOutput):
    """A document that appears when it is complete; until then its translated segments are beside it."""

    def __init__(self, file: Path, document: Document, numbers: Sequence[int]) -> None:
        """`numbers`: the numbers of the segments that will be written."""
        super().__init__(file)
        self.document, self.numbers = document, numbers

    def finish(self) -> None:
        """Write the document from the translated segments."""
        assert self.stream
        try:
            os.fsync(self.stream.fileno())
            self.stream.close()
            self.stream = None
            lines = self.part.read_bytes().splitlines()
        except OSError as error:
            raise self._failed(error) from error
        write_output(self.file, _filled(self.document, self.numbers, lines))
        self._clear()


class FilledStream(StreamOutput):
    """A document that is written to standard output when it is complete."""

    def __init__(self, document: Document, numbers: Sequence[int]) -> None:
        """`numbers`: the numbers of the segments that will be written."""
        super().__init__()
        self.document, self.numbers = document, numbers
        self.lines: list[bytes] = []

    def write(self, text: bytes, record: PartRecord, *, keep: bool) -> None:
        """Collect translated segments."""
        self.lines += text.splitlines()

    def finish(self) -> None:
        """Write the document."""
        sys.stdout.buffer.write(_filled(self.document, self.numbers, self.lines))
        sys.stdout.buffer.flush()


def _filled(document: Document, numbers: Sequence[int], lines: Sequence[bytes]) -> bytes:
    return document.filled(dict(zip(numbers, map(target_of, lines), strict=True)))
