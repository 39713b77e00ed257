"""The lessons as they were recorded, on the server of models."""

from __future__ import annotations

from functools import cache

from fastapi import APIRouter
from fastapi.responses import Response

from translucid.lessons.serving import HEADERS, PLACE, TRANSLATOR, kind, recorded_files
from translucid.serving.failures import ApiError


def recorded_routes() -> APIRouter:
    """Return the routes of the lessons; their pages are made when somebody first asks for one."""
    routes, found = APIRouter(include_in_schema=False), cache(lambda: recorded_files(TRANSLATOR))

    def answer(name: str) -> Response:
        if name not in found():
            raise ApiError(404, "There is nothing here.")
        return Response(found()[name], media_type=kind(name), headers=HEADERS)

    routes.get(PLACE + "{name:path}")(answer)
    return routes
