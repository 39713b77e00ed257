"""Translated files that wait to be fetched, in memory; nothing a client names touches the disk."""

from __future__ import annotations

import secrets
import time
from collections import OrderedDict

FILES, SECONDS = 50, 600
"""Kept at most, and for how long."""


class Shelf:
    """Texts under random keys; the oldest goes first."""

    def __init__(self) -> None:
        self.texts: OrderedDict[str, tuple[float, str]] = OrderedDict()

    def keep(self, text: str) -> str:
        """Keep a text and return its key."""
        key = secrets.token_urlsafe(24)
        self.texts[key] = time.monotonic(), text
        while len(self.texts) > FILES:
            self.texts.popitem(last=False)
        return key

    def get(self, key: str) -> str | None:
        """Return a text; None if there is none, or it was kept too long."""
        kept, text = self.texts.get(key, (0.0, None))
        return text if text is not None and time.monotonic() - kept < SECONDS else None
