"""The settings of the server: limits, API keys, hosts and origins; and the headers and media types of its pages."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
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
"""Headers of every page. It loads nothing from other sites and sends them no referrer, and no other site can show it in
a frame, where it could redirect clicks (clickjacking); X-Frame-Options is for browsers without `frame-ancestors`."""


def media_type_of(name: str) -> str:
    """Return the media type of a file of a page by the ending of its name: HTML unless it is `.js` or `.css`."""
    types = {"js": "text/javascript", "css": "text/css"}
    return types.get(name.rpartition(".")[2], "text/html")


@dataclass(frozen=True)
class Quota:
    """The maximum number of requests from one address, or with one key; 0 is no limit."""

    per_minute: int = 0
    per_day: int = 0


@dataclass(frozen=True)
class ApiKey:
    """The settings of an API key."""

    quota: Quota | None = None
    """The key's own quota, if it has one."""
    name: str = ""
    """The name in the log, where the key itself must not appear."""
    memory: Path | None = None
    """The translation memory of its clients, which nobody else uses; by default that of the server."""


@dataclass(frozen=True)
class ServerOptions:
    """The limits of requests and clients."""

    characters: int = 5000
    """The maximum number of characters in all texts of a request."""
    texts: int = 200
    """The maximum number of texts of a request."""
    file_bytes: int = 20 << 20
    """The maximum size in bytes of a document."""
    documents: int = 32
    """The maximum number of documents that wait or are being translated; further ones are refused with 503."""
    document_segments: int = 50_000
    """The maximum number of segments of a document."""
    document_seconds: float = 3600.0
    """The time limit for the translation of a document, in seconds."""
    keep_seconds: float = 3600.0
    """The time after the last request for a document at which it is deleted."""
    image_bytes: int = 8 << 20
    """The maximum size in bytes of an image."""
    alternatives: int = 5
    """The maximum number of alternatives to an output."""
    queue: int = 512
    """The maximum number of sentences in a queue; further requests are refused with 503."""
    batch: int = 64
    """The maximum number of sentences in a batch."""
    seconds: float = 60.0
    """The time limit for the work of a request, including waiting, in seconds."""
    quota: Quota = Quota()
    """The quota of each address, and of each key without its own quota."""
    api_keys: Mapping[str, ApiKey | None] = field(default_factory=dict)
    """The API keys; if there are any, every request must have one."""
    metrics: Literal["key", "open", "off"] = "key"
    """Who may read /metrics: clients with a key, if there are keys; everybody; nobody."""
    log: Literal["text", "json", "off"] = "off"
    """The format in which requests are logged."""
    hosts: tuple[str, ...] = ()
    """Host names of the server besides those of this machine; `*` is any."""
    origins: tuple[str, ...] = ()
    """Other sites whose pages may use the server, such as `https://example.org`; `*` is any."""
    url_prefix: str = ""
    """The beginning of all paths, such as `/translate-app`."""
    share_models: bool = False
    """Whether the page may load the weights of models, with which the figure *Pass* computes."""


_SETTINGS = {"name": r"[\w.@-]{1,50}", "memory": r"\S+", "per-minute": "[0-9]{1,9}", "per-day": "[0-9]{1,9}"}
"""The settings of a key by name, with patterns of their values."""


def read_keys(file: Path, default_quota: Quota | None = None) -> dict[str, ApiKey]:
    """Read API keys: one a line, `KEY` or `KEY name=office per-minute=60 memory=office.memory`; # begins a comment.

    Args:
        file: the file of keys.
        default_quota: the limits of keys whose line does not name them; 0 is no limit.

    Raises:
        UserError: the file has no keys, or an invalid line.
    """
    default_quota = default_quota or Quota()
    keys: dict[str, ApiKey] = {}
    for number, line in enumerate(read_lines(file), 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        settings: dict[str, str] = {}
        for word in words[1:]:
            name, _, value = word.partition("=")
            if name not in _SETTINGS or not re.fullmatch(_SETTINGS[name], value):
                fix = "Write KEY, or KEY name=office per-minute=60 per-day=1000."
                raise UserError("is no API key with its limits", file=file, line=number, fix=fix)
            settings[name] = value
        name, memory = settings.pop("name", ""), settings.pop("memory", None)
        per_minute = int(settings.get("per-minute", default_quota.per_minute))
        quota = Quota(per_minute, int(settings.get("per-day", default_quota.per_day)))
        keys[words[0]] = ApiKey(quota if settings else None, name, Path(memory) if memory else None)
    if not keys:
        raise UserError("holds no API key", file=file, fix="Write one a line.")
    return keys


def reload_keys(
    options: ServerOptions, file: Path, prepare: Callable[[Mapping[str, ApiKey]], None] | None = None
) -> None:
    """Replace the API keys of a running server by those of the file.

    Args:
        options: the options of the server.
        file: the file of keys.
        prepare: opens the memories of keys before these are used.

    Raises:
        UserError: as `read_keys` and `prepare`; the keys stay as they were.
    """
    keys = read_keys(file, options.quota)
    if prepare:
        prepare(keys)
    assert isinstance(options.api_keys, dict)
    # Without any keys, even for a moment, the server would be open to all.
    options.api_keys.update(keys)
    for key in options.api_keys.keys() - keys.keys():
        del options.api_keys[key]
