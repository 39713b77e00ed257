"""The outermost checks: the Host and Origin headers of requests, and that every request has exactly one answer."""

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

from translucid.serving.edge.failures import INTERNAL, error_body
from translucid.serving.edge.incoming import Bodies
from translucid.serving.edge.rate_limits import RATE_LIMIT
from translucid.serving.server_options import ServerOptions

log = logging.getLogger("translucid.serving")
ANY = "*"
EXTENSIONS = "chrome-extension://", "moz-extension://", "safari-web-extension://"
"""The beginnings of the origins of browser extensions, which the user has installed; no page has such an origin."""
LINGER = 1.0
"""The seconds for which a client that is refused may continue to send, so that it receives the answer."""


class HostCheck:
    """Middleware that refuses requests from pages of other sites, and ambiguous requests."""

    def __init__(self, app: ASGIApp, options: ServerOptions, bodies: Bodies) -> None:
        self.app, self.options, self.bodies = app, options, bodies

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse a request, or let the application answer it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        complete = answered = closing = False

        async def tracked_receive() -> Message:
            nonlocal complete
            message = await receive()
            complete |= message["type"] == "http.request" and not message.get("more_body", False)
            return message

        async def tracked_send(message: Message) -> None:
            nonlocal answered, closing
            if message["type"] == "http.response.start":
                answered = True
                _add_rate_limit(scope, message)
                closing = not complete and _has_body(Headers(scope=scope))
                if closing:  # otherwise the rest of the body would be parsed as the next request
                    MutableHeaders(scope=message)["Connection"] = "close"
            elif closing and not message.get("more_body", False):
                # The end of the answer closes the connection: send all of it first, then read what still arrives.
                await send({**message, "more_body": True})
                await _discard_body(receive)
                message = {"type": message["type"], "body": b""}
            await send(message)

        try:
            if refusal := self._refusal(Headers(scope=scope)):
                await refusal(scope, tracked_receive, tracked_send)
            else:
                await self.app(scope, tracked_receive, tracked_send)
        except Exception:
            log.exception("a request failed")
            if not answered:
                await JSONResponse(error_body(scope, INTERNAL, 500), 500)(scope, tracked_receive, tracked_send)
        finally:
            self.bodies.release(scope)

    def _refusal(self, headers: Headers) -> JSONResponse | None:
        """Return the answer to a request that is refused, None for others."""
        # A proxy and this server might disagree on where such a request ends (request smuggling).
        if "transfer-encoding" in headers and "content-length" in headers:
            error = "Invalid request: Content-Length and Transfer-Encoding contradict each other"
            return JSONResponse({"error": error}, 400, {"Connection": "close"})
        host = headers.get("host", "")
        if not self._is_known_host(host):
            error = f"This server does not go by the name {_name(host)[:100]!r}; --hosts says which names it has"
            return JSONResponse({"error": error}, 421)
        origin = headers.get("origin")
        # Browsers send this header for our own page even if a proxy has replaced Host; no script can set it.
        same_origin = headers.get("sec-fetch-site") == "same-origin"
        if origin is not None and not same_origin and not self._is_allowed_origin(origin, host):
            return JSONResponse({"error": "Pages of other sites may not use this server (--origins)"}, 403)
        return None

    def _is_known_host(self, host: str) -> bool:
        """Return whether a Host header names this server: a site may let its own name resolve to any address.

        So it could read answers as if they were its own (DNS rebinding).
        """
        name = _name(host)
        return ANY in self.options.hosts or name in self.options.hosts or is_loopback(name)

    def _is_allowed_origin(self, origin: str, host: str) -> bool:
        """Return whether pages of an origin, or a browser extension, may use the server."""
        if origin.startswith(EXTENSIONS):
            return True
        allowed = self.options.origins
        return ANY in allowed or origin in allowed or origin.partition("://")[2].lower() == host.lower()


def _add_rate_limit(scope: Scope, message: Message) -> None:
    """Add headers with the number of requests that remain, as drafts of the IETF (RateLimit headers) define them."""
    if RATE_LIMIT in scope:
        limit, remaining, seconds = scope[RATE_LIMIT]
        headers = MutableHeaders(scope=message)
        headers["RateLimit-Limit"], headers["RateLimit-Remaining"] = str(limit), str(remaining)
        headers["RateLimit-Reset"] = str(math.ceil(seconds))


async def _discard_body(receive: Receive) -> None:
    """Read the rest of a body: closing a connection with unread bytes resets it, and the answer may be lost."""
    with suppress(TimeoutError):
        async with asyncio.timeout(LINGER):
            while (await receive()).get("more_body", False):
                pass


def is_loopback(name: str) -> bool:
    """Return whether a name or an address always refers to this machine."""
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
