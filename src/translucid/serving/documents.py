"""Documents that are translated in the background: a limited number of jobs with progress and cancellation.

A document is translated in small parts, between which short requests are translated. Its files are its content, a
database of segments with their translations, and the result.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import shutil
import sqlite3
import stat
import tempfile
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count, starmap
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple
from urllib.parse import quote

from fastapi import Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import StreamingResponse
from filelock import FileLock, Timeout

from bitext.cancellation import Cancelled, between_steps
from bitext.documents.document import (
    Document,
    Kind,
    RetrievedWord,
    Segment,
    Target,
    kind_of,
    limit_segments,
    limit_work,
    read_document,
    unknown_kind,
)
from bitext.documents.tagged_text import Mark, Side, TaggedText
from translucid.ground.errors import UserError
from translucid.ground.lock import LOCK
from translucid.ground.special import Formality
from translucid.jobs.documents import segments_to_translate
from translucid.serving.catalog import AnyServed, Catalog, Served
from translucid.serving.edge.failures import ApiError, ClientLeft, GoneError, status_of
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


_TABLE = """CREATE TABLE segments (
    number INTEGER PRIMARY KEY, place TEXT, source TEXT, source_marks TEXT, existing TEXT, note TEXT, longest INTEGER,
    target TEXT, target_marks TEXT, origin TEXT, confidence REAL, doubts TEXT, retrieved TEXT,
    accepted INTEGER DEFAULT 0)"""
_TARGET = "target, target_marks, origin, confidence, doubts, retrieved"
"""The columns of a translation."""
_BEFORE = """CREATE TABLE before_acceptance (
    number INTEGER PRIMARY KEY, source TEXT, written TEXT, replaced TEXT, who TEXT,
    target TEXT, target_marks TEXT, origin TEXT, confidence REAL, doubts TEXT, retrieved TEXT)"""
"""The translations that accepted ones have replaced, and the entries of a translation memory that acceptance has
written (source, written) and replaced."""

MOST_CHARACTERS = 200_000
"""The maximum number of characters in segments that are returned together, with tags, notes and translations."""
SURE = 0.5
"""The confidence under which a translation is doubtful."""
_DOUBTFUL = f"(NOT accepted AND target IS NOT NULL AND (doubts != '[]' OR confidence < {SURE}))"


@dataclass(frozen=True)
class Row:
    """A segment with its translation."""

    number: int
    segment: Segment
    target: Target | None
    """The translation, None until there is one."""
    accepted: bool
    """Whether a person has accepted the translation."""

    @property
    def is_doubtful(self) -> bool:
        """Whether the translation failed quality checks, or has a low confidence, and nobody has accepted it."""
        if self.accepted or self.target is None:
            return False
        unsure = self.target.confidence is not None and self.target.confidence < SURE
        return bool(self.target.doubts) or unsure


class Counts(NamedTuple):
    """The numbers of accepted and of doubtful segments of a document."""

    accepted: int = 0
    doubtful: int = 0
    """The segments that a person should check (`Row.is_doubtful`)."""


class JobFiles:
    """The folder of one document. The names of its files are independent of names that clients give."""

    def __init__(self, folder: Path, content: IO[bytes]) -> None:
        """Create the folder, and copy a document into it."""
        self.folder = folder
        folder.mkdir(mode=0o700)
        self._document = folder / "document"
        self.result = folder / "result-0"
        """The translated document; each version has another name: Windows can't replace a file that is being sent."""
        self._results = count(1)
        self._changing = threading.Lock()
        try:
            with self._document.open("xb") as file:
                shutil.copyfileobj(content, file)
        except BaseException:  # such as a full disk, which would stay full with an incomplete file
            self.delete()
            raise

    @property
    def content(self) -> bytes:
        """The original document."""
        with self._unless_deleted():
            return self._document.read_bytes()

    @property
    def document_size(self) -> int:
        """The bytes of the original document."""
        with self._unless_deleted():
            return self._document.stat().st_size

    @property
    def size(self) -> int:
        """The bytes of all files in the folder."""
        total = 0
        with suppress(OSError), os.scandir(self.folder) as files:
            for file in files:
                with suppress(FileNotFoundError):  # SQLite creates and deletes its journal at every correction
                    total += file.stat().st_size
        return total

    def store_result(self, result: bytes) -> None:
        """Store the translated document."""
        new_file = self.folder / f"result-{next(self._results)}"
        with self._unless_deleted():
            try:
                new_file.write_bytes(result)
            except OSError:  # such as a full disk, which would stay full with an incomplete file
                with suppress(OSError):
                    new_file.unlink()
                raise
        with self._changing:
            old_file, self.result = self.result, new_file
            with suppress(OSError):  # there was none; or it is being sent, and Windows deletes no file that is open
                old_file.unlink()

    def open_result(self) -> tuple[Iterator[bytes], int]:
        """Open the translated document; return its parts, which remain readable if the file is deleted, and its size.

        Raises:
            GoneError: the document was deleted.
        """
        with self._unless_deleted(), self._changing:
            file = self.result.open("rb")
        return _parts(file), os.fstat(file.fileno()).st_size

    def delete(self) -> None:
        """Delete the folder; concurrent readers get a `GoneError`."""
        removed = self.folder.with_suffix(".going")
        try:
            self.folder.rename(removed)
        except OSError:  # it was deleted before; or a file in it is open, which Windows keeps: delete the others
            removed = self.folder
        shutil.rmtree(removed, ignore_errors=True)

    def store_segments(self, segments: Sequence[Segment]) -> None:
        """Store the segments."""
        rows = starmap(_source_columns, enumerate(segments))
        with self._database("rwc") as database:
            database.execute(_TABLE)
            database.execute(_BEFORE)
            database.executemany("INSERT INTO segments VALUES (?,?,?,?,?,?,?" + ",NULL" * 6 + ",0)", rows)

    def store(self, targets: Iterable[tuple[int, Target]], *, accepted: bool = False) -> None:
        """Store translations by the number of the segment; those that a person has `accepted` replace all others."""
        rows = [(*_columns(target), number) for number, target in targets]
        values = f"SET ({_TARGET}) = (?,?,?,?,?,?)"
        with self._database() as database:
            if accepted:
                columns = f"number, {_TARGET}"
                before = f"SELECT {columns} FROM segments WHERE number=? AND NOT accepted"
                insert = f"INSERT OR IGNORE INTO before_acceptance ({columns}) {before}"
                database.executemany(insert, [row[-1:] for row in rows])
                database.executemany(f"UPDATE segments {values}, accepted=1 WHERE number=?", rows)
            else:
                database.executemany(f"UPDATE before_acceptance {values} WHERE number=?", rows)
                database.executemany(f"UPDATE segments {values} WHERE number=? AND NOT accepted", rows)

    def store_entries(self, entries: Iterable[tuple[int, WrittenEntry]]) -> None:
        """Store which entries of a memory the acceptance of segments has written, by the number of the segment."""
        rows = []
        for number, (source, target, replaced, who) in entries:
            rows.append((replaced, who, source, target, number))
        first = "CASE WHEN source IS NULL THEN ? ELSE"  # a later acceptance replaces the entry of the first one
        changes = f"replaced = {first} replaced END, who = {first} who END, source = ?, written = ?"
        with self._database() as database:
            database.executemany(f"UPDATE before_acceptance SET {changes} WHERE number=?", rows)

    def withdraw(self, numbers: Sequence[int]) -> list[WrittenEntry]:
        """Bring back the translations before acceptance; return the entries of a memory that acceptance has written."""
        rows = [(number,) for number in numbers]
        before = f"(SELECT {_TARGET} FROM before_acceptance WHERE before_acceptance.number = segments.number)"
        update = f"UPDATE segments SET ({_TARGET}) = {before}, accepted=0 WHERE number=? AND accepted"
        select = "SELECT source, written, replaced, who FROM before_acceptance WHERE number=? AND source IS NOT NULL"
        entries: list[WrittenEntry] = []
        with self._database() as database:
            database.executemany(update, rows)
            for row in rows:
                entries += starmap(WrittenEntry, database.execute(select, row))
            database.executemany("DELETE FROM before_acceptance WHERE number=?", rows)
        return entries

    def counts(self) -> Counts:
        """Return the numbers of accepted and of doubtful segments."""
        with self._database() as database:
            query = f"SELECT count(*) FILTER (WHERE accepted), count(*) FILTER (WHERE {_DOUBTFUL}) FROM segments"
            return Counts(*database.execute(query).fetchone())

    def rows(self, first: int = 0, count: int = -1, *, doubtful: bool = False) -> list[Row]:
        """Return segments from a number on.

        Args:
            first: the first number.
            count: the maximum number of segments, fewer if they are long; all if it is negative.
            doubtful: return doubtful segments only.
        """
        condition = f"AND {_DOUBTFUL}" if doubtful else ""
        with self._database() as database:
            cursor = database.execute(
                f"SELECT * FROM segments WHERE number >= ? {condition} ORDER BY number LIMIT ?", (first, count)
            )
            rows: list[Row] = []
            characters = 0
            for columns in cursor:
                rows.append(_row(*columns))
                characters += sum(len(column) for column in columns if isinstance(column, str))
                if count >= 0 and characters > MOST_CHARACTERS:
                    break
            return rows

    def targets(self) -> dict[int, Target]:
        """Return the translations by the number of the segment, as the document stores them.

        A translation that a person has accepted is that person's, whatever its origin.
        """
        targets: dict[int, Target] = {}
        for row in self.rows():
            if row.target and row.accepted:
                targets[row.number] = Target(row.target.marked, "person")
            elif row.target:
                targets[row.number] = row.target
        return targets

    @contextmanager
    def _database(self, mode: str = "rw") -> Iterator[sqlite3.Connection]:
        # A crash ends the job, so that SQLite need not wait for the disk.
        name = f"{(self.folder / 'segments.sqlite').absolute().as_uri()}?mode={mode}"
        with self._unless_deleted(), closing(sqlite3.connect(name, uri=True, timeout=30)) as database:
            database.execute("PRAGMA synchronous=OFF")
            with database:
                yield database

    @contextmanager
    def _unless_deleted(self) -> Iterator[None]:
        """Within the context, turn errors into `GoneError` if the document was deleted."""
        try:
            yield
        except (OSError, sqlite3.Error) as error:
            if self.folder.exists():
                raise
            raise GoneError from error


def _parts(file: IO[bytes]) -> Iterator[bytes]:
    with file:
        while block := file.read(1 << 16):
            yield block


def _marks_json(marks: Sequence[Mark]) -> str:
    """Return marks as JSON for the database."""
    return json.dumps([[mark.offset, mark.raw, mark.side.value, mark.pair] for mark in marks])


def _tagged_text(text: str, marks: str) -> TaggedText:
    """Return a text with the marks that `_marks_json` returned."""
    return TaggedText(
        text, tuple(Mark(position, raw, Side(side), pair) for position, raw, side, pair in json.loads(marks))
    )


def _source_columns(number: int, segment: Segment) -> tuple[Any, ...]:
    source, marks = segment.source.text, _marks_json(segment.source.marks)
    existing = segment.existing and json.dumps([segment.existing.text, _marks_json(segment.existing.marks)])
    return number, segment.place, source, marks, existing, segment.note, segment.longest


def _columns(target: Target) -> tuple[Any, ...]:
    text, marks = target.marked.text, _marks_json(target.marked.marks)
    return text, marks, target.origin, target.confidence, json.dumps(target.doubts), json.dumps(target.retrieved)


def _row(number: int, place: str, source: str, marks: str, *columns: Any) -> Row:
    existing, note, longest, text, target_marks, origin, confidence, doubts, retrieved, accepted = columns
    existing = existing and _tagged_text(*json.loads(existing))
    segment = Segment(_tagged_text(source, marks), place, existing, note, longest)
    if text is None:
        return Row(number, segment, None, accepted=False)
    words = tuple(starmap(RetrievedWord, json.loads(retrieved)))
    doubts = tuple(json.loads(doubts))
    target = Target(_tagged_text(text, target_marks), origin, confidence, doubts, retrieved=words)
    return Row(number, segment, target, accepted=bool(accepted))


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
