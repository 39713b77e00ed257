"""The application: routes, errors, figures, the page."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from importlib.resources import files
from pathlib import Path

from fastapi import FastAPI, Request, Response
from fastapi.middleware.cors import CORSMiddleware
from fastapi.responses import FileResponse, JSONResponse
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from starlette.exceptions import HTTPException

from translucid import __version__
from translucid.errors import UserError
from translucid.serving.catalogue import Catalogue
from translucid.serving.failures import ApiError
from translucid.serving.guard import Guard
from translucid.serving.libretranslate import LibreTranslate
from translucid.serving.looking import Looking
from translucid.serving.options import ServerOptions

log = logging.getLogger("translucid.serving")
PAGE = {
    "/": ("translucid.serving", "page/index.html"),
    "/page.css": ("translucid.serving", "page/page.css"),
    "/page.js": ("translucid.serving", "page/page.js"),
    "/attention.css": ("translucid.inspection", "web/attention.css"),
    "/attention.js": ("translucid.inspection", "web/attention.js"),
}
"""Every file that is served, by its path; nothing else is."""
_HEADERS = {
    "Content-Security-Policy": "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}


def create_app(catalogue: Catalogue, options: ServerOptions | None = None) -> FastAPI:
    """Return the application that serves these models."""
    options = options or ServerOptions()
    guard = Guard(options)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        await asyncio.to_thread(catalogue.close)

    app = FastAPI(
        title="Translucid",
        version=__version__,
        description="Translation you can see through. The translation routes are those of LibreTranslate 1.9.",
        lifespan=lifespan,
    )
    app.include_router(LibreTranslate(catalogue, options, guard).routes())
    app.include_router(Looking(catalogue, options, guard, asyncio.Semaphore(1)).routes())
    _answer_errors(app)
    _measure(app, catalogue)
    app.add_middleware(CORSMiddleware, allow_origins=["*"], allow_methods=["*"], allow_headers=["*"])
    for path, (package, name) in PAGE.items():
        app.get(path, include_in_schema=False)(_file(Path(str(files(package) / name))))
    return app


def _file(file: Path) -> Callable[[], Awaitable[FileResponse]]:
    async def send() -> FileResponse:
        return FileResponse(file, headers=_HEADERS)

    return send


def _answer_errors(app: FastAPI) -> None:
    """Tell every error as {"error": "..."}."""

    @app.exception_handler(ApiError)
    async def told(_: Request, error: ApiError) -> JSONResponse:
        headers = {"Retry-After": str(error.retry_after)} if error.retry_after else None
        return JSONResponse({"error": error.message}, error.status, headers)

    @app.exception_handler(UserError)
    async def input_is_wrong(_: Request, error: UserError) -> JSONResponse:
        return JSONResponse({"error": str(error)}, 400)

    @app.exception_handler(HTTPException)
    async def routing(_: Request, error: HTTPException) -> JSONResponse:
        return JSONResponse({"error": error.detail}, error.status_code, error.headers)

    @app.exception_handler(TimeoutError)
    async def too_slow(_: Request, error: TimeoutError) -> JSONResponse:
        return JSONResponse({"error": "It took too long"}, 503, {"Retry-After": "10"})

    @app.exception_handler(Exception)
    async def ours(_: Request, error: Exception) -> JSONResponse:
        log.error("a request failed", exc_info=error)
        return JSONResponse({"error": "Internal error; it is in the server's log"}, 500)


def _measure(app: FastAPI, catalogue: Catalogue) -> None:
    """Count requests and their seconds, for Prometheus at /metrics."""
    registry = CollectorRegistry()
    seconds = Histogram(
        "translucid_http_request_duration_seconds", "Time to answer", ["path", "status"], registry=registry
    )
    flying = Gauge("translucid_http_requests_in_flight", "Requests being answered", registry=registry)
    characters = Counter("translucid_http_bytes_total", "Bytes of request bodies as announced", registry=registry)
    waiting = Gauge("translucid_sentences_waiting", "Sentences in the queues", registry=registry)
    waiting.set_function(lambda: sum(served.batcher.sentences for served in catalogue))

    @app.middleware("http")
    async def measure(request: Request, call: Callable[[Request], Awaitable[Response]]) -> Response:
        started = time.perf_counter()
        announced = request.headers.get("content-length", "")
        characters.inc(int(announced) if announced.isdecimal() and len(announced) < 12 else 0)
        status = 500
        with flying.track_inprogress():
            try:
                response = await call(request)
                status = response.status_code
                return response
            finally:
                route = request.scope.get("route")
                path = getattr(route, "path", "other")  # the template, so that clients can't make up labels
                seconds.labels(path, status).observe(time.perf_counter() - started)

    @app.get("/metrics", include_in_schema=False)
    async def metrics() -> Response:
        return Response(generate_latest(registry), media_type=CONTENT_TYPE_LATEST)
