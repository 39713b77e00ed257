"""Metrics and the log of requests, which never contain a text, an API key or the id of a document."""

from __future__ import annotations

import json
import logging
import re
import time
from collections.abc import Mapping
from datetime import UTC, datetime
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
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from translucid import __version__
from translucid.serving.edge.failures import CLIENT_CLOSED_REQUEST
from translucid.serving.edge.rate_limits import KEY_NAME, address_of
from translucid.serving.queue.request_context import WORK, RequestContext

requests = logging.getLogger("translucid.serving.requests")
"""The logger of requests, one line for each."""

BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600)
"""The upper bounds of the histogram of response times in seconds; a document may take an hour."""
_REQUEST_ID = r"[\w.:-]{1,64}"
"""The pattern of an X-Request-ID header that is used as it is; other requests get an id of their own."""


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
            if scope["type"] != "http":
                await self.app(scope, receive, send)
                return
            request = Request(scope)
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
                if message["type"] == "http.response.start":
                    status = message["status"]
                    MutableHeaders(scope=message)["X-Request-ID"] = request_id
                await send(message)

            with in_flight.track_inprogress():
                try:
                    await self.app(scope, receive, tracked_send)
                finally:
                    duration = time.perf_counter() - started
                    route = scope.get("route")
                    path = getattr(route, "path", "other")  # the route's template, so that clients can't create labels
                    seconds.labels(path, status).observe(duration)
                    if options.log != "off":
                        figures = {
                            "method": request.method,
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


def _json_line(request: Request, request_id: str, figures: Mapping[str, object]) -> str:
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


def _text_line(request: Request, _: str, figures: Mapping[str, object]) -> str:
    client, key = address_of(request), request.scope.get(KEY_NAME, "")
    if key:
        client += f" {key}"
    work = "{method} {path} {status} {seconds:.3f} s {bytes} bytes".format_map(figures)
    return f"{_now()} {client} {work}"


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
