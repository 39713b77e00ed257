"""The translation of a document, which a later run can continue: a job on segments.

Its partial output has a line of JSON for each translated segment.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from bitext.documents.document import Document, NearMatch, Target, smallest
from bitext.documents.tag_projection import readable
from bitext.documents.tagged_text import Mark, Side, TaggedText
from bitext.protected_spans import PlaceholderSyntax, base_of
from translucid.api.segment_translator import SegmentTranslator
from translucid.data.document_context import Source, lines_before
from translucid.ground.atomic import write_output
from translucid.jobs.job import Done, Executor, Say, TranslationJob, TranslationModels, as_lines
from translucid.jobs.output import FileOutput, PartRecord, StreamOutput
from translucid.jobs.running import run
from translucid.jobs.windows import Window
from translucid.runs.run_folder import ALIGNMENT, CONFIDENCE


class SegmentRecord(NamedTuple):
    """What a worker needs of a segment."""

    source: Source[TaggedText]
    syntax: PlaceholderSyntax
    """That of the source, which its representation lacks."""


def records_of(job: SegmentJob, document: Document, numbers: Sequence[int]) -> list[SegmentRecord]:
    """Return the records of the segments of these numbers, whose kept elements are marks as any."""
    before, records = texts_before(job, document), []
    for number in numbers:
        segment = document.segments[number]
        marks = tuple(Mark(mark.offset, mark.raw, mark.side, mark.pair) for mark in segment.source.marks)
        syntax = base_of(segment.source.syntax)
        limit = smallest(segment.longest, job.max_length)
        source = Source(TaggedText(segment.source.text, marks, syntax), max_length=limit)
        if before:
            source = source._replace(before=tuple(before[number]))
        records.append(SegmentRecord(source, syntax))
    return records


@dataclass(frozen=True)
class SegmentJob(TranslationJob):
    """The job of translating segments."""

    near_matches: bool = False
    """Whether fuzzy matches of the memory are added to the segments."""
    line_length: int | None = None
    """The most characters of a line of subtitles."""
    reading_speed: float | None = None
    """The characters that people read per second, for subtitles."""

    window: ClassVar[int] = 256
    """The number of segments that are translated together, of which an interrupted job keeps a multiple."""

    def files_beside_run(self) -> dict[str, Any]:
        """Return the fingerprints of the results that every segment needs, too."""
        return {
            **super().files_beside_run(),
            "the confidence": self.fitted_fingerprint(CONFIDENCE),
            "the alignment layer": self.fitted_fingerprint(ALIGNMENT),
        }

    def work(self, models: TranslationModels, window: Window) -> Done:
        """Translate segments to lines that `target_of` reads."""
        translator = SegmentTranslator(models.translator, self.options, models.recall, near_matches=self.near_matches)
        records: Sequence[SegmentRecord] = window.lines
        translated = translator.stream([record.source for record in records])
        lines, warnings = [], []
        for i, (record, target) in enumerate(zip(records, translated, strict=True)):
            # Some formats, such as XLIFF, limit the length of a translation.
            fitted = target.within(record.source.max_length)
            lines.append(line_of(fitted))
            for doubt in fitted.doubts:
                warnings.append((i, doubt))
        return Done(as_lines(lines), warnings)


def line_of(target: Target) -> str:
    """Return a translated segment as JSON."""
    marked = target.marked
    marks = [(mark.offset, mark.raw, mark.side.value, mark.pair) for mark in marked.marks]
    record = {"text": marked.text, "marks": marks, "syntax": base_of(marked.syntax).value}
    fields = {"origin": target.origin, "confidence": target.confidence, "doubts": target.doubts}
    return json.dumps({"marked": record, **fields, "matches": target.matches})


def target_of(line: bytes) -> Target:
    """Read a line that `line_of` wrote."""
    record = json.loads(line)
    marked, matches, doubts = record.pop("marked"), record.pop("matches"), record.pop("doubts")
    marks = [Mark(offset, raw, Side(side), pair) for offset, raw, side, pair in marked["marks"]]
    source = TaggedText(marked["text"], tuple(marks), PlaceholderSyntax(marked["syntax"]))
    matches = tuple(NearMatch(*match) for match in matches)
    return Target(source, **record, doubts=tuple(doubts), matches=matches)


def segments_to_translate(document: Document, *, retranslate: bool) -> list[int]:
    """Return the numbers of the segments to translate; those that have a translation only if `retranslate`."""
    return [i for i, segment in enumerate(document.segments) if retranslate or not segment.existing]


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
        UserError: there is a problem that the user can correct. The translated segments are kept.
    """
    segments = document.segments

    def place(line: int) -> str:
        return segments[numbers[line - 1]].place

    def warnings_of(record: PartRecord) -> str:
        return record.warned.summary(len(numbers), "segment", place)

    def filled(lines: Iterable[bytes]) -> bytes:
        return document.filled(dict(zip(numbers, map(target_of, lines), strict=True)))

    destination = FilledFile(output, filled) if output else FilledStream(filled)
    run(job, records_of(job, document, numbers), destination, executor, say=say, advance=advance, summary=warnings_of)


def texts_before(job: SegmentJob, document: Document) -> list[list[str]]:
    """Return the texts before each segment, also those of segments that have a translation; none without context."""
    configuration = job.first_step.configuration if job.first_step else job.configuration
    context_size = configuration.data.context if configuration else 0
    if not context_size:
        return []
    initial_context = [job.context] if job.context else []
    if job.separate_lines:
        return [initial_context] * len(document.segments)
    return lines_before([readable(segment.source).text for segment in document.segments], context_size, initial_context)


class FilledFile(FileOutput):
    """A document that appears when it is complete; until then its translated segments are beside it."""

    def __init__(self, file: Path, filled: Callable[[Iterable[bytes]], bytes]) -> None:
        """`filled`: returns the document with the translated segments."""
        super().__init__(file)
        self.filled = filled

    def publish(self) -> None:
        """Write the document from the translated segments."""
        write_output(self.file, self.filled(self.part_file.read_bytes().splitlines()))
        self._clear()


class FilledStream(StreamOutput):
    """A document that is written to standard output when it is complete."""

    def __init__(self, filled: Callable[[Iterable[bytes]], bytes]) -> None:
        super().__init__()
        self.filled = filled
        self.lines: list[bytes] = []

    def write(self, text: bytes, record: PartRecord, *, keep: bool) -> None:
        """Collect translated segments."""
        self.lines += text.splitlines()

    def finish(self) -> None:
        """Write the document."""
        sys.stdout.buffer.write(self.filled(self.lines))
        sys.stdout.buffer.flush()
