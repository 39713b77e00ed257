"""What is kept of one document: its bytes, its segments with their translations, and what comes of it; all on disk."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from threading import Lock
from typing import IO, Any, NamedTuple

from translucid.documents.document import Segment, Target
from translucid.documents.tagged_text import Mark, Side, TaggedText
from translucid.serving.edge.failures import GoneError

_TABLE = """CREATE TABLE segments (
    number INTEGER PRIMARY KEY, place TEXT, source TEXT, source_marks TEXT, existing TEXT, note TEXT, longest INTEGER,
    target TEXT, target_marks TEXT, origin TEXT, confidence REAL, doubts TEXT, accepted INTEGER DEFAULT 0)"""

MOST_CHARACTERS = 200_000
"""Of segments that are returned together, with their tags."""
SURE = 0.5
"""Confidence under which a translation wants to be looked at."""
_DOUBTFUL = f"(NOT accepted AND target IS NOT NULL AND (doubts != '[]' OR confidence < {SURE}))"


@dataclass(frozen=True)
class Row:
    """A segment and what it has become."""

    number: int
    segment: Segment
    target: Target | None
    """None if it has no translation of ours yet."""
    accepted: bool
    """By a person."""

    @property
    def is_doubtful(self) -> bool:
        """Whether its translation looks wrong, or is rather not good, and nobody has accepted it."""
        if self.accepted or self.target is None:
            return False
        unsure = self.target.confidence is not None and self.target.confidence < SURE
        return bool(self.target.doubts) or unsure


class Counts(NamedTuple):
    """How many segments of a document are in which state."""

    accepted: int = 0
    doubtful: int = 0
    """Those that want a look; see `Row.is_doubtful`."""


class JobFiles:
    """A folder of one document. No file in it has a name that a client has given."""

    def __init__(self, folder: Path, content: IO[bytes]) -> None:
        """Keep a document; `folder` is made."""
        self.folder = folder
        folder.mkdir(mode=0o700)
        self._document = folder / "document"
        self.result = folder / "result-0"
        """The translated document; each has a name of its own, as Windows replaces none that is being sent."""
        self._results = count(1)
        self._changing = Lock()
        try:
            with self._document.open("xb") as file:
                shutil.copyfileobj(content, file)
        except BaseException:  # such as a full disk, which would stay full
            self.delete()
            raise

    @property
    def content(self) -> bytes:
        """The document as it came."""
        with self._kept():
            return self._document.read_bytes()

    @property
    def size(self) -> int:
        """Bytes of all files that are there: SQLite's journal, for one, comes and goes with every correction."""
        total = 0
        with suppress(OSError), os.scandir(self.folder) as files:
            for file in files:
                with suppress(FileNotFoundError):
                    total += file.stat().st_size
        return total

    def keep(self, result: bytes) -> None:
        """Keep the translated document."""
        new = self.folder / f"result-{next(self._results)}"
        with self._kept():
            try:
                new.write_bytes(result)
            except OSError:  # such as a full disk, which would stay full
                with suppress(OSError):
                    new.unlink()
                raise
        with self._changing:
            before, self.result = self.result, new
            with suppress(OSError):  # there is none; or it is being sent, and Windows removes no file that is open
                before.unlink()

    def sent(self) -> tuple[Iterator[bytes], int]:
        """Open the translated document; return its parts, which are there whatever becomes of the file, and its size.

        Raises:
            GoneError: it was deleted.
        """
        with self._kept(), self._changing:
            file = self.result.open("rb")
        return _parts(file), os.fstat(file.fileno()).st_size

    def delete(self) -> None:
        """Forget all; who is reading meanwhile is told `GoneError`."""
        going = self.folder.with_suffix(".going")
        try:
            self.folder.rename(going)
        except OSError:  # it was deleted before; or a file of it is open, which Windows does not move: the others go
            going = self.folder
        shutil.rmtree(going, ignore_errors=True)

    def begin(self, segments: Sequence[Segment]) -> None:
        """Write the segments down."""
        rows = (
            (i, one.place, one.source.text, _written(one.source.marks), one.existing, one.note, one.longest)
            for i, one in enumerate(segments)
        )
        with self._database("rwc") as database:
            database.execute(_TABLE)
            database.executemany("INSERT INTO segments VALUES (?,?,?,?,?,?,?" + ",NULL" * 5 + ",0)", rows)

    def translated(self, targets: Sequence[tuple[int, Target]]) -> None:
        """Write translations down, by the number of the segment; what a person has written already stays."""
        with self._database() as database:
            database.executemany(
                "UPDATE segments SET target=?, target_marks=?, origin=?, confidence=?, doubts=? "
                "WHERE number=? AND NOT accepted",
                [(*_columns(target), number) for number, target in targets],
            )

    def accept(self, targets: Mapping[int, Target]) -> None:
        """Write down what a person says is right, by the number of the segment."""
        with self._database() as database:
            database.executemany(
                "UPDATE segments SET target=?, target_marks=?, origin=?, confidence=?, doubts=?, accepted=1 "
                "WHERE number=?",
                [(*_columns(target), number) for number, target in targets.items()],
            )

    def counts(self) -> Counts:
        """Return how many segments are accepted, and how many want a look."""
        with self._database() as database:
            ask = f"SELECT count(*) FILTER (WHERE accepted), count(*) FILTER (WHERE {_DOUBTFUL}) FROM segments"
            return Counts(*database.execute(ask).fetchone())

    def rows(self, first: int = 0, count: int = -1, *, doubtful: bool = False) -> list[Row]:
        """Return segments from a number on.

        Args:
            first: number.
            count: how many at most, fewer if they are long; all if it is negative.
            doubtful: only those that look wrong or are rather not good, and that nobody has accepted.
        """
        which = f"AND {_DOUBTFUL}" if doubtful else ""
        with self._database() as database:
            cursor = database.execute(
                f"SELECT * FROM segments WHERE number >= ? {which} ORDER BY number LIMIT ?", (first, count)
            )
            rows: list[Row] = []
            characters = 0
            for columns in cursor:
                rows.append(_row(*columns))
                characters += len(columns[2]) + len(columns[3])  # the source and its marks
                if count >= 0 and characters > MOST_CHARACTERS:
                    break
            return rows

    def targets(self) -> dict[int, Target]:
        """Return the translations by the number of the segment."""
        return {row.number: row.target for row in self.rows() if row.target}

    @contextmanager
    def _database(self, mode: str = "rw") -> Iterator[sqlite3.Connection]:
        # A crash ends the job, so nothing has to outlive one.
        name = f"{(self.folder / 'segments.sqlite').absolute().as_uri()}?mode={mode}"
        with self._kept(), closing(sqlite3.connect(name, uri=True, timeout=30)) as database:
            database.execute("PRAGMA synchronous=OFF")
            with database:
                yield database

    @contextmanager
    def _kept(self) -> Iterator[None]:
        """Within it, a failure is `GoneError` if the document was deleted."""
        try:
            yield
        except (OSError, sqlite3.Error) as error:
            if self.folder.exists():
                raise
            raise GoneError from error


def _parts(file: IO[bytes]) -> Iterator[bytes]:
    with file:
        while part := file.read(1 << 16):
            yield part


def _written(marks: Sequence[Mark]) -> str:
    return json.dumps([[mark.at, mark.raw, mark.side.value, mark.pair] for mark in marks])


def _read(text: str, marks: str) -> TaggedText:
    return TaggedText(text, tuple(Mark(at, raw, Side(side), pair) for at, raw, side, pair in json.loads(marks)))


def _columns(target: Target) -> tuple[Any, ...]:
    doubts = json.dumps(target.doubts)
    return target.marked.text, _written(target.marked.marks), target.origin, target.confidence, doubts


def _row(number: int, place: str, source: str, marks: str, *more: Any) -> Row:
    existing, note, longest, text, target_marks, origin, confidence, doubts, accepted = more
    segment = Segment(_read(source, marks), place, existing, note, longest)
    if text is None:
        return Row(number, segment, None, accepted=False)
    target = Target(_read(text, target_marks), origin, confidence, tuple(json.loads(doubts)))
    return Row(number, segment, target, accepted=bool(accepted))
