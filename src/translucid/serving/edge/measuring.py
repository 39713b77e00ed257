"""Metrics and the log of requests, which never contain a text, an API key or the id of a document."""

from __future__ import annotations

import json
import logging
import time
from datetime import UTC, datetime

from fastapi import FastAPI, Request, Response
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from translucid.serving.edge.failures import CLIENT_CLOSED_REQUEST
from translucid.serving.edge.rate_limits import KEY_NAME, address_of
from translucid.serving.queue.request_context import RequestContext

requests = logging.getLogger("translucid.serving.requests")
"""The logger of requests, one line for each."""


def measure(app: FastAPI, context: RequestContext) -> None:
    """Count and log the requests of an application, and serve the figures for Prometheus at /metrics."""
    options = context.options
    registry = CollectorRegistry()
    seconds = Histogram(
        "translucid_http_request_duration_seconds", "Time to answer", ["path", "status"], registry=registry
    )
    in_flight = Gauge("translucid_http_requests_in_flight", "Requests being answered", registry=registry)
    characters = Counter("translucid_http_bytes_total", "Bytes of request bodies as announced", registry=registry)
    waiting = Gauge("translucid_sentences_waiting", "Sentences in the queues", registry=registry)
    working = Gauge(
        "translucid_work_inside", "Explanations, maps, long texts and images, waiting ones too", registry=registry
    )
    working.set_function(lambda: context.worker_pool.work_counts.total())
    waiting.set_function(lambda: sum(served.batcher.sentences for served in context.catalogue.models))

    class Measured:
        """Middleware around everything else, so that it also measures requests that are refused."""

        def __init__(self, inner: ASGIApp) -> None:
            self.app = inner

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

            async def tracked_send(message: Message) -> None:
                nonlocal status
                if message["type"] == "http.response.start":
                    status = message["status"]
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
                        requests.info(_line(request, path, status, duration, size, as_json=options.log == "json"))

    app.add_middleware(Measured)
    if options.metrics == "off":
        return

    @app.api_route("/metrics", methods=["GET", "HEAD"], include_in_schema=False)
    async def metrics(request: Request) -> Response:
        if options.metrics == "key":
            context.rate_limits.key(request, {})
        return Response(generate_latest(registry), media_type=CONTENT_TYPE_LATEST)


def _line(request: Request, path: str, status: int, duration: float, size: int, *, as_json: bool) -> str:
    """Return the log line of a request; `path` is the route's, because a real path may contain a document's id."""
    time_of_day = datetime.now(UTC).isoformat(timespec="milliseconds")
    client, key = address_of(request), request.scope.get(KEY_NAME, "")
    if as_json:
        record = {
            "time": time_of_day,
            "client": client,
            "key": key,
            "method": request.method,
            "path": path,
            "status": status,
            "seconds": round(duration, 4),
            "bytes": size,
        }
        return json.dumps(record)
    if key:
        client += f" {key}"
    return f"{time_of_day} {client} {request.method} {path} {status} {duration:.3f} s {size} bytes"
