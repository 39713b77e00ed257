"""Which segments have a word: lists of their numbers, by word and length, in tables of SQLite.

A text of n words and one of m have at least s max(n, m) words in common if their similarity is s or more: of the n
words at most n - s n are not in the other. So whichever n - s n + 1 of them are looked up, one of them at least is
there, and the rarest ones are in the fewest segments (prefix filtering, Chaudhuri et al. 2006).
"""

from __future__ import annotations

import math
import sqlite3
from collections import defaultdict
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from translucid.memory.folding import Folded

TABLES = (
    "CREATE TABLE postings (id INTEGER PRIMARY KEY, bucket INTEGER NOT NULL, size INTEGER NOT NULL, ids BLOB NOT NULL)",
    "CREATE INDEX postings_by_bucket ON postings (bucket, size)",
)
"""A bucket is of a word and a band of lengths."""
LONGEST_LIST = 1 << 14
"""Segments in a row of a bucket; then there is another row."""
ENOUGH = 20_000
"""Postings beyond which no more words are read than have to be."""
TOO_MANY = 2_000_000
"""Postings that are read at most, even if some match may be missed."""
MOST = 400
"""Candidates that are compared word for word."""
_WIDEST = 63


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
        band = _band(len(text.numbers))
        for word in text.numbers:
            self._waiting[_bucket(word, band)].append(number)
        self.waiting += len(text.numbers)

    def flush(self) -> None:
        """Write what is noted, within the transaction that is open."""
        execute = self.database.execute
        for bucket in sorted(self._waiting):
            new = np.array(self._waiting[bucket], "<u4")
            last = execute("SELECT id, size FROM postings WHERE bucket = ? ORDER BY size LIMIT 1", (bucket,)).fetchone()
            if last and last[1] + len(new) <= LONGEST_LIST:
                ((before,),) = execute("SELECT ids FROM postings WHERE id = ?", (last[0],))
                row = last[1] + len(new), before + new.tobytes(), last[0]
                execute("UPDATE postings SET size = ?, ids = ? WHERE id = ?", row)
                continue
            for first in range(0, len(new), LONGEST_LIST):
                part = new[first : first + LONGEST_LIST]
                execute(
                    "INSERT INTO postings (bucket, size, ids) VALUES (?, ?, ?)", (bucket, len(part), part.tobytes())
                )
        self._waiting.clear()
        self.waiting = 0

    def candidates(self, text: Folded, least: float) -> NDArray[np.uint32]:
        """Return the numbers of segments that may have a similarity of `least` or more, the likeliest first."""
        words = text.numbers
        count = len(words)
        bands = range(_band(max(1, math.ceil(least * count - 1e-9))), _band(int(count / least + 1e-9)) + 1)
        lists = sorted((self._rows(word, bands) for word in words), key=lambda rows: rows.postings)
        missed = count - math.ceil(least * count - 1e-9)
        rows, read, words_read = list[int](), 0, 0
        for of_word in lists:
            if (words_read > missed and read + of_word.postings > ENOUGH) or read + of_word.postings > TOO_MANY:
                break
            rows += of_word.ids
            read += of_word.postings
            words_read += 1
        found, hits = _counted(self._read(rows))
        return _likeliest(found, hits, max(1, words_read - missed))

    def _rows(self, word: int, bands: range) -> _Rows:
        rows = self.database.execute(
            "SELECT id, size FROM postings INDEXED BY postings_by_bucket WHERE bucket BETWEEN ? AND ?",
            (_bucket(word, bands[0]), _bucket(word, bands[-1])),
        ).fetchall()
        return _Rows([row[0] for row in rows], sum(row[1] for row in rows))

    def _read(self, rows: Iterable[int]) -> NDArray[np.uint32]:
        get = self.database.execute
        lists = [get("SELECT ids FROM postings WHERE id = ?", (row,)).fetchone()[0] for row in rows]
        return np.frombuffer(b"".join(lists), "<u4")


class _Rows:
    """The rows of a word."""

    def __init__(self, ids: list[int], postings: int) -> None:
        self.ids, self.postings = ids, postings


def _counted(postings: NDArray[np.uint32]) -> tuple[NDArray[np.uint32], NDArray[np.intp]]:
    """Return the different numbers, and how often each is there."""
    ordered = np.sort(postings)
    first = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]])) if len(ordered) else np.arange(0)
    return ordered[first], np.diff(first, append=len(ordered))


def _likeliest(found: NDArray[np.uint32], hits: NDArray[np.intp], least: int) -> NDArray[np.uint32]:
    """Return those with the most hits, of those with as many the newest; none with fewer than `least`."""
    enough = hits >= least
    found, hits = found[enough], hits[enough]
    if len(found) > MOST:
        kept = np.argpartition(-(hits * (1 << 32) + found), MOST)[:MOST]
        found = found[kept]
    return found


def _band(words: int) -> int:
    """Return the number of a band of lengths, each about 1.4 times as long as the one before."""
    return min(_WIDEST, int(2 * math.log2(max(words, 1))))


def _bucket(word: int, band: int) -> int:
    """Return 62 bits: 56 of the word, and its band."""
    return word << 6 | band
