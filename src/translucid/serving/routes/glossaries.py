"""Glossaries as clients of DeepL's API make them; in memory, a bounded number of bounded ones.

One that nobody uses for a week expires. Where there is no room for another one, the client that has most of them loses
the one it has used longest ago: a few clients can't keep all others out.
"""

from __future__ import annotations

import csv
import threading
import time
import uuid
from collections import Counter, OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from translucid.data.languages import same_language
from translucid.serving.edge.failures import ApiError

MOST, SHARE = 200, 50
"""Glossaries, and those of one client."""
LIFETIME = 7 * 24 * 60 * 60
"""Seconds without use after which one expires."""
ENTRIES = 5000
"""Of one."""
DICTIONARIES = 100
"""Likewise."""
LONGEST = 500
"""Characters of a term."""


@dataclass(frozen=True)
class Dictionary:
    """Terms of one language and their translations into another."""

    source: str
    """Language, as the API writes it: `EN`."""
    target: str
    entries: dict[str, str]

    @property
    def information(self) -> dict[str, Any]:
        """All but the entries, as the API says it."""
        return {
            "source_lang": self.source.lower(),
            "target_lang": self.target.lower(),
            "entry_count": len(self.entries),
        }

    @property
    def tsv(self) -> str:
        """The entries, one a line."""
        return "".join(f"{source}\t{target}\n" for source, target in self.entries.items())

    def translates(self, source: str, target: str) -> bool:
        """Whether it is for these languages."""
        return same_language(self.source, source) and same_language(self.target, target)


@dataclass(frozen=True)
class Glossary:
    """Dictionaries of one client under one name; version 2 of the API makes those of one dictionary."""

    client: str
    name: str
    dictionaries: tuple[Dictionary, ...]
    id: str = field(default_factory=lambda: str(uuid.uuid4()))
    created: datetime = field(default_factory=lambda: datetime.now(UTC))

    @property
    def information(self) -> dict[str, Any]:
        """All but the entries, as version 3 of the API says it."""
        return {
            "glossary_id": self.id,
            "name": self.name,
            "dictionaries": [one.information for one in self.dictionaries],
            "creation_time": self.created.isoformat(timespec="microseconds"),
        }

    @property
    def monolingual_information(self) -> dict[str, Any]:
        """The same of its only dictionary, as version 2 says it."""
        (dictionary,) = self.dictionaries
        return {
            "glossary_id": self.id,
            "name": self.name,
            "ready": True,
            **dictionary.information,
            "creation_time": self.created.isoformat(timespec="microseconds"),
        }

    def find(self, source: str, target: str) -> Dictionary | None:
        """Return the dictionary for two languages, if there is one."""
        return next((one for one in self.dictionaries if one.translates(source, target)), None)

    def with_dictionary(self, new: Dictionary) -> Glossary:
        """Return it with another dictionary for the languages of that one."""
        others = self.without_dictionary(new.source, new.target).dictionaries
        return replace(self, dictionaries=(*others, new))

    def without_dictionary(self, source: str, target: str) -> Glossary:
        """Return it without the dictionary for two languages."""
        others = tuple(one for one in self.dictionaries if not one.translates(source, target))
        return replace(self, dictionaries=others)


class Glossaries:
    """All glossaries; each client sees its own."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """`clock`: tells the time in seconds."""
        self.lock = threading.RLock()
        self.clock = clock
        self.all: OrderedDict[str, Glossary] = OrderedDict()
        """By id, the one used longest ago first."""
        self.used: dict[str, float] = {}
        """When each was used last."""

    def add(self, glossary: Glossary) -> None:
        """Keep one; another client may lose one for it.

        Raises:
            ApiError: 456, this client has too many.
        """
        with self.lock:
            self._expire()
            counts = Counter(one.client for one in self.all.values())
            own = counts[glossary.client]
            if own < SHARE and len(self.all) >= MOST:
                client, most = counts.most_common(1)[0]
                if most > own:
                    self._forget(next(key for key, one in self.all.items() if one.client == client))
            if own >= SHARE or len(self.all) >= MOST:
                raise ApiError(456, "Too many glossaries: delete one first")
            self.all[glossary.id] = glossary
            self.used[glossary.id] = self.clock()

    def of(self, client: str) -> list[Glossary]:
        """Return those of a client, the oldest first."""
        with self.lock:
            self._expire()
            found = [one for one in self.all.values() if one.client == client]
        return sorted(found, key=lambda one: one.created)

    def find(self, client: str, key: str) -> Glossary:
        """Return one of a client's by its id.

        Raises:
            ApiError: 404, there is none.
        """
        with self.lock:
            self._expire()
            found = self.all.get(key)
            if found is None or found.client != client:
                raise ApiError(404, "Glossary not found")
            self.all.move_to_end(key)
            self.used[key] = self.clock()
            return found

    def change(self, client: str, key: str, changed: Callable[[Glossary], Glossary]) -> Glossary:
        """Keep what `changed` makes of one, and return it; errors as of `find`.

        Raises:
            ApiError: 400, it has too many entries then.
        """
        with self.lock:
            glossary = changed(self.find(client, key))
            check_size(glossary)
            self.all[key] = glossary
            return glossary

    def delete(self, client: str, key: str) -> None:
        """Forget one; errors as of `find`."""
        with self.lock:
            self._forget(self.find(client, key).id)

    def _expire(self) -> None:
        """Forget what nobody has used for a week."""
        latest = self.clock() - LIFETIME
        while self.all:
            key = next(iter(self.all))
            if self.used[key] >= latest:
                break
            self._forget(key)

    def _forget(self, key: str) -> None:
        del self.all[key], self.used[key]


def check_size(glossary: Glossary) -> None:
    """Refuse a glossary that is too large.

    Raises:
        ApiError: 400.
    """
    if sum(len(one.entries) for one in glossary.dictionaries) > ENTRIES or len(glossary.dictionaries) > DICTIONARIES:
        raise ApiError(
            400, f"Invalid request: a glossary has {DICTIONARIES} dictionaries and {ENTRIES} entries at most"
        )


def read_entries(text: str, form: str) -> dict[str, str]:
    """Read entries, one a line.

    Args:
        text: terms and their translations.
        form: `tsv`, or `csv` with commas and double quotes, whose further columns are languages.

    Raises:
        ApiError: 400, something in it is wrong.
    """
    if form not in ("tsv", "csv"):
        raise ApiError(400, "Invalid request: entries_format is neither tsv nor csv")
    lines = text.splitlines()
    try:
        rows = [line.split("\t") for line in lines] if form == "tsv" else list(csv.reader(lines))
    except csv.Error as error:
        raise ApiError(400, f"Invalid request: the entries are no CSV ({error})") from error
    entries: dict[str, str] = {}
    for number, row in enumerate(rows, 1):
        if not any(map(str.strip, row)):
            continue
        source, target = [*(term.strip() for term in row), "", ""][:2]
        if not source or not target or (form == "tsv" and len(row) > 2):
            raise ApiError(400, f"Invalid request: line {number} of the entries is not a term and its translation")
        if max(len(source), len(target)) > LONGEST or not (source + target).isprintable():
            raise ApiError(400, f"Invalid request: line {number} of the entries has what can't stand in a term")
        if source in entries:
            raise ApiError(400, f"Invalid request: line {number} of the entries has a term a second time")
        entries[source] = target
    if not entries or len(entries) > ENTRIES:
        raise ApiError(400, f"Invalid request: a glossary has between 1 and {ENTRIES} entries")
    return entries
