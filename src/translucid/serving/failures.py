"""What a client is told when there is no result, as LibreTranslate's clients expect it: {"error": "..."}."""

from __future__ import annotations

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from translucid.ground.errors import UserError

LEFT = 499
"""What stands for the status of a request whose client has left before its answer, as in nginx's logs."""


class ApiError(Exception):
    """The request can't be answered."""

    def __init__(self, status: int, message: str, retry_after: int | None = None) -> None:
        """`status`: 400, 403, 404, 408, 413, 415, 421, 429 or 503; `retry_after`: seconds after which to come again."""
        super().__init__(message)
        self.status, self.message, self.retry_after = status, message, retry_after


class ClientLeft(Exception):  # noqa: N818  # no error of ours
    """Nobody is there to be answered."""


def answer_errors(app: FastAPI) -> None:
    """Let an application tell every error."""

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

    @app.exception_handler(ClientLeft)
    @app.exception_handler(ClientDisconnect)
    async def nobody_there(_: Request, error: Exception) -> Response:
        return Response(status_code=LEFT)
