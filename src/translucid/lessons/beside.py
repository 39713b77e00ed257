"""The routes of the recorded lessons on the model server."""

from __future__ import annotations

from functools import cache

from fastapi import APIRouter, Request
from fastapi.responses import Response
from starlette.concurrency import run_in_threadpool

from translucid.lessons.serving import LESSONS_PATH, TRANSLATOR, recorded_files
from translucid.serving.edge.failures import ApiError
from translucid.serving.edge.rendering import Asset


def recorded_routes() -> APIRouter:
    """Return the routes of the lessons; the pages are built at the first request."""
    routes = APIRouter(include_in_schema=False)

    # Building the pages parses the source of all excerpts.
    @cache
    def assets() -> dict[str, Asset]:
        return {name: Asset(name, text.encode()) for name, text in recorded_files(TRANSLATOR).items()}

    async def answer(request: Request, name: str) -> Response:
        asset = (await run_in_threadpool(assets)).get(name)
        if asset is None:
            raise ApiError(404, "There is nothing here.")
        return await asset.answer(request)

    routes.api_route(LESSONS_PATH + "{name:path}", methods=["GET", "HEAD"])(answer)
    return routes
