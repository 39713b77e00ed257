"""What bounds the server, and who may ask it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from translucid.data.readers.corpus import read_lines
from translucid.ground.errors import UserError

PAGE_HEADERS = {
    "Content-Security-Policy": "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'self'",
    "X-Frame-Options": "SAMEORIGIN",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}
"""Of every page: it fetches nothing from elsewhere, tells nobody where its reader comes from, and no other site can
show it in a frame, where clicks could be led to it (X-Frame-Options is for browsers without `frame-ancestors`)."""


@dataclass(frozen=True)
class Quota:
    """Requests that may come from one address, or with one key; 0 is no limit."""

    per_minute: int = 0
    per_day: int = 0


@dataclass(frozen=True)
class ApiKey:
    """What the file of keys says of one."""

    quota: Quota | None = None
    """Its own, if it has one."""
    name: str = ""
    """Stands in the log in the place of the key."""


@dataclass(frozen=True)
class ServerOptions:
    """Nobody can ask for more than this."""

    characters: int = 5000
    """In one request, all texts together."""
    texts: int = 200
    """In one request."""
    file_bytes: int = 20 << 20
    """Of a document."""
    documents: int = 32
    """That wait or are worked on; who comes with one more is sent away with 503."""
    document_segments: int = 50_000
    """Of a document."""
    document_seconds: float = 3600.0
    """That the translation of a document may take."""
    keep_seconds: float = 3600.0
    """Until a document is forgotten that nobody asks for."""
    image_bytes: int = 8 << 20
    """Of an image to write about."""
    alternatives: int = 5
    """Of each text, and of each caption."""
    queue: int = 512
    """Sentences that wait; who comes when it is full is sent away with 503."""
    batch: int = 64
    """Sentences that are translated together."""
    seconds: float = 60.0
    """That the work for a request may take, waiting included."""
    quota: Quota = Quota()
    """For each address, and for each key that has none of its own."""
    api_keys: Mapping[str, ApiKey | None] = field(default_factory=dict)
    """If there are any, a request must carry one."""
    metrics: Literal["key", "open", "off"] = "key"
    """Who may read /metrics: who has a key, if there are keys; everybody; nobody."""
    log: Literal["text", "json", "off"] = "off"
    """How requests are logged."""
    hosts: tuple[str, ...] = ()
    """Names that clients may call the server by, besides this machine's own; `*` is any."""
    origins: tuple[str, ...] = ()
    """Of other sites whose pages may use the server, such as `https://example.org`; `*` is any."""
    url_prefix: str = ""
    """What stands before every path, such as `/translate-app`."""


_FACTS = {"name": r"[\w.@-]{1,50}", "per-minute": "[0-9]{1,9}", "per-day": "[0-9]{1,9}"}
"""What may stand behind a key, and how its value is written."""


def read_keys(file: Path, usual: Quota | None = None) -> dict[str, ApiKey]:
    """Read API keys: one a line, `KEY` or `KEY name=office per-minute=60 per-day=1000`; lines with # are comments.

    Args:
        file: with the keys.
        usual: the limits that a line does not name; 0 lifts one.

    Raises:
        UserError: there are none, or a line is something else.
    """
    usual = usual or Quota()
    keys: dict[str, ApiKey] = {}
    for number, line in enumerate(read_lines(file), 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        facts = dict(word.partition("=")[::2] for word in words[1:])
        if not all(name in _FACTS and re.fullmatch(_FACTS[name], value) for name, value in facts.items()):
            fix = "Write KEY, or KEY name=office per-minute=60 per-day=1000."
            raise UserError("is no API key with its limits", file=file, line=number, fix=fix)
        name = facts.pop("name", "")
        quota = Quota(int(facts.get("per-minute", usual.per_minute)), int(facts.get("per-day", usual.per_day)))
        keys[words[0]] = ApiKey(quota if facts else None, name)
    if not keys:
        raise UserError("holds no API key", file=file, fix="Write one a line.")
    return keys
