"""Documents that are translated in the background: a limited number of jobs with progress and cancellation.

A document is translated in small parts, between which short requests are translated. `job_files.py` has its files.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import shutil
import stat
import tempfile
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import IO, Literal
from urllib.parse import quote

from fastapi import Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import StreamingResponse
from filelock import FileLock, Timeout

from bitext.cancellation import Cancelled, between_steps
from bitext.documents.document import (
    Document,
    Kind,
    Segment,
    Target,
    kind_of,
    limit_segments,
    limit_work,
    read_document,
    unknown_kind,
)
from translucid.ground.errors import UserError
from translucid.ground.lock import LOCK
from translucid.ground.special import Formality
from translucid.jobs.documents import segments_to_translate
from translucid.serving.catalog import AnyServed, Catalog, Served
from translucid.serving.edge.failures import ApiError, ClientLeft, GoneError, status_of
from translucid.serving.job_files import JobFiles, Row
from translucid.serving.memory import WrittenEntry
from translucid.serving.queue import Task, in_chunks
from translucid.serving.requests import RequestContext, RequestTask, until_disconnected
from translucid.serving.texts import detect_sources, segment_sources, translated, with_terminology

State = Literal["waiting", "translating", "done", "failed", "cancelled"]


@dataclass(eq=False)
class Job:
    """The translation of a document."""

    client: str
    name: str
    """The file name that the client gave, without folders; it is never used as a path."""
    kind: Kind
    source: str | None
    """The source language; None until it is detected."""
    target: str
    model: str | None
    files: JobFiles
    terms: Mapping[str, str]
    formality: Formality | None = None
    id: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    """A secret: a client that knows it has full access to the document."""
    key: str = field(default_factory=lambda: secrets.token_hex(32))
    """A second secret in DeepL's API."""
    state: State = "waiting"
    error: str = ""
    status: int = 503
    """The HTTP status of requests for a result that does not exist."""
    remarks: tuple[str, ...] = ()
    """What the user should know about the choice of the texts."""
    segments: int = 0
    """The number of segments; 0 until the document is parsed."""
    done: int = 0
    """The number of segments that have a translation or need none."""
    characters: int = 0
    """The characters of all segments."""
    characters_done: int = 0
    started: float = 0.0
    last_request: float = field(default_factory=time.monotonic)
    """The time of the last request for it."""
    corrections: int = 0
    """The number of corrections by a person."""
    written_corrections: int = -1
    """The number of these corrections that the result contains at least; -1 while there is no result."""
    writing: threading.Lock = field(default_factory=threading.Lock)
    """Held while the result is replaced."""
    task: Task | None = None
    ended: threading.Event = field(default_factory=threading.Event)

    @property
    def seconds_left(self) -> float | None:
        """The estimated time until the translation is done; None if there is no estimate."""
        if self.state != "translating" or not self.characters_done:
            return None
        spent = time.monotonic() - self.started
        return spent / self.characters_done * (self.characters - self.characters_done)

    @property
    def file_name(self) -> str:
        """The file name of the result: `notes_es.txt` for `notes.txt`."""
        stem, dot, ending = self.name.rpartition(".")
        return f"{stem}_{self.target}{dot}{ending}"


def disposition(name: str) -> str:
    """Return the Content-Disposition header with the name under which a file is to be saved (RFC 6266)."""
    # Percent encoding also prevents that a name ends the header.
    quoted = quote(name.encode("utf-8", "replace"), safe=" ")
    if "%" in quoted:
        return f"attachment; filename*=UTF-8''{quoted.replace(' ', '%20')}"
    return f'attachment; filename="{quoted}"'  # some clients, such as curl, do not know `filename*`


POLL_SECONDS = 0.05
"""The interval in seconds at which a request that waits for a job checks whether it has ended."""
MAX_RUNNING = 2
"""The maximum number of documents that are translated at once; others wait."""
SHARE = 8
"""The maximum number of documents of one client that wait or are being translated."""
MAX_STORED = 200
"""The maximum number of documents, including finished ones; the least recently requested are deleted first."""
_FOLDERS = "translucid-documents-"
"""The beginning of the names of temporary folders."""
_DOCUMENTS = "documents"
"""The folder of all documents in a temporary folder."""
MAX_STORED_BYTES = 2 << 30
"""The maximum size in bytes of the files of all finished documents, which are deleted in the same order."""


class DocumentJobs:
    """The documents of a server; their files are in a temporary folder that only its user can read."""

    def __init__(self, context: RequestContext) -> None:
        self.context, self.options = context, context.options
        self.lock = threading.RLock()  # reentrant: a future that has ended already calls `_end` within `tidy_up`
        self.jobs: dict[str, Job] = {}
        self.waiting: deque[Job] = deque()
        self.working = 0
        self._folder = _TemporaryFolder()

    @property
    def folder(self) -> Path:
        """The folder of all documents."""
        return self._folder.documents

    def submit(
        self,
        client: str,
        name: str,
        content: IO[bytes],
        source: str | None,
        target: str,
        model: str | None = None,
        terms: Mapping[str, str] | None = None,
        formality: Formality | None = None,
    ) -> Job:
        """Accept a document for translation.

        Args:
            client: the client.
            name: the file name, whose ending determines the document format.
            content: the content of the file, which is copied.
            source: the source language; detected if None.
            target: the target language.
            model: the name of a translator; the first one of the languages if None.
            terms: terms with the translations to use.
            formality: how translations address their reader, if the translator has learned that.

        Raises:
            ApiError: 400, the document can't be translated; 413, it is too large; 503, there are too many.
        """
        # Without folders (also of Windows) and control characters; a long name is cut at the left to keep its ending.
        name = "".join(filter(str.isprintable, name.replace("\\", "/").rsplit("/", 1)[-1]))[-200:]
        kind = kind_of(name)
        if kind is None:
            raise ApiError(400, f"Invalid request: {unknown_kind(name)}")
        if source is None:
            self.context.catalog.candidates(target)
        elif not needs_no_translation(self.context.catalog, source, target):
            self.context.catalog.addressing(self.context.catalog.find(source, target, model), formality)
        if content.seek(0, 2) > self.options.file_bytes:
            raise ApiError(413, f"Invalid request: the file has more than {self.options.file_bytes} bytes")
        content.seek(0)
        with self.lock:
            clients = [job.client for job in self.jobs.values() if not job.ended.is_set()]
            if len(clients) >= self.options.documents or clients.count(client) >= SHARE:
                raise ApiError(503, "Too many documents are being translated, please come again", retry_after=30)
            if not self.folder.exists():  # systems delete temporary folders that were not used for some days
                self._folder.remove()
                self._folder = _TemporaryFolder()
            files = JobFiles(self.folder / secrets.token_hex(16), content)
            job = Job(client, name, kind, source, target, model, files, terms or {}, formality)
            self.jobs[job.id] = job
            self.waiting.append(job)
        self.tidy_up()
        return job

    def find(self, key: str) -> Job:
        """Return a job by its id.

        Raises:
            GoneError: there is none.
        """
        job = self.jobs.get(key)
        if job is None:
            raise GoneError
        job.last_request = time.monotonic()
        return job

    async def wait(self, request: Request, job: Job) -> None:
        """Wait for the end of a job, and cancel it if the client disconnects.

        Raises:
            ApiError: 400, the document can't be translated; 500, the server has failed; 503, it took too long.
            ClientLeft: the client has disconnected.
        """
        disconnected = asyncio.ensure_future(until_disconnected(request))
        try:
            while not job.ended.is_set():  # the event is set in a thread, so that it can't be awaited
                if disconnected.done():
                    self.delete(job)
                    raise ClientLeft
                await asyncio.sleep(POLL_SECONDS)
        finally:
            disconnected.cancel()
        if job.state != "done":
            error = ApiError(job.status, job.error)
            self.delete(job)
            raise error

    async def answer(self, request: Request, job: Job) -> StreamingResponse:
        """Return the translated document with all corrections.

        Raises:
            ApiError: 400, the document can't be translated; 404, it was deleted; 500, the server failed; 503, not done.
            ClientLeft: the client has disconnected.
        """
        if job.state == "failed":
            raise ApiError(job.status, job.error)
        if job.state != "done":
            raise ApiError(503, job.error or "The document is not translated yet", retry_after=5)
        # After a correction the document is parsed again, which may take as long as before: minutes.
        task = RequestTask(self.context, request, job.client, self.options.document_seconds)
        if job.written_corrections < job.corrections:
            await task.run(lambda: write_result(job))
        headers = {"Content-Disposition": disposition(job.file_name), "X-Content-Type-Options": "nosniff"}
        parts, size = await run_in_threadpool(job.files.open_result)
        headers["Content-Length"] = str(size)
        return StreamingResponse(parts, media_type=job.kind.media, headers=headers)

    def correct(self, job: Job, targets: Mapping[int, Target]) -> None:
        """Store translations that a person has accepted, by the number of the segment."""
        job.files.store(targets.items(), accepted=True)
        with job.writing:
            job.corrections += 1

    def withdraw(self, job: Job, numbers: Sequence[int]) -> list[WrittenEntry]:
        """Undo the acceptance of segments; return the entries of a memory that it has written."""
        entries = job.files.withdraw(numbers)
        with job.writing:
            job.corrections += 1
        return entries

    def translate_again(self, job: Job, number: int) -> None:
        """Translate a segment again with its client's memory as it is now, unless a person has accepted it."""
        (row,) = job.files.rows(number, 1)
        if row.accepted or row.target is None or row.target.origin != "model":
            return
        job.files.store([(number, self._translated(served_for(self.context, job), job, row))])
        with job.writing:
            job.corrections += 1

    def with_senses(self, job: Job, number: int, senses: Mapping[str, str]) -> Row:
        """Return a segment translated with these senses of its terms, without storing it.

        Raises:
            ApiError: 400, the server has no terms of the document's languages.
        """
        served = served_for(self.context, job)
        if not isinstance(served, Served) or not served.translator.terms:
            raise ApiError(400, "Invalid request: there are no terms of these languages")
        served = replace(served, translator=served.translator.with_senses(senses), memory=None)
        (row,) = job.files.rows(number, 1)
        return replace(row, target=self._translated(served, job, row), accepted=False)

    def _translated(self, served: AnyServed, job: Job, row: Row) -> Target:
        """Translate a segment; a run with document context reads the segments before it."""
        segments = [row.segment]
        if options := served.translator.context:
            first = max(0, row.number - options.max_sentences)
            segments = [earlier.segment for earlier in job.files.rows(first, row.number - first)] + segments
        (target,) = translated(served, segment_sources(served, segments)[-1:])
        return target.within(row.segment.longest)

    def delete(self, job: Job) -> None:
        """Cancel a job that is not done, and delete its files."""
        with self.lock:
            self.jobs.pop(job.id, None)
            if job in self.waiting:
                self.waiting.remove(job)
                job.ended.set()
            if job.ended.is_set():
                job.files.delete()
            elif job.task:
                job.task.abandoned = True  # `_end` deletes its files
            job.state, job.error = "cancelled", "It was cancelled"

    def tidy_up(self) -> None:
        """Delete documents that were not requested for a long time, and start waiting ones."""
        now = time.monotonic()
        with self.lock:
            ended = [job for job in self.jobs.values() if job.ended.is_set()]
            ended.sort(key=lambda job: -job.last_request)
            room, size, expired = MAX_STORED - (len(self.jobs) - len(ended)), 0, []
            for i, job in enumerate(ended):
                size += job.files.size
                if i >= room or size > MAX_STORED_BYTES or now - job.last_request > self.options.keep_seconds:
                    expired.append(job)
        for job in expired:
            self.delete(job)
        with self.lock:
            while self.waiting and self.working < MAX_RUNNING:
                job = self.waiting[0]
                job.task = Task(job.client, self.options.document_seconds)
                try:
                    future = self.context.worker_pool.submit(job.task, partial(translate_document, self.context, job))
                except ApiError:  # the pool is full: try again at the next call
                    return
                self.waiting.popleft()
                self.working += 1
                future.add_done_callback(partial(self._end, job))

    def close(self) -> None:
        """Cancel everything, and delete all files."""
        for job in list(self.jobs.values()):
            self.delete(job)

    def clean(self) -> None:
        """Delete the folder, after all work has ended."""
        self._folder.remove()

    def _end(self, job: Job, future: Future[None]) -> None:
        """Store the end of a job, and start the next."""
        error = future.exception()
        with self.lock:
            self.working -= 1
            if job.state == "cancelled":
                job.files.delete()
            elif error is None:
                job.state = "done"
            elif isinstance(error, Cancelled):
                job.state, job.error = "cancelled", f"It took more than {self.options.document_seconds:g} seconds"
            else:
                job.state, (job.status, job.error) = "failed", status_of(error)
            job.last_request = time.monotonic()
            job.ended.set()
        self.tidy_up()


class _TemporaryFolder:
    """A folder that only this user can read, with a lock that the system releases when the process ends or is killed.

    The next server that uses the same place for temporary files removes folders whose servers were killed.
    """

    def __init__(self) -> None:
        _remove_abandoned()
        self._temporary = tempfile.TemporaryDirectory(prefix=_FOLDERS, ignore_cleanup_errors=True)
        # Another thread may release it than the one that made the folder again.
        self._lock = FileLock(Path(self._temporary.name) / LOCK, thread_local=False)
        self._lock.acquire()
        self.documents = Path(self._temporary.name) / _DOCUMENTS
        self.documents.mkdir(mode=0o700)  # after the lock: without this folder, no other server removes ours

    def remove(self) -> None:
        """Delete the folder."""
        self._lock.release()  # first: Windows deletes no file that is open
        self._temporary.cleanup()


def _remove_abandoned() -> None:
    """Delete the folders of servers of this user that were killed: they have documents, and nobody holds their lock."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_FOLDERS}*"):
        with suppress(OSError, Timeout):  # it is in use, or another server removes it
            status = folder.lstat()
            is_ours = stat.S_ISDIR(status.st_mode) and (os.name != "posix" or status.st_uid == os.getuid())
            if is_ours and (folder / _DOCUMENTS).is_dir():
                with FileLock(folder / LOCK, timeout=0):
                    shutil.rmtree(folder / _DOCUMENTS, ignore_errors=True)
                shutil.rmtree(folder, ignore_errors=True)


PAUSE_POLL_SECONDS = 0.01
"""The interval in seconds at which a document that pauses checks whether short requests still wait."""
PAUSE_FACTOR = 3.0
"""While short requests wait, a document pauses for up to this multiple of the time that its last part took."""
LONGEST_SEGMENT = 200_000
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
        job.source = _detected(document, context.catalog.candidates(job.target))
    if not needs_no_translation(context.catalog, job.source, job.target):
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


def needs_no_translation(catalog: Catalog, source: str, target: str) -> bool:
    """Return whether a document stays as it is, because source and target are equal, as in LibreTranslate."""
    return source == target and source in catalog.languages


def served_for(context: RequestContext, job: Job) -> AnyServed:
    """Return the translator of a document whose language is known, with its client's memory and its terms."""
    assert job.source is not None
    served = context.catalog.find(job.source, job.target, job.model)
    if served.translator.has_formality:
        served = context.catalog.addressing(served, job.formality)
    return with_terminology(context.with_memory(served, job.client), job.terms)


def _refuse_large(segments: Sequence[Segment], name: str) -> None:
    """Raise `UserError` if a segment is too long, or has too many tags."""
    for segment in segments:
        if len(segment.source.text) > LONGEST_SEGMENT:
            raise UserError(f"{segment.place} has more than {LONGEST_SEGMENT} characters", file=name, fix="Split it.")
        if len(segment.source.marks) > MOST_MARKS:
            raise UserError(f"{segment.place} has more than {MOST_MARKS} tags", file=name, fix="Split it.")


def _translate(context: RequestContext, job: Job, segments: Sequence[Segment], numbers: list[int]) -> None:
    """Translate the segments of these numbers in small parts, and store each part."""
    served = served_for(context, job)
    lengths = list(map(_length, segments))
    job.done = len(segments) - len(numbers)
    job.characters_done = job.characters - sum(lengths[i] for i in numbers)
    all_sources = segment_sources(served, segments)
    seconds = 0.0
    for chunk in in_chunks(numbers, lengths.__getitem__):
        _pause_for_short_requests(served, PAUSE_FACTOR * seconds)
        started = time.monotonic()
        sources = [all_sources[i] for i in chunk]
        context.usage.count(f"{served.source}-{served.target}", [source.text.text for source in sources])
        results = zip(chunk, translated(served, sources), strict=True)
        job.files.store([(i, target.within(segments[i].longest)) for i, target in results])
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
        time.sleep(PAUSE_POLL_SECONDS)
        between_steps()


def _first_texts(document: Document, characters: int = 2000) -> Iterator[str]:
    """Yield the texts of a document up to this many characters."""
    for segment in document.segments:
        if characters <= 0:
            return
        yield segment.source.text[:characters]
        characters -= len(segment.source.text)
