"""What surrounds every request: metrics and the log, the checks of Host and Origin, and plain paths.

The log and the metrics never contain a text, an API key or the id of a document.
"""

from __future__ import annotations

import asyncio
import ipaddress
import json
import logging
import math
import re
import time
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from urllib.parse import quote, urlsplit
from uuid import uuid4

from fastapi import FastAPI, Request, Response
from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    generate_latest,
)
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from translucid import __version__
from translucid.serving.edge.failures import CLIENT_CLOSED_REQUEST, INTERNAL, error_body
from translucid.serving.edge.rate_limits import KEY_NAME, RATE_LIMIT, address_of
from translucid.serving.requests import WORK, Bodies, RequestContext
from translucid.serving.server_options import ServerOptions

log = logging.getLogger("translucid.serving")
requests = logging.getLogger("translucid.serving.requests")
"""The logger of requests, one line for each."""

BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600)
"""The upper bounds of the histogram of response times in seconds; a document may take an hour."""
_REQUEST_ID = r"[\w.:-]{1,64}"
"""The pattern of an X-Request-ID header that is used as it is; other requests get an id of their own."""

ANY = "*"
EXTENSIONS = "chrome-extension://", "moz-extension://", "safari-web-extension://"
"""The beginnings of the origins of browser extensions, which the user has installed; no page has such an origin."""
SWITCHING_PROTOCOLS = 101
"""The status of a WebSocket that was accepted."""
LINGER = 1.0
"""The seconds for which a client that is refused may continue to send, so that it receives the answer."""


def measure(app: FastAPI, context: RequestContext) -> None:
    """Count and log the requests of an application, and serve the figures for Prometheus at /metrics."""
    options = context.options
    registry = CollectorRegistry()
    seconds = Histogram(
        "translucid_http_request_duration_seconds",
        "Time to answer",
        ["path", "status"],
        registry=registry,
        buckets=BUCKETS,
    )
    ProcessCollector(registry=registry)  # memory, processor time and open files
    Gauge("translucid_build_info", "The version", ["version"], registry=registry).labels(__version__).set(1)
    registry.register(context.usage.texts)
    registry.register(context.usage.characters)
    in_flight = Gauge("translucid_http_requests_in_flight", "Requests being answered", registry=registry)
    sockets = Gauge("translucid_websockets", "WebSockets that are open", registry=registry)
    characters = Counter("translucid_http_bytes_total", "Bytes of request bodies as announced", registry=registry)
    waiting = Gauge("translucid_sentences_waiting", "Sentences in the queues", registry=registry)
    working = Gauge(
        "translucid_work_inside", "Explanations, maps, long texts and images, waiting ones too", registry=registry
    )
    working.set_function(lambda: context.worker_pool.work_counts.total())
    waiting.set_function(lambda: sum(served.batcher.sentences for served in context.catalog.models))

    class Measured:
        """Middleware around everything else, so that it also measures requests that are refused."""

        def __init__(self, app: ASGIApp) -> None:
            self.app = app

        async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] not in ("http", "websocket"):
                await self.app(scope, receive, send)
                return
            request = HTTPConnection(scope)
            started = time.perf_counter()
            declared_size = request.headers.get("content-length", "")
            # Clients may announce anything; the real bytes are limited elsewhere.
            size = int(declared_size) if declared_size.isdecimal() and len(declared_size) < 12 else 0
            characters.inc(size)
            status = CLIENT_CLOSED_REQUEST  # unless there is an answer
            request_id = request.headers.get("x-request-id", "")
            if not re.fullmatch(_REQUEST_ID, request_id, re.ASCII):
                request_id = uuid4().hex

            async def tracked_send(message: Message) -> None:
                nonlocal status
                if message["type"] in ("http.response.start", "websocket.http.response.start"):
                    status = message["status"]
                    MutableHeaders(scope=message)["X-Request-ID"] = request_id
                elif message["type"] == "websocket.accept":
                    status = SWITCHING_PROTOCOLS
                await send(message)

            gauge = in_flight if scope["type"] == "http" else sockets
            with gauge.track_inprogress():
                try:
                    await self.app(scope, receive, tracked_send)
                finally:
                    duration = time.perf_counter() - started
                    route = scope.get("route")
                    path = getattr(route, "path", "other")  # the route's template, so that clients can't create labels
                    seconds.labels(path, status).observe(duration)
                    if options.log != "off":
                        figures = {
                            "method": scope.get("method", "WEBSOCKET"),
                            "path": path,
                            "status": status,
                            "seconds": round(duration, 4),
                            "bytes": size,
                        }
                        line = _json_line if options.log == "json" else _text_line
                        requests.info(line(request, request_id, figures))

    app.add_middleware(Measured)
    if options.metrics == "off":
        return

    @app.api_route("/metrics", methods=["GET", "HEAD"], include_in_schema=False)
    async def metrics(request: Request) -> Response:
        if options.metrics == "key":
            context.rate_limits.key(request, {})
        return Response(generate_latest(registry), media_type=CONTENT_TYPE_LATEST)


def _json_line(request: HTTPConnection, request_id: str, figures: Mapping[str, object]) -> str:
    """Return the log line of a request, with the characters that it had translated by language pair."""
    record = {
        "time": _now(),
        "id": request_id,
        "client": address_of(request),
        "key": request.scope.get(KEY_NAME, ""),
        **figures,
    }
    if work := request.scope.get(WORK):
        record |= {"pair": ",".join(work), "characters": work.total()}
    return json.dumps(record)


def _text_line(request: HTTPConnection, _: str, figures: Mapping[str, object]) -> str:
    client, key = address_of(request), request.scope.get(KEY_NAME, "")
    if key:
        client += f" {key}"
    work = "{method} {path} {status} {seconds:.3f} s {bytes} bytes".format_map(figures)
    return f"{_now()} {client} {work}"


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


class HostCheck:
    """Middleware that refuses requests from pages of other sites, and ambiguous requests."""

    def __init__(self, app: ASGIApp, options: ServerOptions, bodies: Bodies) -> None:
        self.app, self.options, self.bodies = app, options, bodies

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse a request, or let the application answer it."""
        if scope["type"] == "websocket":  # browsers do not apply CORS to these, so that only this check protects them
            await (self._refusal(Headers(scope=scope)) or self.app)(scope, receive, send)
            return
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


class PlainPaths:
    """Middleware that answers a path with too many slashes as the one without them: `//translate/` as `/translate`.

    Below a URL prefix it also adds the prefix to paths from which a proxy has removed it.
    """

    def __init__(self, app: ASGIApp, prefix: str) -> None:
        self.app, self.prefix = app, prefix
        self.folders = (f"{prefix}/", f"{prefix}/lessons/")  # these pages end with a slash

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request at its plain path."""
        if scope["type"] in ("http", "websocket"):
            path = re.sub("//+", "/", scope["path"])
            if self.prefix and path != self.prefix and not path.startswith(f"{self.prefix}/"):
                path = self.prefix + path
            if path not in self.folders:
                path = path.rstrip("/")
            scope = {**scope, "root_path": self.prefix, "path": path, "raw_path": quote(path).encode()}
        await self.app(scope, receive, send)
