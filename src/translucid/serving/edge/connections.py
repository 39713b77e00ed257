"""Limits of connections, their number and the time in which a client must send a request, as classes for uvicorn."""

from __future__ import annotations

import asyncio
import socket
import sys
import time
from collections.abc import Callable
from typing import Any

from h11 import Request
from uvicorn import Server
from uvicorn.protocols.http.h11_impl import H11Protocol

from translucid.ground.console import Console

HEAD_SECONDS = 10.0
"""The time limit for the head of a request in seconds, from the connection or the previous answer on."""
READ_SECONDS = 30
"""The seconds after which a client that acknowledges no bytes of an answer is disconnected."""
BACKLOG = 256
"""The number of connections that uvicorn accepts before it handles any of them (its backlog)."""
MOST = 1000
"""The maximum number of connections, if the system allows so many."""
_OTHER_FILES = 128
"""File descriptors that are reserved for everything but connections."""


def max_connections() -> int:
    """Raise the process's limit of file descriptors as far as necessary; return the maximum number of connections."""
    if sys.platform == "win32":
        return MOST
    import resource

    needed = MOST + BACKLOG + _OTHER_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return MOST
    soft = needed
    if hard != resource.RLIM_INFINITY:
        soft = min(needed, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return max(16, soft - BACKLOG - _OTHER_FILES)


class Connection(H11Protocol):
    """A connection that is closed if no request arrives in time."""

    max_connections = MOST
    """The maximum number of connections; set before the server starts."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        """Take uvicorn's arguments."""
        super().__init__(*arguments, **options)
        self.idle_since = 0.0
        self.timeout: asyncio.TimerHandle | None = None
        self.is_websocket = False

    @property
    def waits_for_answer(self) -> bool:
        """Whether a request has no complete answer yet."""
        return self.cycle is not None and not self.cycle.response_complete

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Accept a connection; if there are too many, close the one that has been idle longest."""
        super().connection_made(transport)
        self.idle_since = time.monotonic()
        # On Linux, the system ends a connection whose client reads nothing.
        if hasattr(socket, "TCP_USER_TIMEOUT") and (stream := transport.get_extra_info("socket")):
            stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, READ_SECONDS * 1000)
        if len(self.connections) > self.max_connections:
            idle = [other for other in self.connections if isinstance(other, Connection) and not other.waits_for_answer]
            min(idle, key=lambda connection: connection.idle_since, default=self).transport.abort()
        self._expect_head()

    def data_received(self, data: bytes) -> None:
        """Parse data, and stop the timeout if a head is complete."""
        super().data_received(data)
        self._expect_head()

    def handle_websocket_upgrade(self, event: Request) -> None:
        """Leave the connection to the protocol of WebSockets, which has times of its own."""
        self.is_websocket = True
        super().handle_websocket_upgrade(event)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timeout of a closed connection."""
        self._stop_timeout()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        self.idle_since = time.monotonic()
        super().on_response_complete()

    def _expect_head(self) -> None:
        """Start the timeout unless there is a request."""
        if self.waits_for_answer or self.is_websocket:
            self._stop_timeout()
        elif self.timeout is None:
            self.timeout = self.loop.call_later(HEAD_SECONDS, self.transport.abort)

    def _stop_timeout(self) -> None:
        if self.timeout is not None:
            self.timeout.cancel()
            self.timeout = None


class Listening(Server):
    """A server that accepts a few connections at a time, but lets many wait in the system's queue."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, and lengthen the queue: uvicorn makes it as long as the number of connections it accepts at once."""
        await super().startup(sockets)
        for listener in sockets or []:
            listener.listen(2048)  # the system may reduce this, on Linux to net.core.somaxconn

    on_shutdown: Callable[[], object] = staticmethod(lambda: None)
    """Called before requests are finished: it ends those that would not end by themselves."""

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Say that the server stops, and finish the requests that are running."""
        running = len(self.server_state.tasks)
        if running:
            requests = "1 request is" if running == 1 else f"{running} requests are"
            Console(stderr=True).print(f"stopping; {requests} running")
        self.on_shutdown()
        await super().shutdown(sockets)
