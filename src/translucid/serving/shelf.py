"""Translated files that wait to be fetched, in memory; nothing a client names touches the disk."""

from __future__ import annotations

import secrets
import time
from collections import OrderedDict
from typing import NamedTuple

FILES, SECONDS = 50, 600
"""Kept at most, and for how long."""


class Kept(NamedTuple):
    """A file."""

    since: float
    text: str
    name: str


class Shelf:
    """Files under random keys; the oldest goes first."""

    def __init__(self) -> None:
        self.files: OrderedDict[str, Kept] = OrderedDict()

    def keep(self, text: str, name: str) -> str:
        """Keep a file and return its key."""
        key = secrets.token_urlsafe(24)
        self.files[key] = Kept(time.monotonic(), text, name)
        while len(self.files) > FILES:
            self.files.popitem(last=False)
        return key

    def get(self, key: str) -> Kept | None:
        """Return a file; None if there is none, or it was kept too long."""
        file = self.files.get(key)
        return file if file and time.monotonic() - file.since < SECONDS else None
