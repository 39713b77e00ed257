"""The file of a memory: an SQLite database with our tables and nothing else."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from translucid.ground.errors import UserError
from translucid.ground.reading import refuse_strange
from translucid.memory.postings import TABLES as POSTINGS

ENDING = ".memory"
APPLICATION = 0x54724D6D
"""What the header of the file says that it is for; "TrMm"."""
VERSION = 1
"""Of the tables, and of how words are compared: a file of another one is read as pairs and indexed anew."""
LONGEST = 20_000
"""Characters of a segment, at most."""
WAIT = 600.0
"""Seconds for which a writer waits for another one."""
AGAIN = 0.01
"""Seconds after which it tries again where SQLite does not wait by itself."""
TABLES = (
    """CREATE TABLE segments (id INTEGER PRIMARY KEY, digest INTEGER NOT NULL, key TEXT NOT NULL, source TEXT NOT NULL,
    target TEXT NOT NULL, who TEXT NOT NULL, at INTEGER NOT NULL, change INTEGER NOT NULL)""",
    "CREATE INDEX segments_by_digest ON segments (digest)",
    "CREATE INDEX segments_by_change ON segments (change)",
    "CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    *POSTINGS,
)
"""`digest` is that of the source, `key` stands for its words; `change` counts what was written, one after the other."""


class MemoryBusyError(UserError):
    """Another program writes to the memory, and goes on longer than one is willing to wait."""


_LARGEST_VALUE = 10_000_000
_FIX = "Give a memory that `translucid memory add` wrote, or the corpus."


def is_database(file: Path) -> bool:
    """Whether a file is a memory, or will be, by its name."""
    return file.suffix.lower() == ENDING


def create(file: Path) -> sqlite3.Connection:
    """Make an empty memory, with no journal: a crash leaves something that nobody opens.

    Raises:
        UserError: the file can't be written.
    """
    with explained(file):
        database = sqlite3.connect(file, isolation_level=None)
        database.execute("PRAGMA journal_mode = OFF")
        database.execute("PRAGMA synchronous = OFF")
        database.execute("BEGIN")
        _lay_out(database)
        return database


def connect(file: Path, *, write: bool = False, fixed: bool = False, wait: float = WAIT) -> sqlite3.Connection:
    """Open a memory; one to write to is made if it is not there.

    Args:
        file: with it stand two others while it is open to be written.
        write: whether it is written to.
        fixed: whether nobody writes to it any more.
        wait: seconds to wait for another program that has locked it.

    Raises:
        UserError: it is none, or it can't be opened.
    """
    with explained(file):
        if not write and not file.exists():
            raise UserError("there is no such memory", file=file, fix="Make one: translucid memory add MEMORY FILES.")
        for suffix in ("", "-wal", "-shm"):
            beside = file.with_name(file.name + suffix)
            refuse_strange(beside, beside.parent)
        wal = file.with_name(f"{file.name}-wal")
        fixed = fixed or not (write or wal.exists() or os.access(file.parent, os.W_OK))
        # Who may write clears up behind others that were killed.
        how = "rwc" if write else "rw" if os.access(file, os.W_OK) and not fixed else "ro"
        name = f"{file.absolute().as_uri()}?mode={how}{'&immutable=1' if fixed else ''}"
        database = sqlite3.connect(name, uri=True, timeout=wait, isolation_level=None, check_same_thread=False)
        database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LARGEST_VALUE)
        database.execute("PRAGMA trusted_schema = OFF")
        database.execute("PRAGMA cache_size = -65536")  # KiB
        if write:
            _made(database, wait)
        else:
            database.execute("PRAGMA query_only = ON")
        _refuse_foreign(database, file)
        return database


@contextmanager
def writing(database: sqlite3.Connection) -> Iterator[None]:
    """Within it, nobody else writes; at the end all that was written is there, and after an error nothing of it."""
    database.execute("BEGIN IMMEDIATE")
    try:
        yield
        database.execute("COMMIT")
    except BaseException:
        with suppress(sqlite3.Error):
            database.execute("ROLLBACK")
        raise


@contextmanager
def explained(file: Path) -> Iterator[None]:
    """Within it, say of a memory what SQLite says of it.

    Raises:
        UserError: it is damaged, or can't be read or written.
    """
    try:
        yield
    except sqlite3.OperationalError as error:
        kind = MemoryBusyError if is_busy(error) else UserError
        raise kind(f"can't be used ({error})", file=file, fix="Check the path, make room, or wait.") from error
    except sqlite3.DatabaseError as error:
        raise UserError(f"is no memory, or is damaged ({error})", file=file, fix=_FIX) from error


def is_busy(error: sqlite3.Error) -> bool:
    """Whether somebody else has locked the database; the low byte of an error's code says which kind it is of."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def _made(database: sqlite3.Connection, wait: float) -> None:
    """Lay out what is empty; of two that do so at once the second one finds it done."""
    _go_on_beside_readers(database, wait)
    database.execute("PRAGMA synchronous = FULL")
    if _is_empty(database):  # else nothing is to be written, and nobody who writes is to be waited for
        with writing(database):
            if _is_empty(database):
                _lay_out(database)


def _is_empty(database: sqlite3.Connection) -> bool:
    return not database.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]


def _go_on_beside_readers(database: sqlite3.Connection, wait: float) -> None:
    """Keep a log of what is written, so that readers go on; wait as long as somebody else is at that.

    SQLite waits for other locks by itself, but not for the one that this change of the file needs.
    """
    end = time.monotonic() + wait
    while True:
        try:
            database.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > end:
                raise
        time.sleep(AGAIN)


def _lay_out(database: sqlite3.Connection) -> None:
    for table in TABLES:
        database.execute(table)
    database.execute(f"PRAGMA application_id = {APPLICATION}")
    database.execute(f"PRAGMA user_version = {VERSION}")


def _refuse_foreign(database: sqlite3.Connection, file: Path) -> None:
    """Refuse whatever has not our tables and only those: a stranger's file may have triggers and views."""
    application, version = (database.execute(f"PRAGMA {name}").fetchone()[0] for name in _MARKS)
    if application != APPLICATION:
        raise UserError("is no memory of ours", file=file, fix=_FIX)
    if version != VERSION:
        fix = "Export it as .tmx with the version that made it, and add that to a new one."
        raise UserError(f"is a memory of version {version}, and this is version {VERSION}", file=file, fix=fix)
    found = [row[0] for row in database.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")]
    if sorted(found) != sorted(TABLES):
        raise UserError("has other tables than a memory of ours", file=file, fix=_FIX)


_MARKS = "application_id", "user_version"
