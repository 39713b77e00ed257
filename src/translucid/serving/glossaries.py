"""Glossaries as clients of DeepL's API make them; in memory, a bounded number of bounded ones."""

from __future__ import annotations

import csv
import threading
import uuid
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from translucid.serving.failures import ApiError

MOST, SHARE = 200, 50
"""Glossaries, and those of one client."""
ENTRIES = 5000
"""Of one."""
LONGEST = 500
"""Characters of a term."""


@dataclass(frozen=True)
class Glossary:
    """Terms and their translations."""

    client: str
    name: str
    source: str
    """Language, as the API writes it: `EN`."""
    target: str
    entries: dict[str, str]
    id: str = field(default_factory=lambda: str(uuid.uuid4()))
    created: datetime = field(default_factory=lambda: datetime.now(UTC))

    @property
    def told(self) -> dict[str, Any]:
        """All but the entries, as the API says it."""
        return {
            "glossary_id": self.id,
            "name": self.name,
            "ready": True,
            "source_lang": self.source.lower(),
            "target_lang": self.target.lower(),
            "creation_time": self.created.isoformat(timespec="microseconds"),
            "entry_count": len(self.entries),
        }

    @property
    def tsv(self) -> str:
        """The entries, one a line."""
        return "".join(f"{source}\t{target}\n" for source, target in self.entries.items())


class Glossaries:
    """All glossaries; each client sees its own."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.all: dict[str, Glossary] = {}

    def add(self, glossary: Glossary) -> None:
        """Keep one.

        Raises:
            ApiError: 456, there are too many.
        """
        with self.lock:
            if len(self.all) >= MOST or len(self.of(glossary.client)) >= SHARE:
                raise ApiError(456, "Too many glossaries: delete one first")
            self.all[glossary.id] = glossary

    def of(self, client: str) -> list[Glossary]:
        """Return those of a client, the oldest first."""
        return [one for one in self.all.values() if one.client == client]

    def find(self, client: str, key: str) -> Glossary:
        """Return one of a client's by its id.

        Raises:
            ApiError: 404, there is none.
        """
        found = self.all.get(key)
        if found is None or found.client != client:
            raise ApiError(404, "Glossary not found")
        return found

    def delete(self, client: str, key: str) -> None:
        """Forget one; errors as of `find`."""
        with self.lock:
            del self.all[self.find(client, key).id]


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
