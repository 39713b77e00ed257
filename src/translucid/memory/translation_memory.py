"""A translation memory: pairs of segments, found by their source, exactly or nearly."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from threading import RLock
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from rapidfuzz import process
from rapidfuzz.distance import Levenshtein

from translucid.data.languages import Languages, same_language
from translucid.data.readers.corpus import Pair
from translucid.ground.errors import UserError
from translucid.memory.database import LONGEST, WAIT, connect, create, explained, writing
from translucid.memory.folding import UNWRITABLE, Folded, found_in, spaced
from translucid.memory.match import LEAST, Entry, Match
from translucid.memory.postings import Postings

SHOWN = 5
"""Matches of a text, at most."""
PART = 2_000_000
"""Postings that are written together: what bounds the memory of an import."""
TELL = 1000
"""Pairs after which progress is told."""
_LATEST = 1 << 37
"""Seconds since 1970 that no entry is as late as; what is later is no date."""


_LATEST_CHANGE = "latest change"
"""The fact that says how many changes there were, where the entries of the latest ones have been removed."""
Side = Literal["source", "target"]
SIDES: tuple[Side, Side] = ("source", "target")


class Added(NamedTuple):
    """What became of pairs that were added."""

    new: int = 0
    changed: int = 0
    """Whose source was there with another translation."""
    same: int = 0
    skipped: int = 0
    """That have an empty side, or a longer one than `LONGEST`, or a character that is `UNWRITABLE`."""


class TranslationMemory:
    """One in a file. It may be used by several threads, and written to by several processes."""

    def __init__(self, file: Path, database: sqlite3.Connection) -> None:
        """See `open` and `made_of`."""
        self.file = file
        self._database = database
        self._postings = Postings(database)
        self._lock = RLock()

    @classmethod
    def open(cls, file: Path, *, write: bool = False, fixed: bool = False, wait: float = WAIT) -> Self:
        """Open a memory; see `connect`.

        Raises:
            UserError: it is none, or it can't be opened.
        """
        return cls(file, connect(file, write=write, fixed=fixed, wait=wait))

    @classmethod
    def make(cls, file: Path, pairs: Iterable[Pair], who: str, on_pairs: Callable[[int], None] | None = None) -> Added:
        """Write a memory that nobody will write to; see `add`."""
        memory = cls(file, create(file))
        try:
            added = memory._add(pairs, who, on_pairs)
            memory._database.execute("COMMIT")
        finally:
            memory.close()
        return added

    def close(self) -> None:
        """Leave the file as it is."""
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *what: object) -> None:
        self.close()

    def __len__(self) -> int:
        with self._asked():
            return int(self._database.execute("SELECT count(*) FROM segments").fetchone()[0])

    def exact(self, text: str) -> Match | None:
        """Return the entry of a text, which is the same but for spaces."""
        wanted = spaced(text)
        with self._asked():
            row = self._row_of(wanted)
            return Match(wanted, self._entry(row[0])) if row else None

    def matches(self, text: str, least: int = LEAST, most: int = SHOWN) -> list[Match]:
        """Return the entries that are most like a text, the best first.

        Args:
            text: of any length; one that is too long for an entry has no match.
            least: percent of its words that a match has at least; one that shares no words with it is none.
            most: that are returned.
        """
        wanted = spaced(text)
        if not 0 < len(wanted) <= LONGEST or most < 1 or least > 100:
            return []
        folded = Folded(wanted)
        share = max(least - 0.5, 0.5) / 100  # percents are rounded
        with self._asked():
            numbers = self._postings.candidates(folded, share)
            if row := self._row_of(wanted):  # among too many alike it might be left out
                numbers = np.append(numbers, row[0])
            keys = self._keys(numbers)
            score = Levenshtein.normalized_similarity
            found = process.extract(folded.key, keys, scorer=score, score_cutoff=share - 1e-9, limit=4 * most)
            alike = [Match(wanted, self._entry(number)) for _, _, number in found]
        best = sorted(alike, key=lambda match: (match.percent, match.entry.when), reverse=True)
        return [match for match in best if match.percent >= least][:most]

    def add(self, pairs: Iterable[Pair], who: str, on_pairs: Callable[[int], None] | None = None) -> Added:
        """Add pairs, all of them or, if anything happens, none; of one source the newest translation stays.

        Args:
            pairs: sources and targets.
            who: has translated them, or the file that they are from.
            on_pairs: told how many more are done.

        Raises:
            UserError: the file can't be written.
        """
        # The name of a file may have bytes that are no UTF-8, which SQLite does not take.
        who = who.encode("utf-8", "replace").decode("utf-8")
        with self._asked(), writing(self._database):
            return self._add(pairs, who, on_pairs)

    def edit(self, source: str, target: str, who: str) -> Entry | None:
        """Give the entry of a source another translation; return the entry as it was, None if there is none.

        Raises:
            UserError: the translation is empty or too long, or the file can't be written.
        """
        with self._asked(), writing(self._database):
            if not (row := self._row_of(spaced(source))):
                return None
            before = self._entry(row[0])
            if self._add([Pair(source, target)], who, None).skipped:
                what = f"a translation has 1 to {LONGEST:,} characters"
                raise UserError(what, file=self.file, fix="Give another one, or remove the entry.")
            return before

    def remove(self, sources: Iterable[str]) -> list[Entry]:
        """Remove the entries of some sources, all of them or, if one of them is not there, none.

        Returns:
            What was removed.

        Raises:
            UserError: one is not there, or the file can't be written.
        """
        removed: list[Entry] = []
        with self._asked(), writing(self._database):
            latest = self._latest()
            for source in dict.fromkeys(map(spaced, sources)):
                if not (row := self._row_of(source)):
                    fix = "Give the source as `translucid memory find` shows it."
                    raise UserError(f"has no entry of {source!r}", file=self.file, fix=fix)
                removed.append(self._entry(row[0]))
                self._postings.remove(row[0], Folded(source))
                self._database.execute("DELETE FROM segments WHERE id = ?", (row[0],))
            # The next entry must not get the number of one that is gone, or `entries(since)` leaves it out.
            self._database.execute("INSERT OR REPLACE INTO facts VALUES (?, ?)", (_LATEST_CHANGE, str(latest + 1)))
        return removed

    def find(self, text: str, *, sides: Sequence[Side] = SIDES, whole_words: bool = False) -> Iterator[Entry]:
        """Yield the entries that have a text in them, whatever its case, the newest first (a concordance).

        Args:
            text: part of a segment; one that is blank is in none.
            sides: where it is looked for.
            whole_words: whether it begins and ends where words do.
        """
        pattern = found_in(text, whole_words=whole_words)
        if pattern is None:
            return
        ask = "SELECT source, target, who, at, change FROM segments WHERE change < ? ORDER BY change DESC LIMIT 1000"
        before = 1 << 62
        while True:
            with self._asked():
                rows = self._database.execute(ask, (before,)).fetchall()
                entries = [_sound(row[:4]) for row in rows]
            if not rows:
                return
            for entry in entries:
                if any(pattern.search(getattr(entry, side)) for side in sides):
                    yield entry
            before = rows[-1][4]

    def pairs(self, since: int = 0) -> Iterator[Pair]:
        """Yield the pairs that were added or changed after a `change`, the oldest first."""
        for entry in self.entries(since):
            yield Pair(entry.source, entry.target)

    def entries(self, since: int = 0) -> Iterator[Entry]:
        """Yield the same with who and when."""
        ask = "SELECT source, target, who, at, change FROM segments WHERE change > ? ORDER BY change LIMIT 1000"
        while True:
            with self._asked():
                rows = self._database.execute(ask, (since,)).fetchall()
            if not rows:
                return
            yield from (_sound(row[:4]) for row in rows)
            since = rows[-1][4]

    @property
    def change(self) -> int:
        """The number of the latest change."""
        with self._asked():
            return self._latest()

    @property
    def state(self) -> str:
        """What tells memories of other entries apart."""
        with self._asked():
            ask = "SELECT count(*), max(change), total(digest) FROM segments"
            return " ".join(map(str, self._database.execute(ask).fetchone()))

    def facts(self) -> dict[str, str]:
        """Return what is noted of the memory as a whole, by name."""
        with self._asked():
            facts = self._database.execute("SELECT name, value FROM facts LIMIT 10000").fetchall()
        return {str(name): str(value) for name, value in facts if name != _LATEST_CHANGE}

    def note(self, facts: Mapping[str, str]) -> None:
        """Note something of the memory as a whole."""
        with self._asked(), writing(self._database):
            self._database.executemany("INSERT OR REPLACE INTO facts VALUES (?, ?)", [*facts.items()])

    @property
    def languages(self) -> Languages:
        """Codes of source and target, if they are noted."""
        facts = self.facts()
        return facts.get("source language"), facts.get("target language")

    def refuse_other_languages(self, wanted: Languages) -> None:
        """Check that the memory can be of some languages.

        Raises:
            UserError: it is of others.
        """
        for side, ours, code in zip(("source", "target"), self.languages, wanted, strict=True):
            if ours and code and not same_language(ours, code):
                what = f"has the {side} language {ours}, not {code}"
                raise UserError(what, file=self.file, fix="Give a memory of the languages that are translated.")

    def by_origin(self) -> list[tuple[str, int, int]]:
        """Return who entries are from, how many, and when the latest of them was added."""
        with self._asked():
            ask = "SELECT '', '', who, max(at), count(*) FROM segments GROUP BY who ORDER BY count(*) DESC LIMIT 1000"
            rows = [(_sound(row[:4]), row[4]) for row in self._database.execute(ask)]
            return [(entry.who, count, entry.when) for entry, count in rows]

    def _add(self, pairs: Iterable[Pair], who: str, on_pairs: Callable[[int], None] | None) -> Added:
        counts = {"new": 0, "changed": 0, "same": 0, "skipped": 0}
        latest, now = self._latest(), int(time.time())
        try:
            for number, (given, target) in enumerate(pairs, 1):
                latest += 1
                counts[self._added(spaced(given), spaced(target), who, now, latest)] += 1
                if self._postings.waiting >= PART:
                    self._postings.flush()
                if on_pairs and number % TELL == 0:
                    on_pairs(TELL)
            self._postings.flush()
        except BaseException:
            self._postings = Postings(self._database)
            raise
        return Added(**counts)

    def _added(self, source: str, target: str, who: str, now: int, change: int) -> str:
        """Add a pair; return what became of it."""
        if not (0 < len(source) <= LONGEST and 0 < len(target) <= LONGEST):
            return "skipped"
        if UNWRITABLE.search(source) or UNWRITABLE.search(target):
            return "skipped"
        execute = self._database.execute
        if row := self._row_of(source):
            if row[1] == target:
                return "same"
            update = "UPDATE segments SET target = ?, who = ?, at = ?, change = ? WHERE id = ?"
            execute(update, (target, who, now, change, row[0]))
            return "changed"
        folded = Folded(source)
        insert = "INSERT INTO segments (digest, key, source, target, who, at, change) VALUES (?, ?, ?, ?, ?, ?, ?)"
        row_number = execute(insert, (_digest(source), folded.key, source, target, who, now, change)).lastrowid
        assert row_number is not None
        self._postings.add(row_number, folded)
        return "new"

    def _row_of(self, source: str) -> tuple[int, str] | None:
        """Return the number and the target of the entry of a source."""
        ask = "SELECT id, target FROM segments WHERE digest = ? AND source = ?"
        return self._database.execute(ask, (_digest(source), source)).fetchone()

    def _entry(self, number: int) -> Entry:
        row = self._database.execute("SELECT source, target, who, at FROM segments WHERE id = ?", (number,)).fetchone()
        return _sound(row)

    def _keys(self, numbers: NDArray[np.intp]) -> dict[int, str]:
        marks = ",".join("?" * len(numbers))
        keys = dict(self._database.execute(f"SELECT id, key FROM segments WHERE id IN ({marks})", numbers.tolist()))
        if not all(isinstance(key, str) for key in keys.values()):
            raise sqlite3.DatabaseError("a key is damaged")
        return keys

    def _latest(self) -> int:
        latest = self._database.execute("SELECT max(change) FROM segments").fetchone()[0] or 0
        noted = self._database.execute("SELECT value FROM facts WHERE name = ?", (_LATEST_CHANGE,)).fetchone()
        if not (isinstance(latest, int) and (noted is None or str(noted[0]).isdecimal())):
            raise sqlite3.DatabaseError("the number of the latest change is damaged")
        return max(latest, int(noted[0]) if noted else 0)

    @contextmanager
    def _asked(self) -> Iterator[None]:
        with self._lock, explained(self.file):
            yield


def _sound(row: tuple[Any, ...]) -> Entry:
    """Return an entry; in a column of SQLite may stand anything."""
    if not (all(isinstance(text, str) for text in row[:3]) and isinstance(row[3], int) and 0 <= row[3] < _LATEST):
        raise sqlite3.DatabaseError("an entry is damaged")
    return Entry(*row)


def _digest(source: str) -> int:
    return int.from_bytes(
        blake2b(source.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little", signed=True
    )
