"""The context of all routes: the models, the limits, and the way from a request to a task."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from fastapi import Request
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile

from translucid.serving.catalogue import Catalogue
from translucid.serving.edge.failures import ApiError
from translucid.serving.edge.incoming import Bodies, read_fields, read_image, read_upload
from translucid.serving.edge.rate_limits import RateLimits
from translucid.serving.queue.request_task import RequestTask
from translucid.serving.queue.worker_pool import WorkerPool
from translucid.serving.routes.memory import MemoryRoutes
from translucid.serving.server_options import ServerOptions

Result = TypeVar("Result")

ON_THE_LOOP = 2000
"""The most characters of a text that is processed on the event loop, which takes about a millisecond."""


@dataclass(frozen=True)
class RequestContext:
    """The shared objects of the server, with methods that read requests and check their keys and rate limits."""

    catalogue: Catalogue
    options: ServerOptions
    guard: RateLimits
    memory: MemoryRoutes | None = None
    lessons: bool = False
    """Whether the server has the interactive lessons."""
    bodies: Bodies = field(default_factory=Bodies)
    worker_pool: WorkerPool = field(default_factory=WorkerPool)

    async def fields(self, request: Request, *, light: bool = False) -> tuple[dict[str, Any], RequestTask]:
        """Read and check a request; ten light ones, which take little work, count as one.

        Raises:
            ApiError: the request is invalid or refused.
        """
        fields = await read_fields(request, self.bodies, self.options)
        return fields, RequestTask(self, request, self.guard.check(request, fields, light=light))

    async def upload(
        self, request: Request, without: str = "Invalid request: missing file parameter"
    ) -> tuple[dict[str, Any], UploadFile, str]:
        """Read and check a request with a file; return its fields, the file, and the client.

        Args:
            request: the request.
            without: the error message if there is no file.

        Raises:
            ApiError: the request is invalid or refused.
        """
        fields, file = await read_upload(request, self.bodies, self.options)
        client = self.guard.check(request, fields)
        if file is None:
            raise ApiError(400, without)
        return fields, file, client

    async def image(self, request: Request) -> tuple[dict[str, Any], bytes, RequestTask]:
        """Read and check a request with an image.

        Raises:
            ApiError: the request is invalid or refused.
        """
        fields, image = await read_image(request, self.bodies, self.options)
        return fields, image, RequestTask(self, request, self.guard.check(request, fields))


async def off_the_loop(size: int, work: Callable[[], Result]) -> Result:
    """Do work whose time depends on the size of a text: in a thread, unless the text is short."""
    if size <= ON_THE_LOOP:
        return work()
    return await run_in_threadpool(work)
