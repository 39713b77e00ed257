"""The file of a memory: an SQLite database with our tables and nothing else."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from bitext.errors import UserError
from bitext.memory.postings import TABLES as POSTINGS
from bitext.reading import refuse_unsafe

ENDING = ".memory"
APPLICATION = 0x54724D6D
"""SQLite's application id in the header of the file: "TrMm"."""
VERSION = 1
"""The version of the tables and of the comparison of words."""
LONGEST = 20_000
"""The largest number of characters of a segment."""
WAIT = 600.0
"""The number of seconds that a writer waits for another writer."""
RETRY_DELAY = 0.01
"""The number of seconds between attempts where SQLite does not wait itself."""
TABLES = (
    """CREATE TABLE segments (id INTEGER PRIMARY KEY, digest INTEGER NOT NULL, key TEXT NOT NULL, source TEXT NOT NULL,
    target TEXT NOT NULL, who TEXT NOT NULL, at INTEGER NOT NULL, change INTEGER NOT NULL)""",
    "CREATE INDEX segments_by_digest ON segments (digest)",
    "CREATE INDEX segments_by_change ON segments (change)",
    "CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    *POSTINGS,
)
"""The tables: `digest` is that of the source, `key` represents its words, `change` is a serial number of all writes."""


class MemoryBusyError(UserError):
    """Another program has locked the memory for longer than the wait."""


_LARGEST_VALUE = 10_000_000
_FIX = "Give a memory that `translucid memory add` wrote, or the corpus."


def is_database(file: Path) -> bool:
    """Whether a file is a memory by its name; it need not exist."""
    return file.suffix.lower() == ENDING


def create(file: Path) -> sqlite3.Connection:
    """Create an empty memory without a journal: this is fast, but the caller must discard the file after a crash.

    Raises:
        UserError: the file can't be written.
    """
    with explained(file):
        database = sqlite3.connect(file, isolation_level=None)
        database.execute("PRAGMA journal_mode = OFF")
        database.execute("PRAGMA synchronous = OFF")
        database.execute("BEGIN")
        _create_tables(database)
        return database


def connect(file: Path, *, write: bool = False, immutable: bool = False, wait: float = WAIT) -> sqlite3.Connection:
    """Open a memory; a memory to write to is created if it does not exist.

    Args:
        file: the file; SQLite keeps two more files (`-wal`, `-shm`) beside it while it is written.
        write: whether to open it for writing.
        immutable: whether it will never be written again.
        wait: the number of seconds to wait for another program that has locked it.

    Raises:
        UserError: the file is not a memory, or can't be opened.
    """
    with explained(file):
        if not write and not file.exists():
            raise UserError("there is no such memory", file=file, fix="Make one: translucid memory add MEMORY FILES.")
        for suffix in ("", "-wal", "-shm"):
            sibling = file.with_name(file.name + suffix)
            refuse_unsafe(sibling, sibling.parent)
        wal = file.with_name(f"{file.name}-wal")
        # If there is no log, and SQLite cannot create one in the folder, the file is read without locks.
        immutable = immutable or not (write or wal.exists() or os.access(file.parent, os.W_OK))
        mode = "ro"
        if write:
            mode = "rwc"
        elif os.access(file, os.W_OK) and not immutable:
            mode = "rw"  # With write access, SQLite recovers what a killed program left in the log.
        name = f"{file.absolute().as_uri()}?mode={mode}"
        if immutable:
            name += "&immutable=1"
        database = sqlite3.connect(name, uri=True, timeout=wait, isolation_level=None, check_same_thread=False)
        database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LARGEST_VALUE)
        database.execute("PRAGMA trusted_schema = OFF")
        database.execute("PRAGMA cache_size = -65536")  # KiB
        if write:
            _prepare(database, wait)
        else:
            database.execute("PRAGMA query_only = ON")
        _refuse_foreign(database, file)
        return database


@contextmanager
def writing(database: sqlite3.Connection) -> Iterator[None]:
    """Write in one exclusive transaction: everything is written at the end, and nothing after an error."""
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
    """Turn SQLite's errors about a memory into user errors.

    Raises:
        UserError: the memory is damaged, or can't be read or written.
    """
    try:
        yield
    except sqlite3.OperationalError as error:
        # Another program has locked the database; the low byte of an error's code is its kind.
        is_busy = getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
        kind = MemoryBusyError if is_busy else UserError
        raise kind(f"can't be used ({error})", file=file, fix="Check the path, make room, or wait.") from error
    except sqlite3.DatabaseError as error:
        raise UserError(f"is no memory, or is damaged ({error})", file=file, fix=_FIX) from error


def _prepare(database: sqlite3.Connection, wait: float) -> None:
    """Create the tables in an empty database."""
    _use_write_ahead_log(database, wait)
    database.execute("PRAGMA synchronous = FULL")
    if _is_empty(database):  # Checked first without a lock, to avoid waiting for it.
        with writing(database):
            if _is_empty(database):  # Another program may have created the tables in the meantime.
                _create_tables(database)


def _is_empty(database: sqlite3.Connection) -> bool:
    return not database.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]


def _use_write_ahead_log(database: sqlite3.Connection, wait: float) -> None:
    """Switch to a write-ahead log, so that writing does not block readers.

    SQLite waits for other locks itself, but not for the one that this change needs.
    """
    end = time.monotonic() + wait
    while True:
        try:
            database.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > end:
                raise
        time.sleep(RETRY_DELAY)


def _create_tables(database: sqlite3.Connection) -> None:
    for table in TABLES:
        database.execute(table)
    database.execute(f"PRAGMA application_id = {APPLICATION}")
    database.execute(f"PRAGMA user_version = {VERSION}")


def _refuse_foreign(database: sqlite3.Connection, file: Path) -> None:
    """Refuse a database with other tables than ours: an untrusted file may have triggers and views."""
    (application,) = database.execute("PRAGMA application_id").fetchone()
    (version,) = database.execute("PRAGMA user_version").fetchone()
    if application != APPLICATION:
        raise UserError("is no memory of ours", file=file, fix=_FIX)
    if version != VERSION:
        fix = "Export it as .tmx with the version that made it, and add that to a new one."
        raise UserError(f"is a memory of version {version}, and this is version {VERSION}", file=file, fix=fix)
    tables = [sql for (sql,) in database.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")]
    if sorted(tables) != sorted(TABLES):
        raise UserError("has other tables than a memory of ours", file=file, fix=_FIX)
