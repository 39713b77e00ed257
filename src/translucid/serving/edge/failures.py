"""Error responses: {"error": "..."}, which clients of LibreTranslate expect, or {"message": "..."} for DeepL's."""

from __future__ import annotations

import errno
import logging
import sqlite3
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import Scope

from translucid.ground.errors import UserError

log = logging.getLogger("translucid.serving")

CLIENT_CLOSED_REQUEST = 499
"""The status in the log of a request whose client disconnected before the answer, as in nginx's logs."""

INTERNAL = "Internal error; it is in the server's log"
"""The only message to clients about errors in the server itself."""

NO_ROOM = "The server's disk is full, please come again later"

DEEPL = "/v2/", "/v3/"
"""The beginnings of the paths of DeepL's API."""

LIBRETRANSLATE = "/translate", "/detect", "/download_file/", "/suggest", "/frontend/"
"""The beginnings of the paths of LibreTranslate's API with a key, whose status for a missing key is 400."""

DEEPLX = "/deeplx/"
"""The beginning of the paths of DeepLX's API."""

PATHS_OF_OTHERS = {
    "/imme": "/immersive",
    "/kiss": "/deeplx/translate",
    "/v1/translate": "/translate",
    "/api/translate": "/translate",
    "/translate_a/single": "/translate",
    "/v1/chat/completions": "/translate",
}
"""The paths at which other servers answer the same tools, and ours."""


class ApiError(Exception):
    """The request can't be answered, for a reason that the client may know."""

    def __init__(self, status: int, message: str, retry_after: int | None = None) -> None:
        """Store the response.

        Args:
            status: 400, 401, 403, 404, 408, 413, 415, 421, 429, 501 or 503.
            message: the error message.
            retry_after: the seconds after which the client should retry.
        """
        super().__init__(message)
        self.status, self.message, self.retry_after = status, message, retry_after


class ServerError(Exception):
    """An error in the server, its models or its files, which no request has caused."""


class GoneError(ApiError):
    """A document does not exist, or not any more."""

    def __init__(self) -> None:
        """Use a message that does not reveal whether the document ever existed."""
        super().__init__(404, "There is no such file, or not any more")


class ClientLeft(Exception):  # noqa: N818  # no error of ours
    """The client has disconnected, so that nobody needs an answer."""


def answer_errors(app: FastAPI) -> None:
    """Register handlers that turn exceptions into error responses."""

    @app.exception_handler(ApiError)
    @app.exception_handler(UserError)
    @app.exception_handler(ServerError)
    @app.exception_handler(OSError)
    @app.exception_handler(sqlite3.Error)
    async def failed(request: Request, error: Exception) -> JSONResponse:
        status, message = status_of(error)
        if status == 401 and _path_of(request.scope).startswith(LIBRETRANSLATE):
            status = 400
        response = JSONResponse(error_body(request.scope, message, status), status)
        if status == 401:
            response.headers["WWW-Authenticate"] = "Bearer"
        if retry_after := getattr(error, "retry_after", None):
            response.headers["Retry-After"] = str(retry_after)
        return response

    @app.exception_handler(HTTPException)
    async def routing(request: Request, error: HTTPException) -> JSONResponse:
        message = error.detail
        if error.status_code == 404:
            message = f"{message}{_hint(request)}"
        body = error_body(request.scope, message, error.status_code)
        return JSONResponse(body, error.status_code, error.headers)

    @app.exception_handler(ClientLeft)
    @app.exception_handler(ClientDisconnect)
    async def client_left(_: Request, error: Exception) -> Response:
        return Response(status_code=CLIENT_CLOSED_REQUEST)


def _hint(request: Request) -> str:
    """Return the path that was probably meant, as a sentence; "" if none is similar."""
    path = request.url.path.removeprefix(request.scope.get("root_path", ""))
    known_paths = [known for known in request.app.openapi()["paths"] if "{" not in known]
    meant = PATHS_OF_OTHERS.get(path)
    last = path.rpartition("/")[2]
    if meant is None and f"/{last}" in known_paths:
        meant = f"/{last}"
    meant = meant or next(iter(get_close_matches(path[:100], known_paths, 1, 0.75)), None)
    return f": there is no {path[:100]}, but {meant}" if meant else ""


def status_of(error: BaseException) -> tuple[int, str]:
    """Return the status and the message of an error; errors of the server itself are logged, and never 400."""
    if isinstance(error, ApiError):
        return error.status, error.message
    # The file of a client's document is a text; a path is a file on this machine, such as that of a damaged run.
    if isinstance(error, UserError) and not isinstance(error.file, Path):
        return 400, str(error)
    log.error("a request failed", exc_info=error)
    if _is_full(error):
        return 503, NO_ROOM
    return 500, INTERNAL


def error_body(scope: Scope, message: str, status: int) -> dict[str, Any]:
    """Return the body of an error response in the form of the API to which the path belongs."""
    path = _path_of(scope)
    if path.startswith(DEEPLX):
        return {"code": status, "message": message}
    return {"message" if path.startswith(DEEPL) else "error": message}


def _path_of(scope: Scope) -> str:
    path: str = scope["path"].removeprefix(scope.get("root_path", ""))
    return path


def _is_full(error: BaseException) -> bool:
    """Return whether an error is that the disk, or the user's quota of it, is full."""
    if isinstance(error, sqlite3.Error):
        return getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL
    return isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
