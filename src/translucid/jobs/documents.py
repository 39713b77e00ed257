"""A document from beginning to end, or from where an earlier run of the job was interrupted."""

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
    """Return the numbers of the segments that are to be translated; those that have a translation only if `again`."""
    return [i for i, segment in enumerate(document.segments) if again or not segment.existing]


def translate_document(
    job: SegmentJob,
    document: Document,
    numbers: Sequence[int],
    output: Path | None,
    way: AbstractContextManager[Executor],
    *,
    say: Say,
    advance: Callable[[int], None] = lambda segments: None,
) -> None:
    """Translate segments of a document and write it.

    Args:
        job: how they are translated.
        document: all of it.
        numbers: of the segments.
        output: a file, which appears when it is whole; standard output if not given.
        way: how the job is done; see `run`.
        say: told what the reader should know, a line at a time.
        advance: called with the number of segments just translated.

    Raises:
        UserError: something is wrong that the user can put right; what was translated is kept.
    """
    segments = document.segments

    def looks_wrong(record: PartRecord) -> str | None:
        warned = record.warned
        return (
            warned.summary(len(numbers), "segment", lambda n: segments[numbers[n - 1]].place) if warned.lines else None
        )

    lines = BytesIO(marked_lines(segments[i] for i in numbers))
    to = FilledFile(output, document, numbers) if output else FilledStream(document, numbers)
    run(job, lines, to, way, say=say, advance=advance, summary=looks_wrong)


class FilledFile(FileOutput):
    """A document that appears when it is whole; until then its translated segments stand beside it."""

    def __init__(self, file: Path, document: Document, numbers: Sequence[int]) -> None:
        """`numbers`: of the segments that come."""
        super().__init__(file)
        self.document, self.numbers = document, numbers

    def finish(self) -> None:
        """See `Output`."""
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
    """A document that goes to standard output when it is whole."""

    def __init__(self, document: Document, numbers: Sequence[int]) -> None:
        """`numbers`: of the segments that come."""
        super().__init__()
        self.document, self.numbers = document, numbers
        self.lines: list[bytes] = []

    def write(self, text: bytes, record: PartRecord, *, keep: bool) -> None:
        """See `Output`."""
        self.lines += text.splitlines()

    def finish(self) -> None:
        """See `Output`."""
        sys.stdout.buffer.write(_filled(self.document, self.numbers, self.lines))
        sys.stdout.buffer.flush()


def _filled(document: Document, numbers: Sequence[int], lines: Sequence[bytes]) -> bytes:
    return document.filled(dict(zip(numbers, map(target_of, lines), strict=True)))
