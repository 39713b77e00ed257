"""What every route needs: the models, the limits, and the way from a request to an task."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from fastapi import Request
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile

from translucid.serving.catalogue import Catalogue
from translucid.serving.edge.incoming import Bodies, read_fields, read_image, read_upload
from translucid.serving.edge.rate_limits import RateLimits
from translucid.serving.queue.request_task import RequestTask
from translucid.serving.queue.worker_pool import WorkerPool
from translucid.serving.routes.memory import MemoryRoutes
from translucid.serving.server_options import ServerOptions

Result = TypeVar("Result")

ON_THE_LOOP = 2000
"""Characters of a text that may be looked through on the event loop; it takes a millisecond."""


@dataclass(frozen=True)
class RequestContext:
    """Where requests are taken in."""

    catalogue: Catalogue
    options: ServerOptions
    guard: RateLimits
    memory: MemoryRoutes | None = None
    lessons: bool = False
    """Whether the lessons are on the same server."""
    bodies: Bodies = field(default_factory=Bodies)
    worker_pool: WorkerPool = field(default_factory=WorkerPool)

    async def fields(self, request: Request) -> tuple[dict[str, Any], RequestTask]:
        """Read a request, and let it in.

        Raises:
            ApiError: it can't be read, or it may not come in.
        """
        fields = await read_fields(request, self.bodies, self.options)
        return fields, RequestTask(self.guard.check(request, fields), self.options.seconds)

    async def light_fields(self, request: Request) -> tuple[dict[str, Any], RequestTask]:
        """Read a request that asks little, such as a correction, and let it in: ten of them count as one request.

        Raises:
            ApiError: it can't be read, or it may not come in.
        """
        fields = await read_fields(request, self.bodies, self.options)
        return fields, RequestTask(self.guard.check(request, fields, light=True), self.options.seconds)

    async def upload(self, request: Request) -> tuple[dict[str, Any], UploadFile | None, str]:
        """Read a request with a file, and let it in; return its fields, the file, and who it is from.

        Raises:
            ApiError: it can't be read, or it may not come in.
        """
        fields, file = await read_upload(request, self.bodies, self.options)
        return fields, file, self.guard.check(request, fields)

    async def image(self, request: Request) -> tuple[dict[str, Any], bytes, RequestTask]:
        """Read a request with an image, and let it in.

        Raises:
            ApiError: it can't be read, or it may not come in.
        """
        fields, image = await read_image(request, self.bodies, self.options)
        return fields, image, RequestTask(self.guard.check(request, fields), self.options.seconds)


async def off_the_loop(size: int, work: Callable[[], Result]) -> Result:
    """Do what takes time with the size of a text: in a thread, unless the text is short."""
    return work() if size <= ON_THE_LOOP else await run_in_threadpool(work)
