"""Errors that a client is told, as LibreTranslate's clients expect them: {"error": "..."}."""

from __future__ import annotations


class ApiError(Exception):
    """The request can't be answered."""

    def __init__(self, status: int, message: str, retry_after: int | None = None) -> None:
        """`status`: 400, 403, 404, 408, 413, 415, 421, 429 or 503; `retry_after`: seconds after which to come again."""
        super().__init__(message)
        self.status, self.message, self.retry_after = status, message, retry_after


class ClientLeft(Exception):  # noqa: N818  # no error of ours
    """Nobody is there to be answered."""
