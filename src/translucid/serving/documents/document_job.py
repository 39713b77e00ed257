"""A document that is translated in the background: what the client sent, how far the translation is, and its files.

The files are its content, a database of segments with their translations, and the result.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from itertools import count, starmap
from pathlib import Path
from threading import Lock
from typing import IO, Any, Literal, NamedTuple
from urllib.parse import quote

from bitext.documents.document import Kind, Segment, Target
from bitext.documents.tagged_text import Mark, Side, TaggedText
from translucid.serving.edge.failures import GoneError
from translucid.serving.queue import Task

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
    target TEXT, target_marks TEXT, origin TEXT, confidence REAL, doubts TEXT, accepted INTEGER DEFAULT 0)"""

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
        self._changing = Lock()
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
            database.executemany("INSERT INTO segments VALUES (?,?,?,?,?,?,?" + ",NULL" * 5 + ",0)", rows)

    def store_translations(self, targets: Sequence[tuple[int, Target]]) -> None:
        """Store translations by the number of the segment; a translation that a person has accepted stays."""
        self._store(targets, accepted=False)

    def accept(self, targets: Mapping[int, Target]) -> None:
        """Store translations that a person has accepted, by the number of the segment."""
        self._store(targets.items(), accepted=True)

    def _store(self, targets: Iterable[tuple[int, Target]], *, accepted: bool) -> None:
        rows = [(*_columns(target), accepted, number, accepted) for number, target in targets]
        with self._database() as database:
            database.executemany(
                "UPDATE segments SET target=?, target_marks=?, origin=?, confidence=?, doubts=?, accepted=? "
                "WHERE number=? AND (? OR NOT accepted)",
                rows,
            )

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
    return number, segment.place, source, marks, segment.existing, segment.note, segment.longest


def _columns(target: Target) -> tuple[Any, ...]:
    doubts = json.dumps(target.doubts)
    return target.marked.text, _marks_json(target.marked.marks), target.origin, target.confidence, doubts


def _row(number: int, place: str, source: str, marks: str, *columns: Any) -> Row:
    existing, note, longest, text, target_marks, origin, confidence, doubts, accepted = columns
    segment = Segment(_tagged_text(source, marks), place, existing, note, longest)
    if text is None:
        return Row(number, segment, None, accepted=False)
    target = Target(_tagged_text(text, target_marks), origin, confidence, tuple(json.loads(doubts)))
    return Row(number, segment, target, accepted=bool(accepted))
