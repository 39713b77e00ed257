"""A real server against clients that misbehave."""

import json
import logging
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from urllib.parse import urlencode

import pytest
import uvicorn
from fastapi.testclient import TestClient

from translucid.serving import app as application
from translucid.serving import queue as fair_scheduler
from translucid.serving import requests as incoming
from translucid.serving.app import create_app
from translucid.serving.catalog import load
from translucid.serving.edge import connections
from translucid.serving.edge import middleware as host_check
from translucid.serving.edge.connections import Connection, Listening, max_connections
from translucid.serving.server_options import Quota, ServerOptions

LONG = "The children are reading a book in the garden and I like soccer. " * 7

CPU_LIMIT = 3.0
"""Seconds of processor time within which abandoned work must end; one second is enough (docs/reports/reliability.md).

Processor time, unlike wall-clock time, does not depend on what else the machine is doing.
"""
WAIT_LIMIT = 60.0
"""Seconds by the wall clock after which waiting fails."""


class RunningServer:
    """A running server: its port and its application."""

    def __init__(self, port, app):
        self.port, self.app = port, app

    def raw(self, content, seconds=300):
        """Send raw bytes; return everything received until the server closes the connection."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=seconds) as connection:
            connection.sendall(content)
            response = b""
            while part := connection.recv(65536):
                response += part
            return response

    def begin(self, content):
        """Send bytes and return the open connection."""
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=10)
        connection.sendall(content)
        return connection

    def ask(self, path="/translate", headers=b"", **fields):
        """Send one request; return the status and the decoded answer."""
        response = self.raw(post(path, {"q": "I sing", "source": "en", "target": "es", **fields}, headers))
        head, _, body = response.partition(b"\r\n\r\n")
        return int(head.split()[1]), json.loads(body)


def post(path, fields, headers=b""):
    body = json.dumps(fields).encode()
    head = b"POST %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n%s"
    return head % (path.encode(), headers) + b"Content-Length: %d\r\n\r\n%s" % (len(body), body)


@pytest.fixture
def serving(run, wordy_run):
    """Return a function that starts a server; `wordy=True` selects the model that needs longer for each text."""
    servers = []

    def start(engine="auto", *, warm=False, others=(), wordy=False, **options):
        server_options = ServerOptions(log="text", **options)
        catalog = load([str(wordy_run if wordy else run), *map(str, others)], "cpu", server_options, engine)
        if warm:  # the model is loaded on first use, which must not count towards time limits
            warm_client = TestClient(create_app(catalog, ServerOptions(hosts=("testserver",), seconds=300)))
            fields = {"q": "I sing", "source": "en", "target": "es", "explain": "gradients"}
            assert warm_client.post("/look", json=fields).status_code == 200
        app = create_app(catalog, server_options)
        server = Listening(uvicorn.Config(app, host="127.0.0.1", port=0, http=Connection, ws="none", log_level="error"))
        thread = threading.Thread(target=server.run)
        thread.start()
        while not server.started:
            time.sleep(0.02)
        servers.append((server, thread))
        return RunningServer(server.servers[0].sockets[0].getsockname()[1], app)

    yield start
    for server, thread in servers:
        server.should_exit = True
        thread.join(30)
        assert not thread.is_alive(), "the server does not go down"


@pytest.fixture
def no_lingering(monkeypatch):
    """Close connections soon after a refusal: these tests have sent everything by then."""
    monkeypatch.setattr(host_check, "LINGER", 0.05)


@contextmanager
def capture_log(caplog):
    with caplog.at_level(logging.INFO, "translucid.serving"):
        caplog.clear()
        yield lambda: [record.getMessage() for record in caplog.records if "translucid" in record.name]


def work_inside(server):
    """Return how much work is in the worker pool."""
    response = server.raw(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").decode()
    return float(response.split("\ntranslucid_work_inside ")[1].split()[0])


def wait_until(condition, work=WAIT_LIMIT):
    """Wait until a condition holds, while this process uses no more than `work` seconds of processor time."""
    cpu_start, end = time.process_time(), time.monotonic() + WAIT_LIMIT
    while not condition():
        assert time.process_time() - cpu_start < work and time.monotonic() < end
        time.sleep(0.02)


@pytest.mark.parametrize("method", ["erasure", "lime", "gradients"])
def test_work_ends_when_its_client_leaves(serving, caplog, method):
    server = serving(wordy=True)
    assert server.ask("/look", explain=method)[0] == 200  # models and libraries are loaded on first use
    connection = server.begin(post("/look", {"q": LONG, "source": "en", "target": "es", "explain": method}))
    wait_until(lambda: work_inside(server))
    with capture_log(caplog) as lines:
        connection.close()
        wait_until(lambda: not work_inside(server), CPU_LIMIT)
        wait_until(lambda: any(" /look 499 " in line for line in lines()))
    assert server.ask()[0] == 200


@pytest.mark.parametrize("engine", ["torch", "ctranslate2"])
def test_a_long_text_ends_when_its_client_leaves(serving, engine):
    server = serving(engine, warm=True, wordy=True, characters=500_000)
    text = "\n".join(f"the dog {i} and the dog and the dog and the dog and {i}" for i in range(8000))
    connection = server.begin(post("/translate", {"q": text, "source": "en", "target": "es"}))
    wait_until(lambda: work_inside(server))
    connection.close()
    wait_until(lambda: not work_inside(server), CPU_LIMIT)


def caption_request(image, **fields):
    """Return a request for a caption."""
    head = b"POST /caption?%s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: image/png\r\n"
    return head % urlencode(fields).encode() + b"Content-Length: %d\r\n\r\n%s" % (len(image), image)


def test_a_caption_ends_when_its_client_leaves_and_texts_are_translated_meanwhile(
    serving, captioner_run, scene, caplog
):
    server = serving(warm=True, others=[captioner_run])
    assert b" 200 " in server.raw(caption_request(scene)).splitlines()[0]
    request = caption_request(scene, ways=8, beam=10, nbest=6)
    open_connections = [server.begin(request) for _ in range(30)]
    wait_until(lambda: work_inside(server) >= 10)
    assert server.ask()[0] == 200
    with capture_log(caplog) as lines:
        for connection in open_connections:
            connection.close()
        wait_until(lambda: not work_inside(server), CPU_LIMIT)
        wait_until(lambda: any(" /caption 499 " in line for line in lines()))


def test_captions_are_the_ones_given_alone_whatever_others_ask(serving, captioner_run, scene):
    server = serving(others=[captioner_run], seconds=300)
    requests = [caption_request(scene, prefix=prefix, ways=ways) for prefix in ("", "a red", "two") for ways in (0, 4)]
    expected = [parse_response(server.raw(request)) for request in requests]
    with ThreadPoolExecutor(16) as pool:
        explanation = pool.submit(server.ask, "/look", q=LONG, explain="erasure")
        concurrent = list(pool.map(lambda request: parse_response(server.raw(request)), requests * 2))
        assert explanation.result(WAIT_LIMIT)[0] == 200
    for expected_response, response in zip(expected * 2, concurrent, strict=True):
        assert nearly_equal(expected_response, response)


def parse_response(response):
    assert b" 200 " in response.splitlines()[0]
    return json.loads(response.partition(b"\r\n\r\n")[2])


def test_work_ends_when_its_time_is_up_and_others_are_served_meanwhile(serving):
    server = serving(warm=True, wordy=True, seconds=5)
    with ThreadPoolExecutor(40) as pool:  # eighteen seconds of work
        slow = [pool.submit(server.ask, "/look", q=LONG, explain="gradients") for _ in range(40)]
        wait_until(lambda: work_inside(server) >= 3)
        assert server.ask("/look")[0] == 200  # within its five seconds, though it comes after all of this work
        answers = [future.result(WAIT_LIMIT) for future in slow]
        errors = [answer["error"] for status, answer in answers if status != 200]
        assert errors and all("5 seconds" in error for error in errors)
    wait_until(lambda: not work_inside(server), CPU_LIMIT)


def test_only_so_much_work_is_taken_in(serving, monkeypatch):
    monkeypatch.setattr(fair_scheduler, "PLACES", 16)
    monkeypatch.setattr(fair_scheduler, "SHARE", 12)
    server = serving(warm=True, wordy=True)
    request = post("/look", {"q": LONG, "source": "en", "target": "es", "explain": "gradients"})
    open_connections = [server.begin(request) for _ in range(16)]
    wait_until(lambda: work_inside(server) >= 12)
    assert server.ask("/look")[0] == 503
    assert server.ask()[0] == 200
    for connection in open_connections:
        connection.close()
    wait_until(lambda: not work_inside(server), CPU_LIMIT)
    assert server.ask("/look")[0] == 200


@pytest.mark.parametrize("engine", ["torch", "ctranslate2"])
def test_every_answer_is_the_one_given_alone_whatever_others_ask(serving, engine, run):
    """Explanations once worked on the model that others were translating with."""
    server = serving(engine, seconds=300)
    texts = ["I like soccer", "You sing. She reads a book in the garden.", "We like the sea and the beach"]
    requests = [("/translate", {"q": text}) for text in texts]
    requests += [
        ("/look", {"q": text, "explain": method}) for text in texts[:1] for method in ("erasure", "gradients", "")
    ]
    requests += [("/continue", {"q": texts[0], "prefix": []}), ("/translate", {"q": texts[1], "alternatives": 2})]
    requests += [("/translate", {"q": f"<p>{text}</p>", "format": "html"}) for text in texts]
    requests += [("/translate", {"q": "\n".join(texts * 4)})]
    requests += [("/translate", {"q": text}) for text in texts * 2]
    expected = [server.ask(path, **fields) for path, fields in requests]
    assert all(status == 200 for status, _ in expected)
    with ThreadPoolExecutor(16) as pool:
        concurrent = list(pool.map(lambda request: server.ask(request[0], **request[1]), requests))
    for expected_answer, answer in zip(expected, concurrent, strict=True):
        assert nearly_equal(expected_answer, answer)


def nearly_equal(first, second):
    """Return whether two answers are equal, with a small tolerance for floats."""
    if isinstance(first, dict):
        return first.keys() == second.keys() and all(nearly_equal(first[key], second[key]) for key in first)
    if isinstance(first, list | tuple):
        return len(first) == len(second) and all(map(nearly_equal, first, second))
    return abs(first - second) < 2e-3 if isinstance(first, float) else first == second


def test_silent_clients_do_not_keep_others_out(serving, monkeypatch):
    monkeypatch.setattr(Connection, "max_connections", 20)
    server = serving()
    open_connections = [server.begin(b"") for _ in range(60)]
    assert server.ask()[0] == 200
    for connection in open_connections:
        connection.close()


def test_heads_have_to_come_in_time(serving, monkeypatch):
    monkeypatch.setattr(connections, "HEAD_SECONDS", 0.4)
    server = serving()
    assert server.raw(b"") == b""
    with server.begin(
        post("/translate", {"q": "a", "source": "en", "target": "es"}).replace(b"close", b"keep")
    ) as connection:
        wait_until(lambda: b"translatedText" in connection.recv(65536))
        for _ in range(200):  # a byte of a second request now and then
            time.sleep(0.05)
            try:
                connection.sendall(b"P")
                connection.settimeout(0.01)
                if not connection.recv(10):
                    break
            except TimeoutError:
                continue
            except OSError:
                break
        else:
            pytest.fail("the connection was not closed")


UPLOAD_HEAD = b"POST /translate_file HTTP/1.1\r\nHost: localhost\r\nContent-Type: multipart/form-data; boundary=x\r\n"
FORM_HEAD = b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\n'
"""The beginning of an upload form with a file."""


def test_bodies_have_to_come_in_time(serving, no_lingering):
    server = serving()
    request_bodies(server).seconds = 0.3
    response = server.raw(UPLOAD_HEAD + b"Content-Length: 1000\r\n\r\n" + FORM_HEAD + b"x" * 100)
    assert b" 408 " in response.splitlines()[0]


def test_endless_bodies_are_refused_while_they_come(serving):
    server = serving(file_bytes=100_000)
    chunk = b"8000\r\n" + b"x" * 0x8000 + b"\r\n"
    with server.begin(
        UPLOAD_HEAD + b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n" % (len(FORM_HEAD), FORM_HEAD)
    ) as connection:
        for _ in range(4):
            connection.sendall(chunk)
        assert b" 413 " in connection.recv(65536).splitlines()[0]
    wait_until(lambda: request_bodies(server).total_bytes == 0)


def test_a_large_body_may_take_longer_but_not_for_ever(serving, monkeypatch, no_lingering):
    monkeypatch.setattr(incoming, "SLOWEST", 50_000)
    server = serving()
    request_bodies(server).seconds = 0.5
    started = time.monotonic()
    with server.begin(UPLOAD_HEAD + b"Content-Length: 900000\r\n\r\n" + FORM_HEAD) as connection:
        for _ in range(4):
            time.sleep(0.3)
            connection.sendall(b"x" * 20_000)  # 0.4 seconds more
        assert b" 408 " in connection.recv(65536).splitlines()[0]
    assert time.monotonic() - started > 1.5


def request_bodies(server):
    return next(
        middleware.kwargs["bodies"] for middleware in server.app.user_middleware if "bodies" in middleware.kwargs
    )


def test_bodies_that_wait_are_bounded_together_and_small_ones_get_in(serving):
    server = serving()
    bodies = request_bodies(server)
    bodies.max_total_bytes = 1_000_000
    uploads = [
        server.begin(UPLOAD_HEAD + b"Content-Length: 900000\r\n\r\n" + FORM_HEAD + b"x" * 400_000) for _ in range(2)
    ]
    wait_until(lambda: bodies.total_bytes >= 700_000)
    response = server.raw(UPLOAD_HEAD + b"Content-Length: 900000\r\n\r\n" + FORM_HEAD + b"x" * 400_000)
    assert b" 503 " in response.splitlines()[0]
    assert server.ask()[0] == 200
    for connection in uploads:
        connection.close()
    wait_until(lambda: bodies.total_bytes == 0)


def test_a_refusal_is_heard_by_one_who_still_sends(serving, monkeypatch):
    monkeypatch.setattr(host_check, "LINGER", 30.0)
    with serving().begin(UPLOAD_HEAD + b"Content-Length: 50000000\r\n\r\n") as connection:
        time.sleep(0.5)  # the answer is on its way
        for _ in range(4):
            connection.sendall(b"x" * 100_000)
        assert b" 413 " in connection.recv(65536).splitlines()[0]


def test_one_that_leaves_in_the_middle_is_one_line_in_the_log(serving, caplog):
    server = serving()
    with capture_log(caplog) as lines:
        for _ in range(5):
            server.begin(UPLOAD_HEAD + b"Content-Length: 1000\r\n\r\n" + FORM_HEAD + b"x").close()
        wait_until(lambda: len(lines()) >= 5)
        time.sleep(0.2)
        assert len(lines()) == 5
        assert all(" 499 " in line for line in lines())
    assert not [record for record in caplog.records if record.levelno > logging.INFO]


@pytest.mark.parametrize("headers", [b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n"])
def test_two_lengths_are_refused_and_the_connection_is_closed(serving, headers):
    response = serving().raw(
        b"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        + headers
        + b"\r\n0\r\n\r\nGET /models HTTP/1.1\r\nHost: localhost\r\n\r\n"
    )
    assert b" 400 " in response.splitlines()[0]
    assert response.count(b"HTTP/1.1") == 1


def test_what_is_refused_before_its_body_has_come_is_not_taken_for_a_request(serving, no_lingering):
    smuggled = b"GET /models HTTP/1.1\r\nHost: localhost\r\n\r\n"
    response = serving().raw(UPLOAD_HEAD.replace(b"_file", b"_nowhere") + b"Content-Length: 5000000\r\n\r\n" + smuggled)
    assert b" 404 " in response.splitlines()[0]
    assert b"\r\nconnection: close\r\n" in response
    assert response.count(b"HTTP/1.1") == 1


def test_the_system_is_asked_for_descriptors():
    resource = pytest.importorskip("resource")
    assert 16 <= max_connections() <= connections.MOST
    assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] > max_connections()


def test_wrong_keys_are_counted(serving):
    server = serving(api_keys={"secret": None, "other": None}, quota=Quota(per_minute=1000))
    assert server.ask(api_key="secret")[0] == 200
    assert [server.ask(api_key=f"guess {i}")[0] for i in range(12)] == [403] * 10 + [429] * 2
    assert server.ask(api_key="other")[0] == 429  # otherwise guessing could continue
    assert server.ask(api_key="secret")[0] == 200  # a client that was accepted before is not locked out by its neighbor


def test_memory_is_given_back_after_work_and_only_then(serving, monkeypatch):
    calls = []
    monkeypatch.setattr(application, "release_freed_memory", lambda: calls.append(1))
    monkeypatch.setattr(application, "TIDY_SECONDS", 0.02)
    monkeypatch.setattr(application, "WORK_SECONDS", 1000)
    serving()
    time.sleep(0.2)
    assert not calls
    monkeypatch.setattr(application, "WORK_SECONDS", 0)
    wait_until(lambda: calls)
