"""What a client is told when there is no result: {"error": "..."} as LibreTranslate's expect it, or as DeepL's do."""

from __future__ import annotations

import errno
import logging
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import Scope

from translucid.ground.errors import UserError

log = logging.getLogger("translucid.serving")

LEFT = 499
"""What stands for the status of a request whose client has left before its answer, as in nginx's logs."""

INTERNAL = "Internal error; it is in the server's log"
"""All that a client is told of what goes wrong in the server itself."""

NO_ROOM = "The server's disk is full, please come again later"

DEEPL = "/v2/", "/v3/"
"""What the paths of DeepL's API begin with."""


class ApiError(Exception):
    """The request can't be answered."""

    def __init__(self, status: int, message: str, retry_after: int | None = None) -> None:
        """`status`: 400, 403, 404, 408, 413, 415, 421, 429 or 503; `retry_after`: seconds after which to come again."""
        super().__init__(message)
        self.status, self.message, self.retry_after = status, message, retry_after


class ServerError(Exception):
    """Something is wrong with the server, its models or its files: no request is to blame for it."""


class GoneError(ApiError):
    """A document is not there, or not any more."""

    def __init__(self) -> None:
        """Say no more than that: whether it ever was there is nobody's business."""
        super().__init__(404, "There is no such file, or not any more")


class ClientLeft(Exception):  # noqa: N818  # no error of ours
    """Nobody is there to be answered."""


def answer_errors(app: FastAPI) -> None:
    """Let an application tell every error."""

    @app.exception_handler(ApiError)
    async def told(request: Request, error: ApiError) -> JSONResponse:
        headers = {"Retry-After": str(error.retry_after)} if error.retry_after else None
        return JSONResponse(said(request.scope, error.message), error.status, headers)

    @app.exception_handler(UserError)
    @app.exception_handler(ServerError)
    @app.exception_handler(OSError)
    @app.exception_handler(sqlite3.Error)
    async def failed(request: Request, error: Exception) -> JSONResponse:
        status, message = status_of(error)
        return JSONResponse(said(request.scope, message), status)

    @app.exception_handler(HTTPException)
    async def routing(request: Request, error: HTTPException) -> JSONResponse:
        return JSONResponse(said(request.scope, error.detail), error.status_code, error.headers)

    @app.exception_handler(ClientLeft)
    @app.exception_handler(ClientDisconnect)
    async def nobody_there(_: Request, error: Exception) -> Response:
        return Response(status_code=LEFT)


@contextmanager
def no_request_to_blame() -> Iterator[None]:
    """Within it, a `UserError` is about the server's own models and files, and becomes a `ServerError`.

    A model whose weights are damaged, for instance, fails in the middle of a search for any text.
    """
    try:
        yield
    except UserError as error:
        raise ServerError(str(error)) from error


def status_of(error: BaseException) -> tuple[int, str]:
    """Return the status and the message of an error; what goes wrong in the server itself is logged, and never 400."""
    if isinstance(error, ApiError):
        return error.status, error.message
    # A document has a name; a path is one of this machine, such as that of a damaged run.
    if isinstance(error, UserError) and not isinstance(error.file, Path):
        return 400, str(error)
    log.error("a request failed", exc_info=error)
    return (503, NO_ROOM) if _is_full(error) else (500, INTERNAL)


def said(scope: Scope, message: str) -> dict[str, str]:
    """Return an error in the words of the API that was asked."""
    path = scope["path"].removeprefix(scope.get("root_path", ""))
    return {"message" if path.startswith(DEEPL) else "error": message}


def _is_full(error: BaseException) -> bool:
    if isinstance(error, sqlite3.Error):
        return getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL
    return isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
