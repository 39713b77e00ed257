"""The glossaries of the clients of DeepL's API, in memory, and how their entries are read."""

from __future__ import annotations

import csv
import time
import uuid
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from cachetools import TTLCache

from bitext.languages import same_language
from translucid.serving.edge.failures import ApiError
from translucid.terminology.glossary import fault_of

MOST, SHARE = 200, 50
"""The maximum number of glossaries, of all clients and of one client."""
LIFETIME = 7 * 24 * 60 * 60
"""The seconds without use after which a glossary expires."""
ENTRIES = 5000
"""The maximum number of entries of a glossary."""
DICTIONARIES = 100
"""The maximum number of dictionaries of a glossary."""
LONGEST = 500
"""The maximum number of characters in a term."""
TOO_LARGE = f"Invalid request: a glossary has {DICTIONARIES} dictionaries and {ENTRIES} entries at most"


@dataclass(frozen=True)
class Dictionary:
    """Terms of one language and their translations into another."""

    source: str
    """The source language in the form of the API: `EN`."""
    target: str
    entries: dict[str, str]

    @property
    def information(self) -> dict[str, Any]:
        """The record of the dictionary in the API, without the entries."""
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
        """Return whether the dictionary is for these languages."""
        return same_language(self.source, source) and same_language(self.target, target)


@dataclass(frozen=True)
class Glossary:
    """Dictionaries of one client under one name; glossaries of the API's version 2 have one dictionary."""

    client: str
    name: str
    dictionaries: tuple[Dictionary, ...]
    id: str = field(default_factory=lambda: str(uuid.uuid4()))
    created: datetime = field(default_factory=lambda: datetime.now(UTC))

    @property
    def information(self) -> dict[str, Any]:
        """The record of the glossary in version 3 of the API, without the entries."""
        return self._information(dictionaries=[dictionary.information for dictionary in self.dictionaries])

    @property
    def monolingual_information(self) -> dict[str, Any]:
        """The record of the glossary, which has one dictionary, in version 2 of the API."""
        (dictionary,) = self.dictionaries
        return self._information(ready=True, **dictionary.information)

    def _information(self, **details: Any) -> dict[str, Any]:
        created = self.created.isoformat(timespec="microseconds")
        return {"glossary_id": self.id, "name": self.name, **details, "creation_time": created}

    def find(self, source: str, target: str) -> Dictionary | None:
        """Return the dictionary for two languages, if there is one."""
        for dictionary in self.dictionaries:
            if dictionary.translates(source, target):
                return dictionary
        return None

    def with_dictionary(self, dictionary: Dictionary) -> Glossary:
        """Return a copy with a dictionary, in place of the one for the same languages if there is one."""
        other_dictionaries = self.without_dictionary(dictionary.source, dictionary.target).dictionaries
        return replace(self, dictionaries=(*other_dictionaries, dictionary))

    def without_dictionary(self, source: str, target: str) -> Glossary:
        """Return a copy without the dictionary for two languages."""
        remaining = [dictionary for dictionary in self.dictionaries if not dictionary.translates(source, target)]
        return replace(self, dictionaries=tuple(remaining))


class Glossaries:
    """The glossaries of all clients, each of which has access to its own; only the event loop uses them.

    They are in memory, and expire after a week without use. When there is no room for another one, the client with most
    glossaries loses its least recently used one, so that a few clients can't exclude all others.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Use a clock that returns seconds."""
        # A glossary that was used exactly LIFETIME ago is still there.
        self.all: TTLCache[str, Glossary] = TTLCache(MOST, LIFETIME + 1, clock)
        """Glossaries by id, in the order of their last use, at which `find` stores them anew."""

    def add(self, glossary: Glossary) -> None:
        """Add a glossary; another client may lose one for it.

        Raises:
            ApiError: 456, this client has too many.
        """
        counts = Counter(stored.client for stored in self.all.values())
        count = counts[glossary.client]
        if count < SHARE and len(self.all) >= MOST:
            client = max(counts, key=counts.__getitem__)
            if counts[client] > count:
                del self.all[next(key for key, stored in self.all.items() if stored.client == client)]
        if count >= SHARE or len(self.all) >= MOST:
            raise ApiError(456, "Too many glossaries: delete one first")
        self.all[glossary.id] = glossary

    def of(self, client: str) -> list[Glossary]:
        """Return the glossaries of a client, the oldest first."""
        glossaries = [glossary for glossary in self.all.values() if glossary.client == client]
        return sorted(glossaries, key=lambda glossary: glossary.created)

    def find(self, client: str, key: str) -> Glossary:
        """Return a glossary of a client by its id.

        Raises:
            ApiError: 404, there is none.
        """
        glossary = self.all.get(key)
        if glossary is None or glossary.client != client:
            raise ApiError(404, "Glossary not found")
        self.all[key] = glossary
        return glossary

    def change(self, client: str, key: str, change: Callable[[Glossary], Glossary]) -> Glossary:
        """Replace a glossary by what `change` returns for it, and return that.

        Raises:
            ApiError: 404, there is no such glossary; 400, the new one has too many entries.
        """
        glossary = change(self.find(client, key))
        check_size(glossary)
        self.all[key] = glossary
        return glossary

    def delete(self, client: str, key: str) -> None:
        """Delete a glossary of a client.

        Raises:
            ApiError: 404, there is none.
        """
        del self.all[self.find(client, key).id]


def check_size(glossary: Glossary) -> None:
    """Check the size of a glossary.

    Raises:
        ApiError: 400, it has too many dictionaries or entries.
    """
    entries = sum(len(dictionary.entries) for dictionary in glossary.dictionaries)
    if entries > ENTRIES or len(glossary.dictionaries) > DICTIONARIES:
        raise ApiError(400, TOO_LARGE)


def read_entries(text: str, form: str) -> dict[str, str]:
    """Parse entries, one a line.

    Args:
        text: terms and their translations.
        form: `tsv`, or `csv` with commas and double quotes, whose further columns, languages, are ignored.

    Raises:
        ApiError: 400, a line is invalid, or there are too many.
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
        source, target, *_ = [*map(str.strip, row), "", ""]  # a row may have one column
        if not source or not target or (form == "tsv" and len(row) > 2):
            raise ApiError(400, f"Invalid request: line {number} of the entries is not a term and its translation")
        if max(len(source), len(target)) > LONGEST or not (source + target).isprintable():
            raise ApiError(400, f"Invalid request: line {number} of the entries has what can't stand in a term")
        if fault := fault_of(source, target):
            raise ApiError(400, f"Invalid request: line {number} of the entries {fault[0]}")
        if source in entries:
            raise ApiError(400, f"Invalid request: line {number} of the entries has a term a second time")
        entries[source] = target
    if not entries or len(entries) > ENTRIES:
        raise ApiError(400, f"Invalid request: a glossary has between 1 and {ENTRIES} entries")
    return entries
