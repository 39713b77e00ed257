"""Answers: large ones as JSON, serialized in the worker pool and in parts, and files of the page."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
from collections.abc import Iterator
from functools import cached_property
from typing import Any

from fastapi import Request
from fastapi.responses import Response
from starlette.routing import Match, Route
from starlette.types import Scope

from bitext.cancellation import between_steps
from translucid.serving.server_options import PAGE_HEADERS, media_type_of


class Asset:
    """A file of the page, with its content from the start of the server."""

    def __init__(self, name: str, content: bytes) -> None:
        """Take the content; the name determines the media type."""
        self.content = content
        self.media = media_type_of(name)
        self.etag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'

    async def answer(self, request: Request) -> Response:
        """Return the file, or 304 if the browser has this version already."""
        # A weak tag is that of both encodings (RFC 9110, section 8.8.1).
        headers = {**PAGE_HEADERS, "Cache-Control": "no-cache", "ETag": f"W/{self.etag}", "Vary": "Accept-Encoding"}
        known_etags = request.headers.get("if-none-match", "")
        if self.etag in re.findall(r'"[^"]*"', known_etags):
            return Response(status_code=304, headers=headers)
        if "gzip" not in request.headers.get("accept-encoding", ""):
            return Response(self.content, media_type=self.media, headers=headers)
        return Response(self.compressed, media_type=self.media, headers={**headers, "Content-Encoding": "gzip"})

    @cached_property
    def compressed(self) -> bytes:
        """The content as gzip, a third of its size."""
        return gzip.compress(self.content, mtime=0)


class AssetRoute(Route):
    """The route of a file of the page. FastAPI's routes take as long to create as the rest of the server."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Name the route in the scope, as FastAPI's routes do: the metrics and the log read its path."""
        match, details = super().matches(scope)
        return match, {**details, "route": self} if details else details


def rendered(value: Any) -> Response:
    """Return an answer as JSON; called in the worker pool.

    `json.dumps` holds the interpreter lock until it returns, so that attention maps of some megabytes would block the
    event loop from any thread. Therefore each row of them is serialized by itself.
    """
    return Response("".join(_parts(value)).encode(), media_type="application/json")


def _parts(value: Any) -> Iterator[str]:
    if isinstance(value, dict) and value:
        opening = "{"
        for name, item in value.items():
            yield f"{opening}{_dumped(name)}:"
            yield from _parts(item)
            opening = ","
        yield "}"
    elif isinstance(value, list) and any(isinstance(item, list | dict) for item in value):
        opening = "["
        for item in value:
            between_steps()
            yield opening
            yield from _parts(item)
            opening = ","
        yield "]"
    else:
        yield _dumped(value)


def _dumped(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
