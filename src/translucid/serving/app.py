"""The ASGI application: routes, error handling, metrics, the page."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import cache, partial
from importlib.resources import files
from pathlib import Path

import fastapi_offline
from fastapi import APIRouter, FastAPI
from fastapi.middleware.cors import CORSMiddleware
from fastapi.responses import JSONResponse, RedirectResponse

from translucid import __version__
from translucid.inspection.rendering.bundling import WEB
from translucid.inspection.rendering.message_catalogs import page_scripts
from translucid.interop.web.scripts import figure_files
from translucid.kernels.machine import release_freed_memory
from translucid.models.kinds import page_files
from translucid.serving.catalog import Catalog
from translucid.serving.documents import DocumentJobs
from translucid.serving.edge.failures import answer_errors
from translucid.serving.edge.middleware import EXTENSIONS, HostCheck, PlainPaths, measure
from translucid.serving.edge.rate_limits import RateLimits
from translucid.serving.edge.rendering import Asset, AssetRoute
from translucid.serving.memory import ServerMemory
from translucid.serving.requests import RequestContext
from translucid.serving.routing import api_routes
from translucid.serving.server_options import ServerOptions

log = logging.getLogger("translucid.serving")
TIDY_SECONDS, WORK_SECONDS = 2.0, 0.2
"""The interval at which freed memory is returned, and the CPU time that the process must have used, in seconds."""


def create_app(
    catalog: Catalog,
    options: ServerOptions | None = None,
    memory: ServerMemory | None = None,
    lessons: Callable[[RequestContext], APIRouter] | None = None,
    key_memories: Mapping[Path, ServerMemory] | None = None,
) -> FastAPI:
    """Return the application that serves these models, with a translation memory if there is one.

    Args:
        catalog: the models.
        options: the limits of requests and clients.
        memory: the translation memory of clients whose key has none of its own.
        lessons: returns the routes of the interactive lessons, if the page is to link to them.
        key_memories: the translation memories of API keys, by file.
    """
    options = options or ServerOptions()
    key_memories = {} if key_memories is None else key_memories  # keys that are read later add theirs
    context = RequestContext(catalog, options, RateLimits(options), memory, key_memories, lessons=lessons is not None)
    jobs = DocumentJobs(context)
    app = FastAPI(
        title="Translucid",
        version=__version__,
        description="Translation, captions and judgements you can see through. "
        "The routes of translation are those of LibreTranslate 1.9; those under /v2 and /v3 are of DeepL's API.",
        lifespan=partial(_lifespan, context=context, jobs=jobs),
        servers=[{"url": options.url_prefix}] if options.url_prefix else None,
        docs_url=None,  # FastAPI's page loads scripts from other hosts; `docs.html` has its own
        redoc_url=None,
    )
    app.state.context = context
    app.include_router(api_routes(context, jobs))
    if lessons:
        app.include_router(lessons(context))
    answer_errors(app)
    # The middleware that is added last is the first to see a request.
    app.add_middleware(
        CORSMiddleware,
        allow_origins=options.origins,
        allow_origin_regex=f"({'|'.join(EXTENSIONS)}).*",
        allow_methods=["*"],
        allow_headers=["*"],
    )
    app.add_middleware(HostCheck, options=options, bodies=context.bodies)
    measure(app, context)
    for path, asset in _page().items():
        app.router.routes.append(AssetRoute(path, asset.answer, methods=["GET"], include_in_schema=False))

    @app.api_route("/spec", methods=["GET", "HEAD"], include_in_schema=False)
    async def spec() -> JSONResponse:
        return JSONResponse(app.openapi())

    if options.url_prefix:

        @app.api_route("", methods=["GET", "HEAD"], include_in_schema=False)
        async def add_slash() -> RedirectResponse:  # the page refers to its files by relative paths
            return RedirectResponse(options.url_prefix + "/")

    app.add_middleware(PlainPaths, prefix=options.url_prefix)
    return app


@asynccontextmanager
async def _lifespan(_: FastAPI, context: RequestContext, jobs: DocumentJobs) -> AsyncIterator[None]:
    tidying = asyncio.create_task(_tidy_up(jobs, context))
    yield
    tidying.cancel()
    context.live_sessions.close()
    await asyncio.to_thread(jobs.close)
    await asyncio.to_thread(context.close)
    await asyncio.to_thread(jobs.clean)  # only now: work that still ran used the folder of the jobs


async def _tidy_up(jobs: DocumentJobs, context: RequestContext) -> None:
    """End sessions, delete old documents, and return freed memory to the system after work."""
    worked = time.process_time()
    while True:
        await asyncio.sleep(TIDY_SECONDS)
        try:
            context.live_sessions.tidy_up()
            await asyncio.to_thread(jobs.tidy_up)
            if time.process_time() > worked + WORK_SECONDS:
                await asyncio.to_thread(release_freed_memory)
                worked = time.process_time()
        except Exception:  # if an error ended this task, documents would never be deleted again
            log.exception("old documents could not be forgotten")


@cache
def _page() -> dict[str, Asset]:
    """Return the page's files by their paths; no other file is served."""
    page_folder = Path(str(files("translucid.serving") / "page"))
    swagger = Path(str(files(fastapi_offline.__name__) / "static"))
    page = {"/": page_folder / "index.html", "/docs": page_folder / "docs.html"}
    for file in (*page_folder.iterdir(), *WEB.iterdir(), swagger / "swagger-ui.css", swagger / "swagger-ui-bundle.js"):
        if file.suffix in (".css", ".js"):
            page[f"/{file.name}"] = file
    contents = {path: file.read_bytes() for path, file in page.items()}
    for name, text in (*page_files().items(), *page_scripts().items(), *figure_files().items()):
        contents[f"/{name}"] = text.encode()
    return {path: Asset(path, content) for path, content in contents.items()}
