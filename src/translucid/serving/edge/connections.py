"""Connections: how many there may be, and how long one may be silent; uvicorn asks for a class that knows."""

from __future__ import annotations

import asyncio
import socket
import sys
import time
from typing import Any

from uvicorn import Server
from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_SECONDS = 10.0
"""That the head of a request may take, from the connection or its first byte on."""
READ_SECONDS = 30
"""That a client may leave bytes of an answer lying."""
AT_ONCE = 256
"""Connections that are taken in before any of them is looked at."""
MOST = 1000
"""Connections, if the system allows so many."""
_OTHER_FILES = 128
"""Descriptors kept for all that is no connection."""


def most_connections() -> int:
    """Return how many connections there may be; as many descriptors as that takes are asked of the system."""
    if sys.platform == "win32":
        return MOST
    import resource

    wanted = MOST + AT_ONCE + _OTHER_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        return max(16, soft - AT_ONCE - _OTHER_FILES)
    return MOST


class Connection(H11Protocol):
    """A connection that has to say in time what it wants."""

    most = MOST
    """That there may be; set before the server runs."""

    def __init__(self, *given: Any, **named: Any) -> None:
        """See uvicorn."""
        super().__init__(*given, **named)
        self.silent_since = 0.0
        self.late: asyncio.TimerHandle | None = None

    @property
    def waits_for_answer(self) -> bool:
        """Whether there is a request that has no answer yet."""
        return self.cycle is not None and not self.cycle.response_complete

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take it in; if there are too many, the one that has been silent longest has to go."""
        super().connection_made(transport)
        self.silent_since = time.monotonic()
        if hasattr(socket, "TCP_USER_TIMEOUT") and (own := transport.get_extra_info("socket")):
            own.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, READ_SECONDS * 1000)
        if len(self.connections) > self.most:
            others = (one for one in self.connections if isinstance(one, Connection) and not one.waits_for_answer)
            min(others, key=lambda one: one.silent_since, default=self).transport.abort()
        self._expect_head()

    def data_received(self, data: bytes) -> None:
        """Read on."""
        super().data_received(data)
        self._expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget it."""
        self._stop_waiting()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        self.silent_since = time.monotonic()
        super().on_response_complete()

    def _expect_head(self) -> None:
        """Let the time for a head run while there is none."""
        if self.waits_for_answer:
            self._stop_waiting()
        elif self.late is None:
            self.late = self.loop.call_later(HEAD_SECONDS, self.transport.abort)

    def _stop_waiting(self) -> None:
        if self.late is not None:
            self.late.cancel()
            self.late = None


class Listening(Server):
    """A server that takes connections in a few at a time, but lets many wait for it."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin."""
        await super().startup(sockets)
        for one in sockets or []:
            one.listen(2048)  # uvicorn has asked for as many as are taken in at once
