"""Live translation over a WebSocket, over requests and server-sent events, and on a page for streaming software."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.resources import files
from typing import Any

from fastapi import WebSocket, WebSocketDisconnect
from fastapi.responses import JSONResponse, RedirectResponse, Response, StreamingResponse

from translucid.live.fields import EventFields, LiveFields, OverlayFields, PartFields, SessionName
from translucid.serving.edge.failures import ApiError, ClientLeft, status_of
from translucid.serving.edge.rendering import Asset
from translucid.serving.live_sessions import GoneSessionError, Message, ServedSession
from translucid.serving.requests import Call, Fields, Flag, Handlers, LimitedText, RequestTask, encodable

SOCKETS = 256
"""The maximum number of WebSockets."""
FIRST_SECONDS = 10.0
"""The seconds in which the first message must arrive."""
SEND_SECONDS = 20.0
"""The seconds after which a client that reads nothing is disconnected."""
WAITING_PARTS = 8
"""The parts of a text that wait for their turn; then no more are read from the connection."""
HEARTBEAT_SECONDS = 15.0
"""The interval of comments that keep an idle stream of events open."""
_CLOSE_CODES = {429: 1013, 500: 1011, 503: 1013}
"""The codes with which a WebSocket is closed after an error, by the status of the error; 1008 for others."""


class WatchFields(Fields):
    """The first message of a WebSocket that watches a session."""

    watch: SessionName


class SocketPart(Fields):
    """A message with the next part of the text."""

    text: LimitedText = ""
    finish: Flag = False


class LiveRoutes(Handlers):
    """The handlers; `routing.py` binds them to their paths."""

    async def open(self, call: Call[LiveFields]) -> JSONResponse:
        """Begin a session."""
        session = self._open(call.fields, call.task.client)
        return JSONResponse({"session": session.name})

    async def send(self, call: Call[PartFields]) -> JSONResponse:
        """Read a part of a text."""
        fields = call.fields
        session = self.context.live_sessions.find(call.task.client, fields.session)
        return JSONResponse(await session.read(call.task, fields.text, finish=fields.finish))

    async def events(self, call: Call[EventFields]) -> StreamingResponse:
        """Send what is written as server-sent events."""
        session = self.context.live_sessions.find(call.task.client, call.fields.session)
        headers = {"Cache-Control": "no-store"}
        return StreamingResponse(_events(session), media_type="text/event-stream", headers=headers)

    async def socket(self, websocket: WebSocket) -> None:
        """Answer a WebSocket: a session of its own, or one that is watched; see docs/live.md."""
        await websocket.accept()
        with suppress(ClientLeft, WebSocketDisconnect, RuntimeError):
            try:
                with self._counted():
                    await _unless_disconnected(websocket, self._converse)
                code = 1000
            except ClientLeft:
                raise
            except Exception as error:
                status, message = status_of(error)
                await _sent(websocket, {"error": message, "status": status})
                code = _CLOSE_CODES.get(status, 1008)
            await websocket.close(code)

    async def overlay(self, call: Call[OverlayFields]) -> Response:
        """Return the page for streaming software."""
        if call.fields.overlay is None:
            return RedirectResponse(self.context.options.url_prefix + "/")
        assert call.task.request
        return await _OVERLAY[call.fields.overlay or "html"].answer(call.task.request)

    def _open(self, fields: LiveFields, client: str, *, connected: bool = False) -> ServedSession:
        catalog = self.context.catalog
        source, target = catalog.usual_codes(fields.source, fields.target)
        if source is None:
            raise ApiError(400, "Invalid request: live translation needs the source language")
        served = catalog.addressing(catalog.find(source, target, fields.model or None), fields.formality or None)
        return self.context.live_sessions.open(
            client, fields.session, served, fields.options, records=fields.record, connected=connected
        )

    @contextmanager
    def _counted(self) -> Iterator[None]:
        """Count a WebSocket within the block.

        Raises:
            ApiError: 503, there are too many.
        """
        sessions = self.context.live_sessions
        if sessions.closed or sessions.sockets >= SOCKETS:
            raise ApiError(503, "The server is busy with live translation, please come again", retry_after=10)
        sessions.sockets += 1
        try:
            yield
        finally:
            sessions.sockets -= 1

    async def _converse(self, websocket: WebSocket, parts: asyncio.Queue[str]) -> None:
        """Answer the messages of a WebSocket until it is closed."""
        try:
            async with asyncio.timeout(FIRST_SECONDS):
                values = _object(await parts.get())
        except TimeoutError:
            raise ApiError(408, f"The first message took more than {FIRST_SECONDS:g} seconds to come in") from None
        client = self.context.rate_limits.check(websocket, values, light="watch" in values)
        if "watch" in values:
            name = WatchFields.of(values, self.context).watch
            await _show(websocket, self.context.live_sessions.find(client, name), parts)
            return
        fields = LiveFields.of(values, self.context)
        session = self._open(fields, client, connected=True)
        try:
            await _sent(websocket, {"session": session.name})
            while True:
                part = SocketPart.of(_object(await _next_part(session, parts)), self.context)
                task = RequestTask(self.context, None, client)
                await _sent(websocket, await session.read(task, part.text, finish=part.finish))
        finally:
            session.close()


async def _show(websocket: WebSocket, session: ServedSession, parts: asyncio.Queue[str]) -> None:
    """Send the messages of a session that is watched."""
    with session.watch() as watcher:
        while (message := await _either(watcher.messages.get(), parts.get())) is not None:
            if isinstance(message, str):
                raise ApiError(400, "Invalid request: this connection watches a session, and takes no text")
            await _sent(websocket, message)


async def _next_part(session: ServedSession, parts: asyncio.Queue[str]) -> str:
    """Return the next message of a client.

    Raises:
        GoneSessionError: the session has ended.
    """
    part = await _either(parts.get(), session.ended.wait())
    if not isinstance(part, str):
        raise GoneSessionError
    return part


async def _either(*awaitables: Awaitable[Any]) -> Any:
    """Return the result of the first that is done, and cancel the others."""
    futures = list(map(asyncio.ensure_future, awaitables))
    try:
        done, _ = await asyncio.wait(futures, return_when=asyncio.FIRST_COMPLETED)
        return done.pop().result()
    finally:
        await _end(futures)


async def _end(futures: Sequence[asyncio.Future[Any]]) -> None:
    """Cancel futures and wait until they have ended, even if the caller is cancelled meanwhile, too."""
    for future in futures:
        future.cancel()
    cancelled: asyncio.CancelledError | None = None
    while not all(future.done() for future in futures):
        try:
            await asyncio.wait(futures)
        except asyncio.CancelledError as error:
            cancelled = error
    for future in futures:
        if not future.cancelled():
            future.exception()  # otherwise, asyncio reports that nobody asked for it
    if cancelled:
        raise cancelled


async def _unless_disconnected(
    websocket: WebSocket, converse: Callable[[WebSocket, asyncio.Queue[str]], Awaitable[None]]
) -> None:
    """Answer the messages of a WebSocket, until this ends or the client disconnects.

    Raises:
        ClientLeft: the client has disconnected.
    """
    parts: asyncio.Queue[str] = asyncio.Queue(WAITING_PARTS)

    async def receive() -> None:
        while (message := await websocket.receive())["type"] == "websocket.receive":
            await parts.put(message.get("text") or "")
        raise ClientLeft

    await _either(converse(websocket, parts), receive())


async def _sent(websocket: WebSocket, message: Message) -> None:
    """Send a message.

    Raises:
        ClientLeft: the client has disconnected, or reads nothing.
    """
    try:
        async with asyncio.timeout(SEND_SECONDS):
            await websocket.send_text(json.dumps(message, ensure_ascii=False))
    except (TimeoutError, WebSocketDisconnect, RuntimeError, OSError) as error:
        raise ClientLeft from error


async def _events(session: ServedSession) -> AsyncIterator[str]:
    """Yield what is written as server-sent events, and a comment from time to time."""
    with session.watch() as watcher:
        while True:
            try:
                async with asyncio.timeout(HEARTBEAT_SECONDS):
                    message = await watcher.messages.get()
            except TimeoutError:
                yield ":\n\n"
                continue
            if message is None:
                return
            yield f"data: {json.dumps(message, ensure_ascii=False)}\n\n"


def _object(text: str) -> dict[str, Any]:
    """Return the fields of a message.

    Raises:
        ApiError: 400, it is no JSON object.
    """
    try:
        values = encodable(json.loads(text))
    except (ValueError, RecursionError) as error:
        raise ApiError(400, "Invalid request: the message is no JSON") from error
    if not isinstance(values, dict):
        raise ApiError(400, "Invalid request: the message is not a JSON object")
    return values


_PAGE = files("translucid.live") / "page"
_OVERLAY = {
    ending: Asset(f"overlay.{ending}", (_PAGE / f"overlay.{ending}").read_bytes()) for ending in ("html", "css", "js")
}
