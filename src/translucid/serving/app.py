"""The application: routes, errors, figures, the page."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from importlib.resources import files
from pathlib import Path

import fastapi_offline  # at the top, so that its absence is told like that of any other package
from fastapi import APIRouter, FastAPI, Request
from fastapi.middleware.cors import CORSMiddleware
from fastapi.responses import JSONResponse, RedirectResponse, Response
from fastapi.routing import APIRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from translucid import __version__
from translucid.kernels.machine import give_memory_back
from translucid.serving.catalogue import Catalogue
from translucid.serving.edge.assets import Asset
from translucid.serving.edge.failures import answer_errors
from translucid.serving.edge.host_check import HostCheck
from translucid.serving.edge.measuring import measure
from translucid.serving.edge.rate_limits import RateLimits
from translucid.serving.queue.request_context import RequestContext
from translucid.serving.routes.captioning import CaptionRoutes
from translucid.serving.routes.deepl import DeepL
from translucid.serving.routes.deepl_documents import DeepLDocuments
from translucid.serving.routes.deepl_glossaries import DeepLGlossaries
from translucid.serving.routes.deepl_multilingual_glossaries import DeepLMultilingualGlossaries
from translucid.serving.routes.document_jobs import DocumentJobs
from translucid.serving.routes.document_review import DocumentReview
from translucid.serving.routes.editing import Editing
from translucid.serving.routes.inspection import InspectionRoutes
from translucid.serving.routes.libretranslate import LibreTranslate
from translucid.serving.routes.memory import MemoryRoutes
from translucid.serving.routes.plots import PlotRoutes
from translucid.serving.routes.text_models import TextModelRoutes
from translucid.serving.server_options import ServerOptions

log = logging.getLogger("translucid.serving")
TIDY_SECONDS, WORK_SECONDS = 2.0, 0.2
"""How often freed memory is given back, and how long the process has to have worked meanwhile."""


def create_app(
    catalogue: Catalogue,
    options: ServerOptions | None = None,
    memory: MemoryRoutes | None = None,
    lessons: Callable[[RequestContext], APIRouter] | None = None,
) -> FastAPI:
    """Return the application that serves these models, with a translation memory if there is one.

    `lessons`: gives the routes of the lessons, if they are to be beside the models; the page leads to them.
    """
    options = options or ServerOptions()
    context = RequestContext(catalogue, options, RateLimits(options), memory, lessons=lessons is not None)
    jobs = DocumentJobs(context)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        tidying = asyncio.create_task(_tidy_up(jobs))
        yield
        tidying.cancel()
        await asyncio.to_thread(jobs.close)
        await asyncio.to_thread(catalogue.close)
        await asyncio.to_thread(context.worker_pool.close)
        await asyncio.to_thread(jobs.clean)
        if memory:
            memory.close()

    app = FastAPI(
        title="Translucid",
        version=__version__,
        description="Translation, captions and judgements you can see through. "
        "The routes of translation are those of LibreTranslate 1.9; those under /v2 and /v3 are of DeepL's API.",
        lifespan=lifespan,
        servers=[{"url": options.url_prefix}] if options.url_prefix else None,
        root_path_in_servers=False,
        docs_url=None,  # its page is fetched from other hosts; ours is below
        redoc_url=None,
    )
    app.include_router(_with_heads(LibreTranslate(context, jobs).routes()))
    deepl = DeepL(context)
    app.include_router(_with_heads(deepl.routes()))
    app.include_router(_with_heads(DeepLDocuments(deepl, jobs).routes()))
    app.include_router(_with_heads(DeepLGlossaries(deepl).routes()))
    app.include_router(_with_heads(DeepLMultilingualGlossaries(deepl).routes()))
    app.include_router(_with_heads(Editing(context, jobs).routes()))
    app.include_router(_with_heads(DocumentReview(context, jobs).routes()))
    app.include_router(_with_heads(InspectionRoutes(context).routes()))
    app.include_router(PlotRoutes(context).routes())
    app.include_router(CaptionRoutes(context).routes())
    app.include_router(TextModelRoutes(context).routes())
    if lessons:
        app.include_router(_with_heads(lessons(context)))
    answer_errors(app)
    if options.origins:
        app.add_middleware(CORSMiddleware, allow_origins=options.origins, allow_methods=["*"], allow_headers=["*"])
    app.add_middleware(HostCheck, options=options, bodies=context.bodies)
    measure(app, context)
    for path, file in _page().items():
        app.api_route(path, methods=["GET", "HEAD"], include_in_schema=False)(_file(file))

    @app.api_route("/spec", methods=["GET", "HEAD"], include_in_schema=False)
    async def spec() -> JSONResponse:
        return JSONResponse(app.openapi())

    if options.url_prefix:

        @app.api_route("", methods=["GET", "HEAD"], include_in_schema=False)
        async def whole() -> RedirectResponse:  # so that the page finds its files beside it
            return RedirectResponse(options.url_prefix + "/")

        app.add_middleware(_Below, prefix=options.url_prefix)
    return app


async def _tidy_up(jobs: DocumentJobs) -> None:
    """Give memory back after work, and forget old documents."""
    worked = time.process_time()
    while True:
        await asyncio.sleep(TIDY_SECONDS)
        try:
            await asyncio.to_thread(jobs.tidy_up)
            if time.process_time() > worked + WORK_SECONDS:
                await asyncio.to_thread(give_memory_back)
                worked = time.process_time()
        except Exception:  # nothing may end this task, or documents would stay for ever
            log.exception("old documents could not be forgotten")


class _Below:
    """Takes every path to begin with a prefix, whether or not a proxy has cut it off."""

    def __init__(self, app: ASGIApp, prefix: str) -> None:
        self.app, self.prefix = app, prefix

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            scope = {**scope, "root_path": self.prefix}
        await self.app(scope, receive, send)


def _with_heads(routes: APIRouter) -> APIRouter:
    """Let HEAD be asked wherever GET can."""
    for route in [one for one in routes.routes if isinstance(one, APIRoute) and "GET" in (one.methods or ())]:
        routes.head(route.path, include_in_schema=False)(route.endpoint)
    return routes


def _page() -> dict[str, Path]:
    """Return every file that is served, by its path; nothing else is."""
    ours, shared = files("translucid.serving") / "page", files("translucid.inspection") / "web"
    swagger = files(fastapi_offline.__name__) / "static"
    shown = [Path(str(file)) for folder in (ours, shared) for file in folder.iterdir()]
    shown += [Path(str(swagger / name)) for name in ("swagger-ui.css", "swagger-ui-bundle.js")]
    page = {f"/{file.name}": file for file in shown if file.suffix in (".css", ".js")}
    return {"/": Path(str(ours / "index.html")), "/docs": Path(str(ours / "docs.html")), **page}


def _file(file: Path) -> Callable[[Request], Awaitable[Response]]:
    asset = Asset(file.name, file.read_bytes())

    async def send(request: Request) -> Response:
        return asset.answer(request)

    return send
