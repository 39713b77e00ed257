"""What all routes share: models and limits, reading and checking requests, their tasks, and the base of handlers."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, TypeVar

import prometheus_client
from fastapi import Request
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile

from bitext.cancellation import Cancelled
from translucid.serving.catalog import Catalog
from translucid.serving.edge.failures import ApiError, ClientLeft
from translucid.serving.edge.incoming import Bodies, read_fields, read_upload
from translucid.serving.edge.rate_limits import RateLimits
from translucid.serving.language_pairs import AnyServed
from translucid.serving.queue.fair_scheduler import Task, WorkerPool
from translucid.serving.routes.memory import MemoryRoutes
from translucid.serving.server_options import ServerOptions

Result = TypeVar("Result")

WORK = "translucid.work"
"""The entry of a request's scope with the characters that it had translated, a `Counter` by language pair."""
ON_THE_LOOP = 2000
"""The maximum number of characters in a text that is processed on the event loop, which takes about a millisecond."""


class Usage:
    """Metrics of what is translated, by language pair, such as `en-es`."""

    def __init__(self) -> None:
        """Begin at 0."""
        counter = prometheus_client.Counter
        self.texts = counter("translucid_texts_total", "Texts to translate", ["pair"], registry=None)
        self.characters = counter("translucid_characters_total", "Their characters", ["pair"], registry=None)

    def count(self, pair: str, texts: Sequence[str]) -> None:
        """Count texts that are translated."""
        self.texts.labels(pair).inc(len(texts))
        self.characters.labels(pair).inc(sum(map(len, texts)))


@dataclass(frozen=True)
class RequestContext:
    """The shared objects of the server, with methods that read requests and check their keys and rate limits."""

    catalog: Catalog
    options: ServerOptions
    rate_limits: RateLimits
    memory: MemoryRoutes | None = None
    lessons: bool = False
    """Whether the server has the interactive lessons."""
    bodies: Bodies = field(default_factory=Bodies)
    worker_pool: WorkerPool = field(default_factory=WorkerPool)
    usage: Usage = field(default_factory=Usage)

    async def fields(self, request: Request, *, light: bool = False) -> tuple[dict[str, Any], RequestTask]:
        """Read and check a request; ten light ones, which take little work, count as one.

        Raises:
            ApiError: the request is invalid or refused.
        """
        fields = await read_fields(request, self.bodies, self.options)
        return fields, RequestTask(self, request, self.rate_limits.check(request, fields, light=light))

    async def upload(
        self, request: Request, missing_message: str = "Invalid request: missing file parameter"
    ) -> tuple[dict[str, Any], UploadFile, str]:
        """Read and check a request with a file; return its fields, the file, and the client.

        Args:
            request: the request.
            missing_message: the error message if there is no file.

        Raises:
            ApiError: the request is invalid or refused.
        """
        fields, file = await read_upload(request, self.bodies, self.options)
        client = self.rate_limits.check(request, fields)
        if file is None:
            raise ApiError(400, missing_message)
        return fields, file, client

    def task(self, request: Request, fields: dict[str, Any]) -> RequestTask:
        """Return the work of a request with these fields.

        Raises:
            ApiError: the request is refused.
        """
        return RequestTask(self, request, self.rate_limits.check(request, fields))


class RequestTask(Task):
    """All work of one request; it is also over when the client has disconnected."""

    def __init__(
        self, context: RequestContext, request: Request | None, client: str, seconds: float | None = None
    ) -> None:
        """Start the time limit, which is that of the server's options unless it is given.

        Without a request, the work has no connection: whoever waits for it cancels it.
        """
        super().__init__(client, context.options.seconds if seconds is None else seconds)
        self.context, self.request = context, request

    def count(self, served: AnyServed, texts: Sequence[str]) -> None:
        """Count texts that this request translates, for the metrics and the log."""
        pair = f"{served.source}-{served.target}"
        self.context.usage.count(pair, texts)
        if self.request:
            self.request.scope.setdefault(WORK, Counter())[pair] += sum(map(len, texts))

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
        disconnected = asyncio.ensure_future(until_disconnected(self.request))
        try:
            seconds = max(0.0, self.seconds_left())
            futures: set[asyncio.Future[Any]] = {wrapped, disconnected}
            await asyncio.wait(futures, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            if wrapped.done():
                return wrapped.result()
            if disconnected.done():
                raise ClientLeft
            raise Cancelled
        except Cancelled:
            raise ApiError(503, f"It took more than {self.seconds:g} seconds", retry_after=10) from None
        finally:
            if not wrapped.done():
                self.abandoned = True  # the work ends at its next step
                wrapped.cancel()
            disconnected.cancel()


async def until_disconnected(request: Request | None) -> None:
    """Return when the client has disconnected; never without a request."""
    if request is None:
        await asyncio.Future[None]()
        return
    while (await request.receive())["type"] != "http.disconnect":
        pass


@dataclass(frozen=True)
class Handlers:
    """The handlers of an API; `routing.py` binds them to their paths."""

    context: RequestContext


async def off_the_loop(size: int, work: Callable[[], Result]) -> Result:
    """Do work whose time depends on the size of a text: in a thread, unless the text is short."""
    if size <= ON_THE_LOOP:
        return work()
    return await run_in_threadpool(work)
