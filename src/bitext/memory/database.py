"""The file of a memory: an SQLite database with our tables and nothing else, among them an inverted index.

The index has lists of the segments that have a pair of adjacent words, by the pair and the length. A text of n words
has n + 1 such pairs, including those with its beginning and its end. One edit removes at most two of them (Ukkonen
1992), so a segment whose similarity is s or more lacks at most 2 (1 - s) n of them. Of any 2 (1 - s) n + 1 pairs, such
a segment has at least one, and the rarest pairs have the shortest lists (prefix filtering, Chaudhuri et al. 2006).
"""

from __future__ import annotations

import math
import os
import sqlite3
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from operator import itemgetter
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bitext.errors import UserError
from bitext.memory.match import Folded
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
_POSTINGS = (
    "CREATE TABLE postings (id INTEGER PRIMARY KEY, bucket INTEGER NOT NULL, size INTEGER NOT NULL, ids BLOB NOT NULL)",
    "CREATE INDEX postings_by_bucket ON postings (bucket, size)",
)
"""The tables of the index: a bucket is a hash of pairs of words together with a band of lengths."""
SHORT_LIST = 1 << 10
"""The largest number of segments in a row that is still extended: rows are rewritten as a whole."""
ENOUGH = 50_000
"""The number of postings after which only necessary lists are read."""
TOO_MANY = 1_000_000
"""The largest number of postings that are read, even if a match may be missed."""
MOST = 200
"""The number of candidates that are compared word by word."""
_BANDS = 64
TABLES = (
    """CREATE TABLE segments (id INTEGER PRIMARY KEY, digest INTEGER NOT NULL, key TEXT NOT NULL, source TEXT NOT NULL,
    target TEXT NOT NULL, who TEXT NOT NULL, at INTEGER NOT NULL, change INTEGER NOT NULL)""",
    "CREATE INDEX segments_by_digest ON segments (digest)",
    "CREATE INDEX segments_by_change ON segments (change)",
    "CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    *_POSTINGS,
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


class Postings:
    """The lists of one memory, and postings that have not been written yet."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self.database = database
        self._pending = defaultdict[int, list[int]](list)
        self.pending = 0
        """The number of postings that `flush` has to write."""

    def add(self, number: int, text: Folded) -> None:
        """Add a segment; `flush` writes it."""
        band = _band(len(text.key))
        for pair in text.pairs:
            self._pending[pair * _BANDS + band].append(number)
        self.pending += len(text.pairs)

    def remove(self, number: int, text: Folded) -> None:
        """Remove a segment from the lists within the open transaction; all postings must have been flushed."""
        band = _band(len(text.key))
        for pair in text.pairs:
            sql = "SELECT id, ids FROM postings WHERE bucket = ?"
            for row, ids in self.database.execute(sql, (pair * _BANDS + band,)).fetchall():
                numbers = np.frombuffer(ids, "<u4")
                remaining = numbers[numbers != number]
                if len(remaining) == len(numbers):
                    continue
                if len(remaining):
                    update = "UPDATE postings SET size = ?, ids = ? WHERE id = ?"
                    self.database.execute(update, (len(remaining), remaining.tobytes(), row))
                else:
                    self.database.execute("DELETE FROM postings WHERE id = ?", (row,))

    def flush(self) -> None:
        """Write the added segments within the open transaction."""
        execute = self.database.execute
        select = "SELECT id, size FROM postings WHERE bucket = ? AND size <= ? ORDER BY size LIMIT 1"
        for bucket in sorted(self._pending):
            new_ids = np.array(self._pending[bucket], "<u4")
            if shortest_list := execute(select, (bucket, SHORT_LIST)).fetchone():
                ((ids,),) = execute("SELECT ids FROM postings WHERE id = ?", (shortest_list[0],))
                row = shortest_list[1] + len(new_ids), ids + new_ids.tobytes(), shortest_list[0]
                execute("UPDATE postings SET size = ?, ids = ? WHERE id = ?", row)
            else:
                row = bucket, len(new_ids), new_ids.tobytes()
                execute("INSERT INTO postings (bucket, size, ids) VALUES (?, ?, ?)", row)
        self._pending.clear()
        self.pending = 0

    def candidates(self, text: Folded, min_similarity: float) -> NDArray[np.intp]:
        """Return the segments in the most lists, which may have a similarity of at least `min_similarity`."""
        count = len(text.key)
        bands = _band(math.ceil(min_similarity * count - 1e-9)), _band(math.floor(count / min_similarity + 1e-9))
        lists = sorted((self._rows(pair, *bands) for pair in text.pairs), key=itemgetter(0))
        # The largest number of lists that may lack such a segment.
        max_missing = math.floor(2 * (1 - min_similarity) * count + 1e-9)
        postings_read = 0
        id_lists = list[NDArray[np.uint32]]()
        for postings, rows in lists:
            postings_read += postings
            if (len(id_lists) > max_missing and postings_read > ENOUGH) or postings_read > TOO_MANY:
                break
            id_lists.append(self._ids(rows))
        (highest_id,) = self.database.execute("SELECT max(id) FROM segments").fetchone()
        return _most_frequent(id_lists, max(1, len(id_lists) - max_missing), (highest_id or 0) + 1)

    def _rows(self, pair: int, first: int, last: int) -> tuple[int, list[int]]:
        """Return the number of postings of a pair in a range of bands, and their rows."""
        sql = "SELECT id, size FROM postings INDEXED BY postings_by_bucket WHERE bucket BETWEEN ? AND ?"
        postings, rows = 0, []
        for row, size in self.database.execute(sql, (pair * _BANDS + first, pair * _BANDS + last)):
            postings += size
            rows.append(row)
        return postings, rows

    def _ids(self, rows: list[int]) -> NDArray[np.uint32]:
        """Return the segments in the given rows."""
        parts = []
        for row in rows:
            (ids,) = self.database.execute("SELECT ids FROM postings WHERE id = ?", (row,)).fetchone()
            if not isinstance(ids, bytes) or len(ids) % 4:
                raise sqlite3.DatabaseError("a list is damaged")
            parts.append(ids)
        return np.frombuffer(b"".join(parts), "<u4")


def _most_frequent(lists: list[NDArray[np.uint32]], min_lists: int, size: int) -> NDArray[np.intp]:
    """Return up to `MOST` numbers that are in the most lists; of numbers in equally many lists, the highest.

    Args:
        lists: the lists of numbers, without duplicates in a list.
        min_lists: the smallest number of lists that contain a result.
        size: all numbers must be below it.
    """
    if any(ids.max(initial=0) >= size for ids in lists):
        raise sqlite3.DatabaseError("a list names segments that are not there")
    hits: NDArray[np.unsignedinteger] = np.zeros(size, np.uint8 if len(lists) < 256 else np.uint16)
    for ids in lists:
        hits[ids] += 1  # NumPy would count a duplicate in a list only once.
    candidates = np.flatnonzero(hits >= min_lists)
    if len(candidates) <= MOST:
        return candidates
    rank = hits[candidates].astype(np.int64) * size + candidates
    return candidates[np.argpartition(rank, len(rank) - MOST)[-MOST:]]


def _band(words: int) -> int:
    """Return the index of a band of lengths; each is about 1.4 times as long as the one before."""
    return min(_BANDS - 1, int(2 * math.log2(max(words, 1))))
