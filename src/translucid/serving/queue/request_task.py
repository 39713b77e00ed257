"""The work of one request: its client, its time limit, and whether anybody still waits for it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, TypeVar

from fastapi import Request

from translucid.ground.cancellation import Cancelled
from translucid.serving.edge.failures import ApiError, ClientLeft

if TYPE_CHECKING:
    from translucid.serving.queue.request_context import RequestContext

Result = TypeVar("Result")


class Task:
    """Work for a client; it is over when nobody waits for it any more, or the time limit is exceeded."""

    def __init__(self, client: str, seconds: float) -> None:
        """Start the time limit.

        Args:
            client: a key or an address, for fair scheduling.
            seconds: the time limit of all work.
        """
        self.client, self.seconds = client, seconds
        self.end = time.monotonic() + seconds
        self.left = False

    def over(self) -> bool:
        """Return whether nobody waits for the work any more."""
        return self.left or time.monotonic() >= self.end


class RequestTask(Task):
    """All work of one request; it is also over when the client has disconnected."""

    def __init__(self, context: RequestContext, request: Request, client: str, seconds: float | None = None) -> None:
        """Start the time limit, which is that of the server's options unless it is given."""
        super().__init__(client, context.options.seconds if seconds is None else seconds)
        self.context, self.request = context, request

    async def run(self, work: Callable[[], Result]) -> Result:
        """Do a part of the work in the worker pool, and wait for its result; raises the errors of `result`."""
        return await self.result(self.context.worker_pool.submit(self, work))

    async def result(self, future: Future[Result]) -> Result:
        """Wait for a part of the work until the time limit, or until the client disconnects.

        Raises:
            ApiError: 503, the work took too long.
            ClientLeft: the client has disconnected.
        """
        wrapped = asyncio.wrap_future(future)
        gone = asyncio.ensure_future(until_disconnected(self.request))
        try:
            seconds = max(0.0, self.end - time.monotonic())
            either: set[asyncio.Future[Any]] = {wrapped, gone}
            await asyncio.wait(either, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            if wrapped.done():
                return wrapped.result()
            if gone.done():
                raise ClientLeft
            raise Cancelled
        except Cancelled:
            raise ApiError(503, f"It took more than {self.seconds:g} seconds", retry_after=10) from None
        finally:
            if not wrapped.done():
                self.left = True  # the work ends at its next step
                wrapped.cancel()
            gone.cancel()


async def until_disconnected(request: Request) -> None:
    """Return when the client has disconnected."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
