"""An inverted index in SQLite: lists of the segments that have a pair of adjacent words, by the pair and the length.

A text of n words has n + 1 such pairs, including those with its beginning and its end. One edit removes at most two of
them (Ukkonen 1992), so a segment whose similarity is s or more lacks at most 2 (1 - s) n of them. Of any
2 (1 - s) n + 1 pairs, such a segment has at least one, and the rarest pairs have the shortest lists (prefix filtering,
Chaudhuri et al. 2006).
"""

from __future__ import annotations

import math
import sqlite3
from collections import defaultdict
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from bitext.memory.folding import Folded

TABLES = (
    "CREATE TABLE postings (id INTEGER PRIMARY KEY, bucket INTEGER NOT NULL, size INTEGER NOT NULL, ids BLOB NOT NULL)",
    "CREATE INDEX postings_by_bucket ON postings (bucket, size)",
)
"""The tables: a bucket is a hash of pairs of words together with a band of lengths."""
SHORT_LIST = 1 << 10
"""The largest number of segments in a row that is still extended: rows are rewritten as a whole."""
ENOUGH = 50_000
"""The number of postings after which only necessary lists are read."""
TOO_MANY = 1_000_000
"""The largest number of postings that are read, even if a match may be missed."""
MOST = 200
"""The number of candidates that are compared word by word."""
_BANDS = 64


class Postings:
    """The lists of one memory, and postings that have not been written yet."""

    def __init__(self, database: sqlite3.Connection) -> None:
        """Use the lists of a database with the tables."""
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
