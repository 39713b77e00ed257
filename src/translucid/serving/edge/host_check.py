"""The outermost: who may come in by which name and from which pages, and that every request ends in one answer."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import math
from contextlib import suppress
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from translucid.serving.edge.failures import INTERNAL, said
from translucid.serving.edge.incoming import Bodies
from translucid.serving.edge.rate_limits import RATE_LIMIT
from translucid.serving.server_options import ServerOptions

log = logging.getLogger("translucid.serving")
ANY = "*"
LINGER = 1.0
"""Seconds in which a client may hear that it is refused while it still sends."""


class HostCheck:
    """Refuses what a web page of somebody else sends, and what is not one clear request."""

    def __init__(self, app: ASGIApp, options: ServerOptions, bodies: Bodies) -> None:
        self.app, self.options, self.bodies = app, options, bodies

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or let the application answer it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        whole = answered = closing = False

        async def received() -> Message:
            nonlocal whole
            message = await receive()
            whole |= message["type"] == "http.request" and not message.get("more_body", False)
            return message

        async def sent(message: Message) -> None:
            nonlocal answered, closing
            if message["type"] == "http.response.start":
                answered = True
                _tell_rate_limit(scope, message)
                closing = not whole and _has_body(Headers(scope=scope))
                if closing:  # what is still coming is no other request
                    MutableHeaders(scope=message)["Connection"] = "close"
            elif closing and not message.get("more_body", False):
                await send({**message, "more_body": True})
                await _drop_the_rest(receive)
                message = {"type": message["type"], "body": b""}
            await send(message)

        try:
            if refusal := self._refusal(Headers(scope=scope)):
                await refusal(scope, received, sent)
            else:
                await self.app(scope, received, sent)
        except Exception:
            log.exception("a request failed")
            if not answered:
                await JSONResponse(said(scope, INTERNAL), 500)(scope, received, sent)
        finally:
            self.bodies.release(scope)

    def _refusal(self, headers: Headers) -> JSONResponse | None:
        if "transfer-encoding" in headers and "content-length" in headers:
            error = "Invalid request: Content-Length and Transfer-Encoding contradict each other"
            return JSONResponse({"error": error}, 400, {"Connection": "close"})
        host = headers.get("host", "")
        if not self._known(host):
            error = f"This server does not go by the name {_name(host)[:100]!r}; --hosts says which names it has"
            return JSONResponse({"error": error}, 421)
        origin = headers.get("origin")
        # A browser says this of our own page also where a proxy has exchanged the Host header; no page can.
        ours = headers.get("sec-fetch-site") == "same-origin"
        if origin is not None and not ours and not self._welcome(origin, host):
            return JSONResponse({"error": "Pages of other sites may not use this server (--origins)"}, 403)
        return None

    def _known(self, host: str) -> bool:
        """Whether a Host header names this server: a page can have its own name point to any address."""
        name = _name(host)
        return ANY in self.options.hosts or name in self.options.hosts or is_loopback(name)

    def _welcome(self, origin: str, host: str) -> bool:
        allowed = self.options.origins
        return ANY in allowed or origin in allowed or urlsplit(origin).netloc.lower() == host.lower()


def _tell_rate_limit(scope: Scope, message: Message) -> None:
    """Tell a client how many requests are left to it, as drafts of the IETF (RateLimit headers) have it."""
    if RATE_LIMIT in scope:
        limit, remaining, seconds = scope[RATE_LIMIT]
        headers = MutableHeaders(scope=message)
        headers["RateLimit-Limit"], headers["RateLimit-Remaining"] = str(limit), str(remaining)
        headers["RateLimit-Reset"] = str(math.ceil(seconds))


async def _drop_the_rest(receive: Receive) -> None:
    """Read what still comes: to close a connection with unread bytes can take the answer back."""
    with suppress(TimeoutError):
        async with asyncio.timeout(LINGER):
            while (await receive()).get("more_body", False):
                pass


def is_loopback(name: str) -> bool:
    """Whether a name or an address is always this machine's own."""
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return name == "localhost" or name.endswith(".localhost")


def _name(host: str) -> str:
    """Return the name or address of a Host header, without the port."""
    try:
        return (urlsplit(f"//{host}").hostname or "").rstrip(".")
    except ValueError:
        return ""


def _has_body(headers: Headers) -> bool:
    return headers.get("content-length", "0") != "0" or "transfer-encoding" in headers
