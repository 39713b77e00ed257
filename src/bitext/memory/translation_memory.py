"""A translation memory: pairs of segments with exact and fuzzy matches by their source; its use and its export."""

from __future__ import annotations

import math
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from threading import RLock
from typing import Any, BinaryIO, Literal, NamedTuple, Self
from xml.sax.saxutils import escape, quoteattr

import numpy as np
from numpy.typing import NDArray

from bitext.errors import UserError
from bitext.languages import Languages, same_language
from bitext.memory.database import LONGEST, WAIT, Postings, connect, create, explained, writing
from bitext.memory.match import EXACT, MIN_PERCENT, UNWRITABLE, Entry, Folded, Match, search_pattern
from bitext.pair import Pair
from bitext.words import normalized_text

MAX_MATCHES = 5
"""The largest number of matches of a text."""
FLUSH_SIZE = 2_000_000
"""The number of postings after which they are written, which limits the main memory that an import needs."""
PROGRESS_STEP = 1000
"""The number of pairs between two progress reports."""
_TIME_LIMIT = 1 << 37
"""The number of seconds since 1970 that the date of an entry must be below."""


_LATEST_CHANGE = "latest change"
"""The fact with the number of the latest change, which may be that of a removed entry."""
Side = Literal["source", "target"]
SIDES: tuple[Side, Side] = ("source", "target")


class Added(NamedTuple):
    """The numbers of pairs by the outcome of adding them."""

    new: int = 0
    changed: int = 0
    """The number of sources that had another translation."""
    same: int = 0
    skipped: int = 0
    """The number of pairs with a side that is empty, longer than `LONGEST`, or has an `UNWRITABLE` character."""


class TranslationMemory:
    """A memory in a file that several threads may use, and several processes may write to."""

    def __init__(self, file: Path, database: sqlite3.Connection) -> None:
        """Use an open database; `open` and `make` open a file."""
        self.file = file
        self._database = database
        self._postings = Postings(database)
        self._lock = RLock()

    @classmethod
    def open(cls, file: Path, *, write: bool = False, immutable: bool = False, wait: float = WAIT) -> Self:
        """Open a memory; the arguments are those of `connect`.

        Raises:
            UserError: the file is not a memory, or can't be opened.
        """
        return cls(file, connect(file, write=write, immutable=immutable, wait=wait))

    @classmethod
    def make(cls, file: Path, pairs: Iterable[Pair], who: str, on_pairs: Callable[[int], None] | None = None) -> Added:
        """Write a memory that will not be written again; the arguments are those of `add`."""
        memory = cls(file, create(file))
        try:
            added = memory._add(pairs, who, on_pairs)
            memory._database.execute("COMMIT")
        finally:
            memory.close()
        return added

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *what: object) -> None:
        self.close()

    def __len__(self) -> int:
        with self._locked():
            return int(self._database.execute("SELECT count(*) FROM segments").fetchone()[0])

    def exact(self, text: str) -> Match | None:
        """Return the entry of a text; only white space may differ."""
        query = normalized_text(text)
        with self._locked():
            row = self._row_of(query)
            return Match(query, self._entry(row[0])) if row else None

    def matches(self, text: str, min_percent: int = MIN_PERCENT, limit: int = MAX_MATCHES) -> list[Match]:
        """Return the entries that are most similar to a text, the best first.

        Args:
            text: the text; a text that is too long for an entry has no match.
            min_percent: the smallest percentage of a match; entries without any word of the text never match.
            limit: the largest number of matches.
        """
        from rapidfuzz import process
        from rapidfuzz.distance import Levenshtein

        query = normalized_text(text)
        if not 0 < len(query) <= LONGEST or limit < 1 or min_percent > 100:
            return []
        folded = Folded(query)
        min_similarity = max(min_percent - 0.5, 0.5) / 100  # Percentages are rounded.
        with self._locked():
            numbers = self._postings.candidates(folded, min_similarity)
            if row := self._row_of(query):  # With too many similar segments, it may be missing from the candidates.
                numbers = np.append(numbers, row[0])
            keys = self._keys(numbers)
            score = Levenshtein.normalized_similarity
            # More than the limit, because the final percentages may order them differently.
            # RapidFuzz drops similarities that exceed its cutoff by less than about 1e-8.
            nearest = process.extract(
                folded.key, keys, scorer=score, score_cutoff=min_similarity - 1e-6, limit=4 * limit
            )
            matches = [Match(query, self._entry(number)) for _, _, number in nearest]
        matches.sort(key=lambda match: (match.percent, match.entry.when), reverse=True)
        return [match for match in matches if match.percent >= min_percent][:limit]

    def add(self, pairs: Iterable[Pair], who: str, on_pairs: Callable[[int], None] | None = None) -> Added:
        """Add all pairs, or none after an error; a new translation replaces the old one of the same source.

        Args:
            pairs: sources and targets.
            who: the author of the translations, or the file that they come from.
            on_pairs: receives the number of pairs added since the last call.

        Raises:
            UserError: the file can't be written.
        """
        # A file name may have bytes that are not UTF-8, which SQLite refuses.
        who = who.encode("utf-8", "replace").decode("utf-8")
        with self._locked(), writing(self._database):
            return self._add(pairs, who, on_pairs)

    def edit(self, source: str, target: str, who: str) -> Entry | None:
        """Replace the translation of a source; return the entry before the change, or None if there is none.

        Raises:
            UserError: the translation is empty or too long, or the file can't be written.
        """
        with self._locked(), writing(self._database):
            if not (row := self._row_of(normalized_text(source))):
                return None
            old_entry = self._entry(row[0])
            if self._add([Pair(source, target)], who, None).skipped:
                what = f"a translation has 1 to {LONGEST:,} characters"
                raise UserError(what, file=self.file, fix="Give another one, or remove the entry.")
            return old_entry

    def remove(self, sources: Iterable[str]) -> list[Entry]:
        """Remove the entries of all given sources, or none of them if one does not exist.

        Returns:
            The removed entries.

        Raises:
            UserError: an entry does not exist, or the file can't be written.
        """
        removed: list[Entry] = []
        with self._locked(), writing(self._database):
            latest = self._latest()
            for source in dict.fromkeys(map(normalized_text, sources)):
                if not (row := self._row_of(source)):
                    fix = "Give the source as `translucid memory find` shows it."
                    raise UserError(f"has no entry of {source!r}", file=self.file, fix=fix)
                removed.append(self._entry(row[0]))
                self._postings.remove(row[0], Folded(source))
                self._database.execute("DELETE FROM segments WHERE id = ?", (row[0],))
            # The next entry must not get the number of a removed one, or `entries(since)` would omit it.
            self._database.execute("INSERT OR REPLACE INTO facts VALUES (?, ?)", (_LATEST_CHANGE, str(latest + 1)))
        return removed

    def find(
        self, text: str, *, sides: Sequence[Side] = SIDES, whole_words: bool = False, seconds: float = math.inf
    ) -> Iterator[Entry]:
        """Yield the entries that contain a text, ignoring case, the newest first (a concordance).

        Args:
            text: a part of a segment; no segment contains a blank text.
            sides: the sides to search.
            whole_words: whether the text must begin and end at the edges of words.
            seconds: the time after which the search ends, so that older entries are missing.
        """
        pattern = search_pattern(text, whole_words=whole_words)
        if pattern is None:
            return
        end = time.monotonic() + seconds
        for number, entry in enumerate(self._entries(1 << 62, "change < ? ORDER BY change DESC")):
            if number % PROGRESS_STEP == 0 and time.monotonic() > end:
                return
            if any(pattern.search(getattr(entry, side)) for side in sides):
                yield entry

    def pairs(self, since: int = 0) -> Iterator[Pair]:
        """Yield the pairs that were added or changed after a `change`, the oldest first."""
        for entry in self.entries(since):
            yield Pair(entry.source, entry.target)

    def entries(self, since: int = 0) -> Iterator[Entry]:
        """Yield the entries that were added or changed after a `change`, the oldest first."""
        return self._entries(since, "change > ? ORDER BY change")

    def _entries(self, change: int, condition: str) -> Iterator[Entry]:
        """Yield the entries before or after a change, in batches, between which other threads may use the memory."""
        sql = f"SELECT source, target, who, at, change FROM segments WHERE {condition} LIMIT 1000"
        while True:
            with self._locked():
                rows = self._database.execute(sql, (change,)).fetchall()
                entries = [_checked(row[:4]) for row in rows]
            if not rows:
                return
            yield from entries
            change = rows[-1][4]

    @property
    def change(self) -> int:
        """The number of the latest change."""
        with self._locked():
            return self._latest()

    @property
    def state(self) -> str:
        """A string that differs between memories with different entries."""
        with self._locked():
            sql = "SELECT count(*), max(change), total(digest) FROM segments"
            return " ".join(map(str, self._database.execute(sql).fetchone()))

    def facts(self) -> dict[str, str]:
        """Return the facts about the whole memory by name, such as its languages."""
        with self._locked():
            facts = self._database.execute("SELECT name, value FROM facts LIMIT 10000").fetchall()
        return {str(name): str(value) for name, value in facts if name != _LATEST_CHANGE}

    def note(self, facts: Mapping[str, str]) -> None:
        """Store facts about the whole memory."""
        with self._locked(), writing(self._database):
            self._database.executemany("INSERT OR REPLACE INTO facts VALUES (?, ?)", [*facts.items()])

    @property
    def languages(self) -> Languages:
        """The codes of the source and the target language, if they are known."""
        facts = self.facts()
        return facts.get("source language"), facts.get("target language")

    def refuse_other_languages(self, languages: Languages) -> None:
        """Check that the memory may be used for a language pair.

        Raises:
            UserError: the memory has other languages.
        """
        for side, language, code in zip(("source", "target"), self.languages, languages, strict=True):
            if language and code and not same_language(language, code):
                what = f"has the {side} language {language}, not {code}"
                raise UserError(what, file=self.file, fix="Give a memory of the languages that are translated.")

    def by_origin(self) -> list[tuple[str, int, int]]:
        """Return the authors, each with the number of entries and the time of the latest."""
        origins = []
        with self._locked():
            sql = "SELECT '', '', who, max(at), count(*) FROM segments GROUP BY who ORDER BY count(*) DESC LIMIT 1000"
            for row in self._database.execute(sql):
                entry = _checked(row[:4])
                origins.append((entry.who, row[4], entry.when))
        return origins

    def _add(self, pairs: Iterable[Pair], who: str, on_pairs: Callable[[int], None] | None) -> Added:
        counts = Counter[str]()
        latest, timestamp = self._latest(), int(time.time())
        try:
            for number, (source, target) in enumerate(pairs, 1):
                latest += 1
                counts[self._add_pair(normalized_text(source), normalized_text(target), who, timestamp, latest)] += 1
                if self._postings.pending >= FLUSH_SIZE:
                    self._postings.flush()
                if on_pairs and number % PROGRESS_STEP == 0:
                    on_pairs(PROGRESS_STEP)
            self._postings.flush()
        except BaseException:
            # The transaction is rolled back, so discard the postings that are not written, too.
            self._postings = Postings(self._database)
            raise
        return Added(**counts)

    def _add_pair(self, source: str, target: str, who: str, timestamp: int, change: int) -> str:
        """Add a pair; return the field of `Added` that counts it."""
        if not (0 < len(source) <= LONGEST and 0 < len(target) <= LONGEST):
            return "skipped"
        if UNWRITABLE.search(source) or UNWRITABLE.search(target):
            return "skipped"
        execute = self._database.execute
        if row := self._row_of(source):
            if row[1] == target:
                return "same"
            update = "UPDATE segments SET target = ?, who = ?, at = ?, change = ? WHERE id = ?"
            execute(update, (target, who, timestamp, change, row[0]))
            return "changed"
        folded = Folded(source)
        insert = "INSERT INTO segments (digest, key, source, target, who, at, change) VALUES (?, ?, ?, ?, ?, ?, ?)"
        row_number = execute(insert, (_digest(source), folded.key, source, target, who, timestamp, change)).lastrowid
        assert row_number is not None
        self._postings.add(row_number, folded)
        return "new"

    def _row_of(self, source: str) -> tuple[int, str] | None:
        """Return the number and the target of a source's entry, if there is one."""
        sql = "SELECT id, target FROM segments WHERE digest = ? AND source = ?"
        return self._database.execute(sql, (_digest(source), source)).fetchone()

    def _entry(self, number: int) -> Entry:
        row = self._database.execute("SELECT source, target, who, at FROM segments WHERE id = ?", (number,)).fetchone()
        return _checked(row)

    def _keys(self, numbers: NDArray[np.intp]) -> dict[int, str]:
        placeholders = ",".join("?" * len(numbers))
        keys = dict(
            self._database.execute(f"SELECT id, key FROM segments WHERE id IN ({placeholders})", numbers.tolist())
        )
        if not all(isinstance(key, str) for key in keys.values()):
            raise sqlite3.DatabaseError("a key is damaged")
        return keys

    def _latest(self) -> int:
        latest = self._database.execute("SELECT max(change) FROM segments").fetchone()[0] or 0
        row = self._database.execute("SELECT value FROM facts WHERE name = ?", (_LATEST_CHANGE,)).fetchone()
        recorded = row[0] if row else 0
        if not isinstance(latest, int) or not str(recorded).isdecimal():
            raise sqlite3.DatabaseError("the number of the latest change is damaged")
        return max(latest, int(recorded))

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with self._lock, explained(self.file):
            yield


def _checked(row: tuple[Any, ...]) -> Entry:
    """Return an entry after a check of its types, because a column of SQLite may contain values of any type."""
    if tuple(map(type, row)) != (str, str, str, int) or not 0 <= row[3] < _TIME_LIMIT:
        raise sqlite3.DatabaseError("an entry is damaged")
    return Entry(*row)


def _digest(source: str) -> int:
    digest = blake2b(source.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True)


class Recall:
    """A memory and the percentage from which its matches replace translations."""

    def __init__(
        self,
        memory: TranslationMemory,
        use_from: int = EXACT,
        accepts: Callable[[str, str], bool] = lambda source, target: True,
    ) -> None:
        """Use matches of `memory` of at least `use_from` percent whose source and target a function accepts."""
        self.memory, self.use_from, self.accepts = memory, use_from, accepts

    def replacement(self, text: str) -> Match | None:
        """Return the match to use instead of a translation, if there is one with the right numbers and placeholders."""
        if self.use_from >= EXACT:
            match = self.memory.exact(text)
            if match is None or self.accepts(match.entry.source, match.target):
                return match
        for match in self.memory.matches(text, self.use_from, MAX_MATCHES):
            if match.has_right_numbers and self.accepts(match.entry.source, match.target):
                return match
        return None

    def suggestions(self, text: str) -> list[Match]:
        """Return the best matches to show, including the one that is used."""
        return self.memory.matches(text, min(MIN_PERCENT, self.use_from), MAX_MATCHES)


def write_tsv(memory: TranslationMemory, stream: BinaryIO, advance: Callable[[int], None]) -> None:
    """Write a line for each entry; its texts have neither tabs nor line ends."""
    for entry in _counted(memory, advance):
        stream.write(f"{_clean(entry.source)}\t{_clean(entry.target)}\n".encode())


def write_tmx(
    memory: TranslationMemory,
    stream: BinaryIO,
    languages: tuple[str, str],
    advance: Callable[[int], None],
    version: str,
) -> None:
    """Write a unit for each entry, with its author and date.

    Args:
        memory: the memory.
        stream: the stream to write to.
        languages: the codes of the source and the target language.
        advance: receives the number of entries written since the last call.
        version: the version of the program, for the header.
    """
    source, target = map(quoteattr, languages)
    stream.write(
        '<?xml version="1.0" encoding="UTF-8"?>\n<tmx version="1.4">\n<header creationtool="translucid" '
        f'creationtoolversion="{version}" segtype="sentence" o-tmf="translucid" adminlang="en" '
        f'srclang={source} datatype="plaintext"/>\n<body>\n'.encode()
    )
    for entry in _counted(memory, advance):
        when = datetime.fromtimestamp(entry.when, UTC).strftime("%Y%m%dT%H%M%SZ")
        who = f" changeid={quoteattr(_clean(entry.who))}" if entry.who else ""
        stream.write(
            f'<tu changedate="{when}"{who}>'
            f"<tuv xml:lang={source}><seg>{escape(_clean(entry.source))}</seg></tuv>"
            f"<tuv xml:lang={target}><seg>{escape(_clean(entry.target))}</seg></tuv></tu>\n".encode()
        )
    stream.write(b"</body>\n</tmx>\n")


def export_languages(memory: TranslationMemory, languages: Languages) -> Languages:
    """Return language codes, completed by those of the memory."""
    recorded = memory.languages
    return languages[0] or recorded[0], languages[1] or recorded[1]


def _counted(memory: TranslationMemory, advance: Callable[[int], None]) -> Iterator[Entry]:
    """Yield the entries of a memory, and report progress."""
    for number, entry in enumerate(memory.entries(), 1):
        yield entry
        if number % PROGRESS_STEP == 0:
            advance(PROGRESS_STEP)


def _clean(text: str) -> str:
    """Replace characters that XML 1.0 forbids, which a memory of an older version may contain."""
    return UNWRITABLE.sub("\ufffd", text)
