"""Which segments have two words side by side: lists of their numbers, by words and length, in tables of SQLite.

A text of n words has n + 1 such pairs, those with its beginning and its end included. One edit takes away two of them
at most (Ukkonen 1992), so at most 2 (1 - s) n of them are not in a segment whose similarity is s or more. Whichever
2 (1 - s) n + 1 of them are looked up, one at least is there, and the rarest ones are in the fewest segments (prefix
filtering, Chaudhuri et al. 2006).
"""

from __future__ import annotations

import math
import sqlite3
from collections import defaultdict

import numpy as np
from numpy.typing import NDArray

from translucid.memory.folding import Folded

TABLES = (
    "CREATE TABLE postings (id INTEGER PRIMARY KEY, bucket INTEGER NOT NULL, size INTEGER NOT NULL, ids BLOB NOT NULL)",
    "CREATE INDEX postings_by_bucket ON postings (bucket, size)",
)
"""A bucket is of a number that some pairs of words have, and of a band of lengths."""
SHORT_LIST = 1 << 10
"""Segments in a row up to which it is written anew with more; then there is another row."""
ENOUGH = 50_000
"""Postings beyond which no more lists are read than have to be."""
TOO_MANY = 1_000_000
"""Postings that are read at most, even if some match may be missed."""
MOST = 200
"""Candidates that are compared word for word."""
_BANDS = 64


class Postings:
    """The lists of one memory, and what is not written into them yet."""

    def __init__(self, database: sqlite3.Connection) -> None:
        """`database` has the tables."""
        self.database = database
        self._waiting = defaultdict[int, list[int]](list)
        self.waiting = 0
        """Postings that `flush` has to write."""

    def add(self, number: int, text: Folded) -> None:
        """Note the words of a segment."""
        band = _band(len(text.key))
        for pair in text.pairs:
            self._waiting[pair * _BANDS + band].append(number)
        self.waiting += len(text.pairs)

    def remove(self, number: int, text: Folded) -> None:
        """Take a segment out of the lists of its words, within the transaction that is open; nothing may be waiting."""
        band = _band(len(text.key))
        for pair in text.pairs:
            ask = "SELECT id, ids FROM postings WHERE bucket = ?"
            for row, ids in self.database.execute(ask, (pair * _BANDS + band,)).fetchall():
                numbers = np.frombuffer(ids, "<u4")
                left = numbers[numbers != number]
                if len(left) == len(numbers):
                    continue
                if len(left):
                    update = "UPDATE postings SET size = ?, ids = ? WHERE id = ?"
                    self.database.execute(update, (len(left), left.tobytes(), row))
                else:
                    self.database.execute("DELETE FROM postings WHERE id = ?", (row,))

    def flush(self) -> None:
        """Write what is noted, within the transaction that is open."""
        execute = self.database.execute
        shortest = "SELECT id, size FROM postings WHERE bucket = ? AND size <= ? ORDER BY size LIMIT 1"
        for bucket in sorted(self._waiting):
            new = np.array(self._waiting[bucket], "<u4")
            if last := execute(shortest, (bucket, SHORT_LIST)).fetchone():
                ((before,),) = execute("SELECT ids FROM postings WHERE id = ?", (last[0],))
                row = last[1] + len(new), before + new.tobytes(), last[0]
                execute("UPDATE postings SET size = ?, ids = ? WHERE id = ?", row)
            else:
                row = bucket, len(new), new.tobytes()
                execute("INSERT INTO postings (bucket, size, ids) VALUES (?, ?, ?)", row)
        self._waiting.clear()
        self.waiting = 0

    def candidates(self, text: Folded, least: float) -> NDArray[np.intp]:
        """Return the numbers of segments that may have a similarity of `least` or more, those with the most pairs."""
        count = len(text.key)
        bands = _band(math.ceil(least * count - 1e-9)), _band(math.floor(count / least + 1e-9))
        lists = sorted((self._rows(pair, *bands) for pair in text.pairs), key=lambda rows: rows.postings)
        missed = math.floor(2 * (1 - least) * count + 1e-9)
        read = 0
        chosen = list[_Rows]()
        for rows in lists:
            read += rows.postings
            if (len(chosen) > missed and read > ENOUGH) or read > TOO_MANY:
                break
            chosen.append(rows)
        return _likeliest([self._ids(rows.numbers) for rows in chosen], max(1, len(chosen) - missed), self._size())

    def _rows(self, pair: int, first: int, last: int) -> _Rows:
        rows = self.database.execute(
            "SELECT id, size FROM postings INDEXED BY postings_by_bucket WHERE bucket BETWEEN ? AND ?",
            (pair * _BANDS + first, pair * _BANDS + last),
        ).fetchall()
        return _Rows([number for number, _ in rows], sum(size for _, size in rows))

    def _ids(self, rows: list[int]) -> NDArray[np.uint32]:
        get = self.database.execute
        parts = [get("SELECT ids FROM postings WHERE id = ?", (row,)).fetchone()[0] for row in rows]
        if not all(isinstance(part, bytes) and len(part) % 4 == 0 for part in parts):
            raise sqlite3.DatabaseError("a list is damaged")
        return np.frombuffer(b"".join(parts), "<u4")

    def _size(self) -> int:
        """Return the number of the last segment, and one more."""
        return (self.database.execute("SELECT max(id) FROM segments").fetchone()[0] or 0) + 1


class _Rows:
    """The rows of a pair of words."""

    def __init__(self, numbers: list[int], postings: int) -> None:
        self.numbers, self.postings = numbers, postings


def _likeliest(lists: list[NDArray[np.uint32]], least: int, size: int) -> NDArray[np.intp]:
    """Return the numbers that are in the most lists, of those in as many the highest; none in fewer than `least`.

    `size`: all of them are below it.
    """
    if any(ids.max(initial=0) >= size for ids in lists):
        raise sqlite3.DatabaseError("a list names segments that are not there")
    hits: NDArray[np.unsignedinteger] = np.zeros(size, np.uint8 if len(lists) < 256 else np.uint16)
    for ids in lists:
        hits[ids] += 1  # each is in a list once
    found = np.flatnonzero(hits >= least)
    if len(found) <= MOST:
        return found
    rank = hits[found].astype(np.int64) * size + found
    return found[np.argpartition(rank, len(rank) - MOST)[-MOST:]]


def _band(words: int) -> int:
    """Return the number of a band of lengths, each about 1.4 times as long as the one before."""
    return min(_BANDS - 1, int(2 * math.log2(max(words, 1))))
