"""The bodies of requests on their way in: bounded in bytes, each and all together, and in time."""

from __future__ import annotations

import asyncio

from fastapi import Request
from starlette.types import Scope

from translucid.serving.failures import ApiError

SECONDS = 30.0
"""That a body may take to come in."""
SMALL = 1 << 16
"""Bytes that every connection may have; a body of more counts towards what all may have together."""
TOGETHER = 1 << 26
"""Bytes that all larger bodies may have, from their first byte to the end of the answer."""
_HELD = "translucid.held"


class Bodies:
    """Reads bodies, and knows how many bytes of them there are."""

    def __init__(self, seconds: float = SECONDS, together: int = TOGETHER) -> None:
        self.seconds, self.together = seconds, together
        self.held = 0

    async def read(self, request: Request, most: int) -> bytes:
        """Return the body of a request, of which no more than `most` bytes are ever held.

        Raises:
            ApiError: 408, it comes too slowly; 413, it is too large; 503, there is no room for it now.
            ClientDisconnect: the client leaves in the middle.
        """
        announced = request.headers.get("content-length", "")
        if announced.isdecimal() and (len(announced) > 15 or int(announced) > most):
            raise ApiError(413, f"Invalid request: more than {most} bytes")
        body = bytearray()
        try:
            async with asyncio.timeout(self.seconds):
                async for chunk in request.stream():
                    body += chunk
                    if len(body) > most:
                        raise ApiError(413, f"Invalid request: more than {most} bytes")
                    self._hold(request.scope, len(body))
        except TimeoutError:
            raise ApiError(408, f"The body took more than {self.seconds:g} seconds to come in") from None
        return bytes(body)

    def _hold(self, scope: Scope, size: int) -> None:
        if size <= SMALL:
            return
        more = size - scope.get(_HELD, 0)
        if self.held + more > self.together:
            raise ApiError(503, "The server is busy with large requests, please come again", retry_after=10)
        self.held += more
        scope[_HELD] = size

    def release(self, scope: Scope) -> None:
        """Forget the body of a request that has its answer."""
        self.held -= scope.pop(_HELD, 0)
