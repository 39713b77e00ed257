"""The files of one document of the server: its content, a database of segments with their translations, the result."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from itertools import count, starmap
from pathlib import Path
from typing import IO, Any, NamedTuple

from bitext.documents.document import RetrievedWord, Segment, Target
from bitext.documents.tagged_text import Mark, Side, TaggedText
from translucid.serving.edge.failures import GoneError
from translucid.serving.memory import WrittenEntry

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
        rows = [(replaced, who, source, target, number) for number, (source, target, replaced, who) in entries]
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
