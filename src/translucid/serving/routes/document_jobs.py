"""The background translation of documents: a limited number of jobs with progress and cancellation."""

from __future__ import annotations

import asyncio
import secrets
import tempfile
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO, Literal
from urllib.parse import quote

from fastapi import Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import StreamingResponse

from translucid.documents.document import Document, Segment, Target, at_most
from translucid.documents.kinds import Kind, kind_of, read_document, unknown_kind
from translucid.ground.cancellation import Cancelled, between_steps
from translucid.ground.errors import UserError
from translucid.jobs.documents import segments_to_translate
from translucid.serving.document_context import segments_before
from translucid.serving.edge.failures import ApiError, ClientLeft, GoneError, status_of
from translucid.serving.language_pairs import AnyServed
from translucid.serving.queue.batcher import in_chunks
from translucid.serving.queue.fair_scheduler import Task
from translucid.serving.queue.job_files import JobFiles
from translucid.serving.queue.request_context import RequestContext, RequestTask, until_disconnected
from translucid.serving.routes.detection import detect_sources
from translucid.serving.texts import translated, with_terminology

POLL_SECONDS = 0.05
"""The interval in seconds at which a request that waits for a job checks whether it has ended."""
PAUSE_FACTOR = 3.0
"""While short requests wait, a document pauses for this many times the seconds that its last part took."""
AT_ONCE = 2
"""The most documents that are translated at once; others wait."""
SHARE = 8
"""The most documents of one client that wait or are being translated."""
KEPT = 200
"""The most documents, finished ones included; those whose last request is longest ago are deleted first."""
KEPT_BYTES = 2 << 30
"""The most bytes in the files of all finished documents; the same are deleted first."""
LONGEST = 200_000
"""The most characters of a segment; no segment of a real document has more."""
MOST_MARKS = 20_000
"""The most tags and placeholders of a segment."""

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
    id: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    """A secret: a client that knows it has full access to the document."""
    key: str = field(default_factory=lambda: secrets.token_hex(32))
    """A second secret in DeepL's API."""
    state: State = "waiting"
    error: str = ""
    status: int = 503
    """The HTTP status of requests for a result that does not exist."""
    segments: int = 0
    """The number of segments; 0 until the document is parsed."""
    done: int = 0
    """The number of segments that have a translation or need none."""
    characters: int = 0
    """The characters of all segments."""
    characters_done: int = 0
    began: float = 0.0
    touched: float = field(default_factory=time.monotonic)
    """The time of the last request for it."""
    corrections: int = 0
    """The number of corrections by a person."""
    written: int = -1
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
        spent = time.monotonic() - self.began
        return spent / self.characters_done * (self.characters - self.characters_done)

    @property
    def file_name(self) -> str:
        """The file name of the result: `notes_es.txt` for `notes.txt`."""
        stem, dot, ending = self.name.rpartition(".")
        return f"{stem}_{self.target}{dot}{ending}"


class DocumentJobs:
    """The documents of a server; their files are in a temporary folder that only its user can read."""

    def __init__(self, context: RequestContext) -> None:
        self.context, self.options = context, context.options
        self.lock = threading.RLock()  # reentrant: a future that has ended already calls `_end` within `tidy_up`
        self.jobs: dict[str, Job] = {}
        self.waiting: deque[Job] = deque()
        self.working = 0
        self._temporary, self.folder = _folder()

    def submit(
        self,
        client: str,
        name: str,
        content: IO[bytes],
        source: str | None,
        target: str,
        model: str | None = None,
        terms: Mapping[str, str] | None = None,
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

        Raises:
            ApiError: 400, the document can't be translated; 413, it is too large; 503, there are too many.
        """
        # Without folders, also of Windows, and without control characters; only the end, which has the ending.
        name = "".join(filter(str.isprintable, name.replace("\\", "/").rsplit("/", 1)[-1]))[-200:]
        kind = kind_of(name)
        if kind is None:
            raise ApiError(400, f"Invalid request: {unknown_kind(name)}")
        if source is None:
            self.context.catalogue.candidates(target)
        elif not self.same(source, target):
            self.context.catalogue.find(source, target, model)
        if content.seek(0, 2) > self.options.file_bytes:
            raise ApiError(413, f"Invalid request: the file has more than {self.options.file_bytes} bytes")
        content.seek(0)
        with self.lock:
            clients = [job.client for job in self.jobs.values() if not job.ended.is_set()]
            if len(clients) >= self.options.documents or clients.count(client) >= SHARE:
                raise ApiError(503, "Too many documents are being translated, please come again", retry_after=30)
            if not self.folder.exists():  # systems delete temporary folders that were not used for some days
                self._temporary, self.folder = _folder()
            files = JobFiles(self.folder / secrets.token_hex(16), content)
            job = Job(client, name, kind, source, target, model, files, terms or {})
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
        job.touched = time.monotonic()
        return job

    def same(self, source: str, target: str) -> bool:
        """Return whether nothing is translated, because source and target are equal, as in LibreTranslate."""
        return source == target and source in self.context.catalogue.languages

    async def wait(self, request: Request, job: Job) -> None:
        """Wait for the end of a job, and cancel it if the client disconnects.

        Raises:
            ApiError: 400, the document can't be translated; 500, the server has failed; 503, it took too long.
            ClientLeft: the client has disconnected.
        """
        gone = asyncio.ensure_future(until_disconnected(request))
        try:
            while not job.ended.is_set():  # the event is set in a thread, so that it can't be awaited
                if gone.done():
                    self.delete(job)
                    raise ClientLeft
                await asyncio.sleep(POLL_SECONDS)
        finally:
            gone.cancel()
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
        if job.written < job.corrections:
            await task.run(lambda: self._write_result(job))
        headers = {"Content-Disposition": disposition(job.file_name), "X-Content-Type-Options": "nosniff"}
        parts, size = await run_in_threadpool(job.files.sent)
        headers["Content-Length"] = str(size)
        return StreamingResponse(parts, media_type=job.kind.media, headers=headers)

    def correct(self, job: Job, targets: Mapping[int, Target]) -> None:
        """Store translations that a person has accepted, by the number of the segment."""
        job.files.accept(targets)
        with job.writing:
            job.corrections += 1

    def served(self, job: Job) -> AnyServed:
        """Return the translator of a document whose language is known, with its terms."""
        assert job.source is not None
        return with_terminology(self.context.catalogue.find(job.source, job.target, job.model), job.terms)

    def _write_result(self, job: Job, document: Document | None = None) -> None:
        """Write the result with the present translations and corrections.

        Several requests may do so at once, and each may be cancelled: a new result replaces the old one only if it has
        more corrections.
        """
        corrections = job.corrections  # before the translations are read: later ones count as missing
        document = document or read_document(job.name, job.files.content, (job.source, job.target))
        between_steps()
        result = document.filled(job.files.targets())
        between_steps()
        with job.writing:
            if corrections > job.written:
                job.files.keep(result)
                job.written = corrections

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
                job.task.left = True  # `_end` deletes its files
            job.state, job.error = "cancelled", "It was cancelled"

    def tidy_up(self) -> None:
        """Delete documents that were not requested for long, and start waiting ones."""
        now = time.monotonic()
        with self.lock:
            ended = [job for job in self.jobs.values() if job.ended.is_set()]
            ended.sort(key=lambda job: -job.touched)
            room, size, old = KEPT - (len(self.jobs) - len(ended)), 0, []
            for i, job in enumerate(ended):
                size += job.files.size
                if i >= room or size > KEPT_BYTES or now - job.touched > self.options.keep_seconds:
                    old.append(job)
        for job in old:
            self.delete(job)
        with self.lock:
            while self.waiting and self.working < AT_ONCE:
                job = self.waiting[0]
                job.task = Task(job.client, self.options.document_seconds)
                try:
                    future = self.context.worker_pool.submit(job.task, partial(self._work, job))
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
        self._temporary.cleanup()

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
            job.touched = time.monotonic()
            job.ended.set()
        self.tidy_up()

    def _work(self, job: Job) -> None:
        """Translate a document; called in the worker pool."""
        if job.state == "cancelled":
            raise Cancelled
        job.state, job.began = "translating", time.monotonic()
        with at_most(self.options.document_segments):
            document = read_document(job.name, job.files.content, (job.source, job.target))
        segments = document.segments
        for segment in segments:
            if len(segment.source.text) > LONGEST:
                raise UserError(f"{segment.place} has more than {LONGEST} characters", file=job.name, fix="Split it.")
            if len(segment.source.marks) > MOST_MARKS:
                raise UserError(f"{segment.place} has more than {MOST_MARKS} tags", file=job.name, fix="Split it.")
        between_steps()
        job.files.begin(segments)  # first: requests read the database as soon as the number of segments is set
        lengths = [len(segment.source.text) for segment in segments]
        job.segments, job.characters = len(segments), sum(lengths)
        if job.source is None:
            job.source = self._detected(document, job.target)
        if not self.same(job.source, job.target):
            self._translate(job, segments, lengths, segments_to_translate(document, again=False))
        self._write_result(job, document)

    def _translate(self, job: Job, segments: list[Segment], lengths: list[int], numbers: list[int]) -> None:
        """Translate the segments of these numbers in small parts, and store each part."""
        served, length_of = self.served(job), lengths.__getitem__
        job.done = len(segments) - len(numbers)
        job.characters_done = job.characters - sum(map(length_of, numbers))
        before = segments_before(served, segments)
        spent = 0.0
        for part in in_chunks(numbers, length_of):
            _pause_for_short_requests(served, PAUSE_FACTOR * spent)
            began = time.monotonic()
            sources = [segments[i].source for i in part]
            of_part = before and [before[i] for i in part]
            results = zip(part, translated(self.context, served, sources, before=of_part), strict=True)
            job.files.translated([(i, target.within(segments[i].longest)) for i, target in results])
            job.done += len(part)
            job.characters_done += sum(map(length_of, part))
            spent = time.monotonic() - began

    def _detected(self, document: Document, target: str) -> str:
        """Detect the language of a document by its first texts."""
        text = " ".join(_first_texts(document))
        ((language, _),) = detect_sources([text], self.context.catalogue.candidates(target))
        return language


def _folder() -> tuple[tempfile.TemporaryDirectory[str], Path]:
    """Create a folder that only this user can read; it is deleted with the first of the two objects."""
    temporary = tempfile.TemporaryDirectory(prefix="translucid-documents-", ignore_cleanup_errors=True)
    return temporary, Path(temporary.name)


def _pause_for_short_requests(served: AnyServed, seconds: float) -> None:
    """Pause while short requests wait, but not longer than this."""
    end = time.monotonic() + seconds
    between_steps()
    while served.batcher.sentences and time.monotonic() < end:
        time.sleep(POLL_SECONDS / 5)
        between_steps()


def disposition(name: str) -> str:
    """Return the Content-Disposition header with the name under which a file is to be saved (RFC 6266)."""
    # Percent encoding also prevents that a name ends the header.
    quoted = quote(name.encode("utf-8", "replace"), safe=" ")
    if "%" in quoted:
        return f"attachment; filename*=UTF-8''{quoted.replace(' ', '%20')}"
    return f'attachment; filename="{quoted}"'  # some clients, such as curl, do not know `filename*`


def _first_texts(document: Document, characters: int = 2000) -> Iterator[str]:
    """Yield the texts of a document up to this many characters."""
    for segment in document.segments:
        if characters <= 0:
            return
        yield segment.source.text[:characters]
        characters -= len(segment.source.text)
