"""Sessions of live translation: clients send text in parts, and get what is written meanwhile (docs/live.md).

A session belongs to a client, a key or an address. Its parts are translated one after another, and those of several
sessions together: the words that wait at the same time go through the model as one batch. This work takes turns with
that of the worker pool. Sessions are bounded in number and time, and forget sentences that have ended. Other
connections of the client can watch a session.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from bitext.words import words_of
from translucid.ground.errors import missing_package
from translucid.ground.joint_steps import Step
from translucid.kernels.machine import has_pytorch
from translucid.serving.catalog import AnyServed
from translucid.serving.edge.failures import ApiError
from translucid.serving.queue import as_server_errors

if TYPE_CHECKING:
    from translucid.serving.requests import RequestTask

MOST, SHARE = 128, 64
"""The maximum number of sessions, and of those of one client."""
WATCHERS = 16
"""The maximum number of connections that watch a session."""
IDLE_SECONDS, CONNECTED_IDLE_SECONDS = 60.0, 1800.0
"""The seconds without text after which a session ends, and those if it has a connection of its own."""
LONGEST_SECONDS = 12 * 3600.0
"""The maximum duration of a session."""
WAITING_MESSAGES = 256
"""The messages that wait for a watcher; one that reads so slowly that there are more is disconnected."""
SHOWN_CHARACTERS = 1000
"""The characters of what is written that a watcher gets at first."""

Message = dict[str, Any]
"""What a client gets, see docs/live.md."""


class GoneSessionError(ApiError):
    """A session does not exist, or not any more, or belongs to another client."""

    def __init__(self) -> None:
        """Use the same message for all three."""
        super().__init__(404, "There is no such session, or not any more")


class Live(Protocol):
    """A session of `Translator.live`."""

    @property
    def text(self) -> str:
        """Everything that is written."""

    @property
    def delays(self) -> list[int]:
        """The delays of the words that are not forgotten."""

    @property
    def record(self) -> dict[str, Any]:
        """The sentences that are not forgotten, with their attention."""

    @property
    def messages(self) -> list[str]:
        """What a user should know."""

    async def reading(self, text: str) -> str:
        """Read the next part of the text, and return what is written."""

    async def finishing(self) -> str:
        """End the text, and return the rest."""

    def forget(self) -> None:
        """Forget the sentences that have ended."""


class Watcher:
    """The messages for a connection that watches a session."""

    def __init__(self) -> None:
        self.messages: asyncio.Queue[Message | None] = asyncio.Queue(WAITING_MESSAGES)

    def put(self, message: Message | None) -> bool:
        """Add a message, None for the end of the session; return whether there is room."""
        if self.messages.full():
            self.messages.get_nowait()
            self.messages.put_nowait(None)
            return False
        self.messages.put_nowait(message)
        return True


class ServedSession:
    """A session on the server."""

    def __init__(
        self,
        sessions: LiveSessions,
        name: str,
        client: str,
        served: AnyServed,
        begin: Callable[[], Live],
        *,
        records: bool = False,
        connected: bool = False,
    ) -> None:
        """Begin a session; see `LiveSessions.open`."""
        self.sessions, self.name, self.client, self.served = sessions, name, client, served
        self.records, self.connected = records, connected
        self.watchers: set[Watcher] = set()
        self.begun = self.used = time.monotonic()
        self.ended = asyncio.Event()
        self._begin = begin
        self._live = begin()
        self._sent_delays = 0  # the delays of sentences that are not forgotten, and were sent
        self._shown = ""  # the end of what is written
        self._characters = 0  # since the last time that a request was counted
        self._heard: list[str] = []  # the words of a growing text that were read
        self._one_by_one = asyncio.Lock()

    @property
    def expired(self) -> bool:
        """Whether the session has had no text for too long, or has lasted too long."""
        now = time.monotonic()
        idle = CONNECTED_IDLE_SECONDS if self.connected else IDLE_SECONDS
        return now - self.used > idle or now - self.begun > LONGEST_SECONDS

    async def read(self, task: RequestTask, text: str, *, finish: bool = False) -> Message:
        """Read the next part of the text, and return the message with what is written.

        Args:
            task: the task of the request.
            text: the part.
            finish: whether it is the last one, so that the rest is written. Another text may follow.

        Raises:
            ApiError: 404, the session has ended; 429, the client has sent too much; 503, it took too long.
        """
        self._count_part(task, text)
        async with self._turn():
            return await self._run(task, self._read(text, finish=finish))

    async def grow(self, task: RequestTask, text: str, *, finish: bool = False) -> str:
        """Read a text that is longer each time, and return its translation so far, whose beginning never changes.

        The last word may still change until another one follows it. Changes of words before it do not change what is
        written. A text in which most words are other ones is a new text.

        Args:
            task: the task of the request.
            text: the whole text so far.
            finish: whether the text is complete; then the session ends.

        Raises:
            ApiError: as `read`.
        """
        words = words_of(text)
        complete = words if finish else words[:-1]
        async with self._turn():
            same = sum(old == new.text for old, new in zip(self._heard, words, strict=False))
            if 2 * same < min(len(self._heard), len(words)):
                await self._run(task, self._read("", finish=True))
                self._live, self._heard, self._sent_delays = self._begin(), [], 0
            new_words = complete[len(self._heard) :]
            part = "".join(" " * word.spaced + word.text for word in new_words)
            part += " " * bool(new_words)  # completes the last word
            task.count(self.served, [part])
            await self._run(task, self._read(part, finish=finish))
            self._heard += [word.text for word in new_words]
            written = self._live.text
        if finish:
            self.close()
        return written

    @contextmanager
    def watch(self) -> Iterator[Watcher]:
        """Get the messages of the session within the block, the first with the end of what is written so far.

        Raises:
            ApiError: 503, too many connections watch the session.
        """
        if len(self.watchers) >= WATCHERS:
            raise ApiError(503, "Too many connections watch this session", retry_after=10)
        watcher = Watcher()
        watcher.put({"text": self._shown, "delays": [], "finished": False})
        self.watchers.add(watcher)
        try:
            yield watcher
        finally:
            self.watchers.discard(watcher)

    def close(self) -> None:
        """End the session and the connections that watch it."""
        self.ended.set()
        self.sessions.remove(self)
        for watcher in list(self.watchers):
            watcher.put(None)
        self.watchers.clear()

    def _count_part(self, task: RequestTask, text: str) -> None:
        """Count a part of the text; as many characters as one request may have count as one request."""
        limit = task.context.options.characters
        if len(text) > limit:
            raise ApiError(400, f"Invalid request: {len(text)} characters exceed the limit of {limit}")
        self._characters += len(text)
        if self._characters > limit:
            self._characters -= limit
            task.context.rate_limits.count(self.client)
        task.count(self.served, [text])

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        """Use the session by one request after another; one that fails ends it, as nobody gets what was written."""
        async with self._one_by_one:
            if self.ended.is_set():
                raise GoneSessionError
            self.used = time.monotonic()
            try:
                yield
            except BaseException:
                self.close()
                raise
            self.used = time.monotonic()

    async def _run(self, task: RequestTask, work: Coroutine[Step, None, Message]) -> Message:
        message = await task.result(task.context.worker_pool.joint.submit(task, work))
        self._shown = (self._shown + message["text"])[-SHOWN_CHARACTERS:]
        for watcher in list(self.watchers):
            if not watcher.put({name: message[name] for name in ("text", "delays", "finished")}):
                self.watchers.discard(watcher)
        return message

    async def _read(self, text: str, *, finish: bool) -> Message:
        """Read a part, whose words wait for steps that are computed with those of other sessions."""
        live = self._live
        with as_server_errors():
            written = await live.reading(text)
            if finish:
                written += await live.finishing()
        delays = live.delays
        message: Message = {"text": written, "delays": delays[self._sent_delays :], "finished": finish}
        if live.messages:
            message["messages"] = list(live.messages)
        if self.records:
            message["record"] = _named(live.record, self.served.name)
        live.forget()
        self._sent_delays = len(live.delays)
        return message


class LiveSessions:
    """All sessions of a server."""

    def __init__(self) -> None:
        """Begin without sessions."""
        self.by_name: dict[tuple[str, str], ServedSession] = {}
        """The sessions by client and name."""
        self.sockets = 0
        """The number of WebSockets."""
        self.closed = False

    def open(
        self,
        client: str,
        name: str,
        served: AnyServed,
        options: Mapping[str, Any],
        *,
        records: bool = False,
        connected: bool = False,
    ) -> ServedSession:
        """Begin a session.

        Args:
            client: a key or an address.
            name: the name that the client has chosen; "" for a random one. A session with this name is replaced.
            served: the translator.
            options: those of `Translator.live` by name.
            records: whether messages have the attention.
            connected: whether the session ends with a connection.

        Raises:
            ApiError: 501, PyTorch is not installed; 503, there are too many sessions.
            UserError: the translator can't translate live, or an option is invalid.
        """
        if not has_pytorch():
            raise ApiError(501, str(missing_package("live translation", "PyTorch", "train")))
        if old := self.by_name.get((client, name)):
            old.close()
        counts = Counter(owner for owner, _ in self.by_name)
        if self.closed or counts.total() >= MOST or counts[client] >= SHARE:
            raise ApiError(503, "The server is busy with live translation, please come again", retry_after=10)

        def begin() -> Live:
            live: Live = served.translator.live(**options)
            return live

        name = name or secrets.token_urlsafe(18)
        session = ServedSession(self, name, client, served, begin, records=records, connected=connected)
        self.by_name[client, name] = session
        return session

    def find(self, client: str, name: str) -> ServedSession:
        """Return a session of a client.

        Raises:
            ApiError: 404, there is none.
        """
        session = self.by_name.get((client, name))
        if session is None:
            raise GoneSessionError
        return session

    def growing(self, client: str, name: str, served: AnyServed) -> ServedSession:
        """Return the session for a text that grows, a new one if there is none between these languages.

        Raises:
            ApiError: 400, the name is that of another kind of session; those of `open`.
        """
        session = self.by_name.get((client, name))
        if session is None or session.served is not served:
            return self.open(client, name, served, {})
        if session.connected:
            raise ApiError(400, "Invalid request: the session has a connection of its own")
        return session

    def remove(self, session: ServedSession) -> None:
        """Forget a session that has ended."""
        if self.by_name.get((session.client, session.name)) is session:
            del self.by_name[session.client, session.name]

    def tidy_up(self) -> None:
        """End the sessions that have expired."""
        for session in list(self.by_name.values()):
            if session.expired:
                session.close()

    def close(self) -> None:
        """End all sessions, and begin no more."""
        self.closed = True
        for session in list(self.by_name.values()):
            session.close()


def _named(record: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return a record with the name of the model, in place of the folder of the run, which clients should not see."""
    named = {**record, "model": name}
    if "pivot" in record:
        named["pivot"] = _named(record["pivot"], name)
    return named
