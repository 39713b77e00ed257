"""The translation of a document in small parts, between which short requests are translated, and its result."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from bitext.cancellation import Cancelled, between_steps
from bitext.documents.document import Document, Segment
from bitext.documents.kinds import read_document
from bitext.documents.limits import limit_segments, limit_work
from translucid.ground.errors import UserError
from translucid.jobs.documents import segments_to_translate
from translucid.serving.catalogue import Catalogue
from translucid.serving.detection import detect_sources
from translucid.serving.document_context import segments_before
from translucid.serving.documents.document_job import Job
from translucid.serving.language_pairs import AnyServed
from translucid.serving.queue.batcher import in_chunks
from translucid.serving.queue.request_context import RequestContext
from translucid.serving.texts import translated, with_terminology

POLL_SECONDS = 0.01
"""The interval in seconds at which a document that pauses checks whether short requests still wait."""
PAUSE_FACTOR = 3.0
"""While short requests wait, a document pauses for up to this multiple of the time that its last part took."""
LONGEST = 200_000
"""The maximum number of characters in a segment; no segment of a real document has more."""
MOST_MARKS = 20_000
"""The maximum number of tags and placeholders of a segment."""


def translate_document(context: RequestContext, job: Job) -> None:
    """Translate a document and write the result; called in the worker pool.

    Raises:
        Cancelled: the job was cancelled, or it took too long.
        UserError: the document can't be translated.
    """
    if job.state == "cancelled":
        raise Cancelled
    job.state, job.started = "translating", time.monotonic()
    with limit_segments(context.options.document_segments):
        document = read_document(job.name, job.files.content, (job.source, job.target))
    segments = document.segments
    _refuse_large(segments, job.name)
    between_steps()
    job.files.store_segments(segments)  # first: requests read the database as soon as the number of segments is set
    job.remarks = tuple(segments.remarks)
    job.segments, job.characters = len(segments), sum(map(_length, segments))
    if job.source is None:
        job.source = _detected(document, context.catalogue.candidates(job.target))
    if not needs_no_translation(context.catalogue, job.source, job.target):
        _translate(context, job, segments, segments_to_translate(document, retranslate=False))
    write_result(job, document)


def write_result(job: Job, document: Document | None = None) -> None:
    """Write the result with the present translations and corrections.

    Several requests may do so at once, and each may be cancelled: a new result replaces the old one only if it has more
    corrections.
    """
    corrections = job.corrections  # before the translations are read: later ones count as missing
    document = document or read_document(job.name, job.files.content, (job.source, job.target))
    between_steps()
    with limit_work(job.name, job.files.document_size):
        result = document.filled(job.files.targets())
    between_steps()
    with job.writing:
        if corrections > job.written_corrections:
            job.files.store_result(result)
            job.written_corrections = corrections


def needs_no_translation(catalogue: Catalogue, source: str, target: str) -> bool:
    """Return whether a document stays as it is, because source and target are equal, as in LibreTranslate."""
    return source == target and source in catalogue.languages


def served_with_terms(catalogue: Catalogue, job: Job) -> AnyServed:
    """Return the translator of a document whose language is known, with its terms."""
    assert job.source is not None
    return with_terminology(catalogue.find(job.source, job.target, job.model), job.terms)


def _refuse_large(segments: Sequence[Segment], name: str) -> None:
    """Raise `UserError` if a segment is too long, or has too many tags."""
    for segment in segments:
        if len(segment.source.text) > LONGEST:
            raise UserError(f"{segment.place} has more than {LONGEST} characters", file=name, fix="Split it.")
        if len(segment.source.marks) > MOST_MARKS:
            raise UserError(f"{segment.place} has more than {MOST_MARKS} tags", file=name, fix="Split it.")


def _translate(context: RequestContext, job: Job, segments: Sequence[Segment], numbers: list[int]) -> None:
    """Translate the segments of these numbers in small parts, and store each part."""
    served = served_with_terms(context.catalogue, job)
    lengths = list(map(_length, segments))
    job.done = len(segments) - len(numbers)
    job.characters_done = job.characters - sum(lengths[i] for i in numbers)
    before = segments_before(served, segments)
    seconds = 0.0
    for chunk in in_chunks(numbers, lengths.__getitem__):
        _pause_for_short_requests(served, PAUSE_FACTOR * seconds)
        started = time.monotonic()
        sources = [segments[i].source for i in chunk]
        context.usage.count(f"{served.source}-{served.target}", [source.text for source in sources])
        contexts = before and [before[i] for i in chunk]
        results = zip(chunk, translated(context, served, sources, before=contexts), strict=True)
        job.files.store_translations([(i, target.within(segments[i].longest)) for i, target in results])
        job.done += len(chunk)
        job.characters_done += sum(lengths[i] for i in chunk)
        seconds = time.monotonic() - started


def _length(segment: Segment) -> int:
    """Return the number of characters of a segment."""
    return len(segment.source.text)


def _detected(document: Document, languages: Sequence[str]) -> str:
    """Detect the language of a document, one of `languages`, by its first texts."""
    ((language, _),) = detect_sources([" ".join(_first_texts(document))], languages)
    return language


def _pause_for_short_requests(served: AnyServed, seconds: float) -> None:
    """Pause while short requests wait, for at most this many seconds."""
    end = time.monotonic() + seconds
    between_steps()
    while served.batcher.sentences and time.monotonic() < end:
        time.sleep(POLL_SECONDS)
        between_steps()


def _first_texts(document: Document, characters: int = 2000) -> Iterator[str]:
    """Yield the texts of a document up to this many characters."""
    for segment in document.segments:
        if characters <= 0:
            return
        yield segment.source.text[:characters]
        characters -= len(segment.source.text)
