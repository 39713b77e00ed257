"""Documents that are translated while others are served: a bounded number of jobs, each with progress and an end."""

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

from translucid.api.translator import Translator
from translucid.documents.document import Document, Segment, Target, at_most
from translucid.documents.kinds import Kind, kind_of, read_document
from translucid.ground.cancellation import Cancelled, between_steps
from translucid.ground.errors import UserError
from translucid.jobs.documents import asked_for
from translucid.serving.edge.failures import ApiError, ClientLeft, GoneError, status_of
from translucid.serving.language_pairs import Served
from translucid.serving.queue.batcher import in_chunks
from translucid.serving.queue.job_files import JobFiles
from translucid.serving.queue.request_context import RequestContext
from translucid.serving.queue.request_task import RequestTask, until_disconnected
from translucid.serving.routes.detection import detect_sources
from translucid.serving.texts import translated, with_terminology

LOOK_AGAIN = 0.05
"""Seconds after which one that waits for a job looks whether it has ended."""
GIVE_WAY = 3.0
"""While short requests wait, they have so many times the seconds that a part of a document has taken."""
AT_ONCE = 2
"""Documents that are worked on; others wait."""
SHARE = 8
"""Documents of one client that wait or are worked on."""
KEPT = 200
"""Documents that there are at most, done ones too; of these, those that were asked for longest ago have to go."""
KEPT_BYTES = 2 << 30
"""That the files of all documents that are done may have; likewise."""
LONGEST = 200_000
"""Characters of a segment; one with more is no text of a document."""
MOST_MARKS = 20_000
"""Tags and placeholders of a segment; likewise."""

State = Literal["waiting", "translating", "done", "failed", "cancelled"]


@dataclass(eq=False)
class Job:
    """A document on its way."""

    client: str
    name: str
    """As the client gave it, without folders; only ever shown."""
    kind: Kind
    source: str | None
    """Language; none until it has been found out."""
    target: str
    model: str | None
    files: JobFiles
    terms: Mapping[str, str]
    id: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    """Can't be guessed: who knows it may do all with it."""
    key: str = field(default_factory=lambda: secrets.token_hex(32))
    """The second half of what DeepL's clients have to know."""
    state: State = "waiting"
    error: str = ""
    status: int = 503
    """Of the answer to those who ask for the result when there is none."""
    segments: int = 0
    done: int = 0
    """Of them, those that have their translation, or need none."""
    characters: int = 0
    """Of the segments."""
    characters_done: int = 0
    began: float = 0.0
    touched: float = field(default_factory=time.monotonic)
    """When it was asked for last."""
    corrections: int = 0
    """How often segments were corrected."""
    written: int = -1
    """How many of these corrections the result has at least; -1 while there is no result."""
    writing: threading.Lock = field(default_factory=threading.Lock)
    """Held while the result is replaced."""
    task: RequestTask | None = None
    ended: threading.Event = field(default_factory=threading.Event)

    @property
    def seconds_left(self) -> float | None:
        """Estimate the time until it is done; none where nothing is known."""
        if self.state != "translating" or not self.characters_done:
            return None
        spent = time.monotonic() - self.began
        return spent / self.characters_done * (self.characters - self.characters_done)

    @property
    def file_name(self) -> str:
        """Return the name of the result: `notes_es.txt` of `notes.txt`."""
        stem, dot, ending = self.name.rpartition(".")
        return f"{stem}_{self.target}{dot}{ending}"


class DocumentJobs:
    """All documents of a server; their files are in a folder that only it can read and that goes with it."""

    def __init__(self, context: RequestContext) -> None:
        self.context, self.options = context, context.options
        self.lock = threading.RLock()
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
        """Take a document in.

        Args:
            client: whose it is.
            name: its file's; the ending says what kind it is.
            content: of the file, which is copied.
            source: language; none is found out.
            target: language.
            model: by name; the first of the languages if none.
            terms: to apply, with their translations.

        Raises:
            ApiError: 400, it can't be translated; 413, it is too large; 503, there are too many.
        """
        name = "".join(filter(str.isprintable, name.replace("\\", "/").rsplit("/", 1)[-1]))[-200:]
        kind = kind_of(name)
        if kind is None:
            raise ApiError(400, f"Invalid request: {name[:50]!r} is of no kind that is translated here")
        if source is None:
            self.context.catalogue.candidates(target)
        elif not self.same(source, target):
            self.context.catalogue.find(source, target, model)
        if content.seek(0, 2) > self.options.file_bytes:
            raise ApiError(413, f"Invalid request: the file has more than {self.options.file_bytes} bytes")
        content.seek(0)
        with self.lock:
            open_jobs = [job for job in self.jobs.values() if not job.ended.is_set()]
            if len(open_jobs) >= self.options.documents or sum(job.client == client for job in open_jobs) >= SHARE:
                raise ApiError(503, "Too many documents are being translated, please come again", retry_after=30)
            if not self.folder.exists():  # whatever clears temporary files up may have taken it after some days
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
        """Whether nothing is to be translated between two languages, as with LibreTranslate."""
        return source == target and source in self.context.catalogue.languages

    async def wait(self, request: Request, job: Job) -> None:
        """Wait for the end of a job, as long as its client does; one that leaves cancels it.

        Raises:
            ApiError: 400, it can't be translated; 500, that is the server's fault; 503, it took too long.
            ClientLeft: nobody is there to answer.
        """
        gone = asyncio.ensure_future(until_disconnected(request))
        try:
            while not job.ended.is_set():
                if gone.done():
                    self.delete(job)
                    raise ClientLeft
                await asyncio.sleep(LOOK_AGAIN)
        finally:
            gone.cancel()
        if job.state != "done":
            error = ApiError(job.status, job.error)
            self.delete(job)
            raise error

    async def answer(self, request: Request, job: Job) -> StreamingResponse:
        """Send the translated document, with all that was corrected.

        Raises:
            ApiError: 400, it can't be translated; 500, that is the server's fault; 503, it is not done; 404, it was
                deleted meanwhile.
            ClientLeft: nobody is there to answer.
        """
        if job.state == "failed":
            raise ApiError(job.status, job.error)
        if job.state != "done":
            raise ApiError(503, job.error or "The document is not translated yet", retry_after=5)
        # A document that took minutes to be read takes as long again after a correction.
        task = RequestTask(job.client, self.options.document_seconds)
        if job.written < job.corrections:
            await task.result(request, self.context.worker_pool.submit(task, lambda: self._write_result(job)))
        headers = {"Content-Disposition": disposition(job.file_name), "X-Content-Type-Options": "nosniff"}
        parts, size = await run_in_threadpool(job.files.sent)
        headers["Content-Length"] = str(size)
        return StreamingResponse(parts, media_type=job.kind.media, headers=headers)

    def correct(self, job: Job, targets: Mapping[int, Target]) -> None:
        """Take translations that a person has accepted, by the number of the segment."""
        job.files.accept(targets)
        with job.writing:
            job.corrections += 1

    def translator_of(self, job: Job) -> Translator:
        """Return what translates a document whose language is known, with its terms."""
        assert job.source is not None
        return with_terminology(self.context.catalogue.find(job.source, job.target, job.model), job.terms).translator

    def _write_result(self, job: Job, document: Document | None = None) -> None:
        """Make the result, with what was translated and corrected until now.

        Several clients may do so at once, and each may leave in the middle: what they make takes the place of the
        result only if it has more corrections.
        """
        corrections = job.corrections  # before the translations are read: what comes in between counts as missing
        document = document or read_document(job.name, job.files.content, (job.source, job.target))
        between_steps()
        result = document.filled(job.files.targets())
        between_steps()
        with job.writing:
            if corrections > job.written:
                job.files.keep(result)
                job.written = corrections

    def delete(self, job: Job) -> None:
        """Cancel a job that is not done, and forget its files."""
        with self.lock:
            self.jobs.pop(job.id, None)
            if job in self.waiting:
                self.waiting.remove(job)
                job.ended.set()
            if job.ended.is_set():
                job.files.delete()
            elif job.task:
                job.task.left = True  # its files go when it ends
            job.state, job.error = "cancelled", "It was cancelled"

    def tidy_up(self) -> None:
        """Forget what nobody has asked for in a while, and begin what waits."""
        now = time.monotonic()
        with self.lock:
            over = [job for job in self.jobs.values() if job.ended.is_set()]
            over.sort(key=lambda job: -job.touched)
            room, size, old = KEPT - (len(self.jobs) - len(over)), 0, []
            for i, job in enumerate(over):
                size += job.files.size
                if i >= room or size > KEPT_BYTES or now - job.touched > self.options.keep_seconds:
                    old.append(job)
        for job in old:
            self.delete(job)
        with self.lock:
            while self.waiting and self.working < AT_ONCE:
                job = self.waiting[0]
                job.task = RequestTask(job.client, self.options.document_seconds)
                try:
                    future = self.context.worker_pool.submit(job.task, partial(self._work, job))
                except ApiError:  # it is full: later
                    return
                self.waiting.popleft()
                self.working += 1
                future.add_done_callback(partial(self._end, job))

    def close(self) -> None:
        """Cancel everything, and delete all files."""
        for job in list(self.jobs.values()):
            self.delete(job)

    def clean(self) -> None:
        """Delete the folder, when nothing works any more."""
        self._temporary.cleanup()

    def _end(self, job: Job, future: Future[None]) -> None:
        """Note how a job ended, and let the next begin."""
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
        """Translate a document, in the worker_pool."""
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
        job.files.begin(segments)  # they can be asked for as soon as their number is known
        job.segments, job.characters = len(segments), sum(len(one.source.text) for one in segments)
        if job.source is None:
            job.source = self._detected(document, job.target)
        if not self.same(job.source, job.target):
            wanted = asked_for(document, again=False)
            served = with_terminology(self.context.catalogue.find(job.source, job.target, job.model), job.terms)
            self._translate(job, served, segments, wanted)
        self._write_result(job, document)

    def _translate(self, job: Job, served: Served, segments: list[Segment], wanted: list[int]) -> None:
        job.done = len(segments) - len(wanted)
        job.characters_done = job.characters - sum(len(segments[i].source.text) for i in wanted)
        spent = 0.0
        for numbers in in_chunks(wanted, lambda i: len(segments[i].source.text)):
            _give_way(served, GIVE_WAY * spent)
            begun = time.monotonic()
            sources = [segments[i].source for i in numbers]
            found = zip(numbers, translated(self.context, served, sources), strict=True)
            job.files.translated([(i, target.within(segments[i].longest)) for i, target in found])
            job.done += len(numbers)
            job.characters_done += sum(len(source.text) for source in sources)
            spent = time.monotonic() - begun

    def _detected(self, document: Document, target: str) -> str:
        ((found, _),) = detect_sources([" ".join(_first_texts(document))], self.context.catalogue.candidates(target))
        return found


def _folder() -> tuple[tempfile.TemporaryDirectory[str], Path]:
    """Make a folder that only this user can read, and that goes with what it returns."""
    temporary = tempfile.TemporaryDirectory(prefix="translucid-documents-", ignore_cleanup_errors=True)
    return temporary, Path(temporary.name)


def _give_way(served: Served, seconds: float) -> None:
    """Let short requests go first for some time, as long as there are any."""
    end = time.monotonic() + seconds
    between_steps()
    while served.batcher.sentences and time.monotonic() < end:
        time.sleep(LOOK_AGAIN / 5)
        between_steps()


def disposition(name: str) -> str:
    """Return the header that says what name a file is to be saved by."""
    # What is not plain is percent-encoded, so that no name can end the header (RFC 6266).
    quoted = quote(name.encode("utf-8", "replace"), safe=" ")
    # Some clients, curl among them, know no filename*.
    form = f"filename*=UTF-8''{quoted.replace(' ', '%20')}" if "%" in quoted else f'filename="{quoted}"'
    return f"attachment; {form}"


def _first_texts(document: Document, characters: int = 2000) -> Iterator[str]:
    for segment in document.segments:
        if characters <= 0:
            return
        yield segment.source.text[:characters]
        characters -= len(segment.source.text)
