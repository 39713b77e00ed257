"""A document that is translated in the background: what the client sent, and how far the translation is."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import quote

from bitext.documents.kinds import Kind
from translucid.serving.documents.job_files import JobFiles
from translucid.serving.queue.fair_scheduler import Task

State = Literal["waiting", "translating", "done", "failed", "cancelled"]


@dataclass(eq=False)
class Job:
    """The translation of a document."""

    client: str
    name: str
    """The file name that the client gave, without folders; it is never used as a path."""
    kind: Kind
    source: str | None
    """The source language; None until it is detected."""
    target: str
    model: str | None
    files: JobFiles
    terms: Mapping[str, str]
    id: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    """A secret: a client that knows it has full access to the document."""
    key: str = field(default_factory=lambda: secrets.token_hex(32))
    """A second secret in DeepL's API."""
    state: State = "waiting"
    error: str = ""
    status: int = 503
    """The HTTP status of requests for a result that does not exist."""
    remarks: tuple[str, ...] = ()
    """What the user should know about the choice of the texts."""
    segments: int = 0
    """The number of segments; 0 until the document is parsed."""
    done: int = 0
    """The number of segments that have a translation or need none."""
    characters: int = 0
    """The characters of all segments."""
    characters_done: int = 0
    started: float = 0.0
    last_request: float = field(default_factory=time.monotonic)
    """The time of the last request for it."""
    corrections: int = 0
    """The number of corrections by a person."""
    written_corrections: int = -1
    """The number of these corrections that the result contains at least; -1 while there is no result."""
    writing: threading.Lock = field(default_factory=threading.Lock)
    """Held while the result is replaced."""
    task: Task | None = None
    ended: threading.Event = field(default_factory=threading.Event)

    @property
    def seconds_left(self) -> float | None:
        """The estimated time until the translation is done; None if there is no estimate."""
        if self.state != "translating" or not self.characters_done:
            return None
        spent = time.monotonic() - self.started
        return spent / self.characters_done * (self.characters - self.characters_done)

    @property
    def file_name(self) -> str:
        """The file name of the result: `notes_es.txt` for `notes.txt`."""
        stem, dot, ending = self.name.rpartition(".")
        return f"{stem}_{self.target}{dot}{ending}"


def disposition(name: str) -> str:
    """Return the Content-Disposition header with the name under which a file is to be saved (RFC 6266)."""
    # Percent encoding also prevents that a name ends the header.
    quoted = quote(name.encode("utf-8", "replace"), safe=" ")
    if "%" in quoted:
        return f"attachment; filename*=UTF-8''{quoted.replace(' ', '%20')}"
    return f'attachment; filename="{quoted}"'  # some clients, such as curl, do not know `filename*`
