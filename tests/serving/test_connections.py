"""Limits of connections, tested with an event loop and sockets that only record calls."""

import socket
from types import SimpleNamespace

import pytest
import uvicorn
from uvicorn.server import ServerState

from translucid.serving.edge import connections
from translucid.serving.edge.connections import BACKLOG, HEAD_SECONDS, MOST, READ_SECONDS, Connection, max_connections


@pytest.mark.parametrize(
    ("soft", "hard", "raised", "expected"),
    [
        (-1, -1, None, MOST),
        (2000, 4000, None, MOST),
        (1384, 4000, None, MOST),
        (1383, 4000, (1384, 4000), MOST),
        (256, -1, (1384, -1), MOST),
        (1024, 1100, (1100, 1100), 1100 - BACKLOG - 128),
        (256, 401, (401, 401), 17),
        (256, 256, (256, 256), 16),
    ],
)
def test_the_most_connections_depend_on_the_descriptors_of_the_process(monkeypatch, soft, hard, raised, expected):
    resource = pytest.importorskip("resource")
    limits = []
    monkeypatch.setattr(resource, "RLIM_INFINITY", -1)
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (soft, hard))
    monkeypatch.setattr(resource, "setrlimit", lambda kind, pair: limits.append((kind, pair)))
    assert max_connections() == expected and MOST == 1000
    assert limits == ([(resource.RLIMIT_NOFILE, raised)] if raised else [])


def test_windows_has_no_limit_of_descriptors(monkeypatch):
    monkeypatch.setattr(connections.sys, "platform", "win32")
    monkeypatch.setitem(connections.sys.modules, "resource", None)
    assert max_connections() == MOST


class Loop:
    """An event loop whose timers are recorded."""

    def __init__(self):
        self.timers = []

    def call_later(self, seconds, work, *arguments):
        timer = SimpleNamespace(seconds=seconds, work=work, cancelled=False)
        timer.cancel = lambda: setattr(timer, "cancelled", True)
        self.timers.append(timer)
        return timer


@pytest.fixture
def connect(monkeypatch):
    """Return a function that opens connections of one server at a time: connect(now)."""
    config = uvicorn.Config(lambda scope: None, log_level="critical")
    config.load()
    state, clock = ServerState(), SimpleNamespace(now=0.0)
    monkeypatch.setattr(connections, "time", SimpleNamespace(monotonic=lambda: clock.now))

    def open_connection(now=0.0):
        clock.now = now
        connection = Connection(config=config, server_state=state, app_state={}, _loop=Loop())
        stream = SimpleNamespace(options=[])
        stream.setsockopt = lambda *option: stream.options.append(option)
        transport = SimpleNamespace(aborted=0, stream=stream, is_closing=lambda: False)
        transport.get_extra_info = lambda name, default=None: stream if name == "socket" else default
        transport.abort = lambda: setattr(transport, "aborted", transport.aborted + 1)
        stream.getpeername, stream.getsockname, stream.family = (lambda: ("127.0.0.1", 1)), (lambda: ("", 2)), 2
        connection.connection_made(transport)
        connection.clock = clock
        return connection

    return open_connection


def test_a_connection_without_a_request_ends_in_time(connect):
    connection = connect()
    (timer,) = connection.loop.timers
    assert (timer.seconds, timer.work, timer.cancelled) == (HEAD_SECONDS, connection.transport.abort, False)
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        assert connection.transport.stream.options == [
            (socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, READ_SECONDS * 1000)
        ]
    connection.data_received(b"GET / HTTP/1.1\r\n")
    assert len(connection.loop.timers) == 1 and not timer.cancelled and not connection.waits_for_answer
    connection.cycle = SimpleNamespace(response_complete=False)
    assert connection.waits_for_answer
    connection._expect_head()
    assert timer.cancelled and connection.timeout is None
    connection._expect_head()
    connection.cycle.response_complete = True
    assert not connection.waits_for_answer
    connection._expect_head()
    assert [timer.cancelled for timer in connection.loop.timers] == [True, False]
    connection.cycle = None
    connection.connection_lost(OSError())
    assert [timer.cancelled for timer in connection.loop.timers] == [True, True]


def test_too_many_connections_end_the_one_that_has_been_idle_longest(connect, monkeypatch):
    monkeypatch.setattr(Connection, "max_connections", 3)
    first, second, third = (connect(now) for now in (1.0, 2.0, 3.0))
    assert [connection.transport.aborted for connection in (first, second, third)] == [0, 0, 0]
    first.cycle = SimpleNamespace(response_complete=False)
    second.clock.now = 4.0
    second.idle_since = 3.5
    connect(5.0)
    assert [connection.transport.aborted for connection in (first, second, third)] == [0, 0, 1]
    for connection in (second, third):
        connection.cycle = first.cycle
    for connection in list(first.connections):
        connection.cycle = first.cycle
    newest = connect(6.0)
    assert newest.transport.aborted == 1 and first.transport.aborted == 0
