"""What a client is told when there is no result: {"error": "..."} as LibreTranslate's expect it, or as DeepL's do."""

from __future__ import annotations

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from translucid.ground.errors import UserError

LEFT = 499
"""What stands for the status of a request whose client has left before its answer, as in nginx's logs."""

DEEPL = "/v2/"
"""What the paths of DeepL's API begin with."""


class ApiError(Exception):
    """The request can't be answered."""

    def __init__(self, status: int, message: str, retry_after: int | None = None) -> None:
        """`status`: 400, 403, 404, 408, 413, 415, 421, 429 or 503; `retry_after`: seconds after which to come again."""
        super().__init__(message)
        self.status, self.message, self.retry_after = status, message, retry_after


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
        return JSONResponse(_said(request, error.message), error.status, headers)

    @app.exception_handler(UserError)
    async def input_is_wrong(request: Request, error: UserError) -> JSONResponse:
        return JSONResponse(_said(request, str(error)), 400)

    @app.exception_handler(HTTPException)
    async def routing(request: Request, error: HTTPException) -> JSONResponse:
        return JSONResponse(_said(request, error.detail), error.status_code, error.headers)

    @app.exception_handler(ClientLeft)
    @app.exception_handler(ClientDisconnect)
    async def nobody_there(_: Request, error: Exception) -> Response:
        return Response(status_code=LEFT)


def _said(request: Request, message: str) -> dict[str, str]:
    """Return an error in the words of the API that was asked."""
    path = request.url.path.removeprefix(request.scope.get("root_path", ""))
    return {"message" if path.startswith(DEEPL) else "error": message}
