"""A real server, and clients that mean it no good."""

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
from translucid.serving.app import create_app
from translucid.serving.catalogue import load
from translucid.serving.edge import connections, host_check, incoming
from translucid.serving.edge.connections import Connection, Listening, most_connections
from translucid.serving.queue.worker_pool import PLACES
from translucid.serving.server_options import Quota, ServerOptions

LONG = "The children are reading a book in the garden and I like soccer. " * 7

SOON = 3.0
"""Seconds that this process may work on until all has ended that nobody waits for: one is needed (docs/reliability.md).

What else the machine is doing does not count, as it would by the clock.
"""
PATIENCE = 60.0
"""Seconds by the clock after which what should come does not."""


class Place:
    """Where a server listens."""

    def __init__(self, port, app):
        self.port, self.app = port, app

    def raw(self, content, seconds=300):
        """Send bytes as they are; return what comes until the server closes the connection."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=seconds) as one:
            one.sendall(content)
            said = b""
            while part := one.recv(65536):
                said += part
            return said

    def begin(self, content):
        """Send bytes and keep the connection."""
        one = socket.create_connection(("127.0.0.1", self.port), timeout=10)
        one.sendall(content)
        return one

    def ask(self, path="/translate", headers=b"", **fields):
        """Ask once; return status and answer."""
        said = self.raw(post(path, {"q": "I sing", "source": "en", "target": "es", **fields}, headers))
        head, _, body = said.partition(b"\r\n\r\n")
        return int(head.split()[1]), json.loads(body)


def post(path, fields, headers=b""):
    body = json.dumps(fields).encode()
    head = b"POST %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n%s"
    return head % (path.encode(), headers) + b"Content-Length: %d\r\n\r\n%s" % (len(body), body)


@pytest.fixture
def serving(run, wordy_run):
    """serving(engine, options) is a server that runs; a `wordy` one needs longer for each text."""
    running = []

    def start(engine="auto", *, warm=False, others=(), wordy=False, **options):
        given = ServerOptions(log="text", **options)
        catalogue = load([str(wordy_run if wordy else run), *map(str, others)], "cpu", given, engine)
        if warm:  # the model is loaded when it is first needed, which is not to count towards limits of time
            patient = TestClient(create_app(catalogue, ServerOptions(hosts=("testserver",), seconds=300)))
            asked = {"q": "I sing", "source": "en", "target": "es", "explain": "gradients"}
            assert patient.post("/look", json=asked).status_code == 200
        app = create_app(catalogue, given)
        server = Listening(uvicorn.Config(app, host="127.0.0.1", port=0, http=Connection, ws="none", log_level="error"))
        thread = threading.Thread(target=server.run)
        thread.start()
        while not server.started:
            time.sleep(0.02)
        running.append((server, thread))
        return Place(server.servers[0].sockets[0].getsockname()[1], app)

    yield start
    for server, thread in running:
        server.should_exit = True
        thread.join(30)
        assert not thread.is_alive(), "the server does not go down"


@pytest.fixture
def no_lingering(monkeypatch):
    """Close connections soon after a refusal; the tests have sent all that they send."""
    monkeypatch.setattr(host_check, "LINGER", 0.05)


@contextmanager
def logged(caplog):
    with caplog.at_level(logging.INFO, "translucid.serving"):
        caplog.clear()
        yield lambda: [record.getMessage() for record in caplog.records if "translucid" in record.name]


def working(place):
    """How much work there is in the worker_pool."""
    said = place.raw(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").decode()
    return float(said.split("\ntranslucid_work_inside ")[1].split()[0])


def until(condition, work=PATIENCE):
    """Wait until something holds, while this process works for no more than so many seconds."""
    worked, end = time.process_time(), time.monotonic() + PATIENCE
    while not condition():
        assert time.process_time() - worked < work and time.monotonic() < end
        time.sleep(0.02)


@pytest.mark.parametrize("method", ["erasure", "lime", "gradients"])
def test_work_ends_when_its_client_leaves(serving, caplog, method):
    place = serving(wordy=True)
    assert place.ask("/look", explain=method)[0] == 200  # model and libraries are loaded when they are first needed
    one = place.begin(post("/look", {"q": LONG, "source": "en", "target": "es", "explain": method}))
    until(lambda: working(place))
    with logged(caplog) as lines:
        one.close()
        until(lambda: not working(place), SOON)
        until(lambda: any(" /look 499 " in line for line in lines()))
    assert place.ask()[0] == 200


@pytest.mark.parametrize("engine", ["torch", "ctranslate2"])
def test_a_long_text_ends_when_its_client_leaves(serving, engine):
    place = serving(engine, warm=True, wordy=True, characters=500_000)
    text = "\n".join(f"the dog {i} and the dog and the dog and the dog and {i}" for i in range(8000))
    one = place.begin(post("/translate", {"q": text, "source": "en", "target": "es"}))
    until(lambda: working(place))
    one.close()
    until(lambda: not working(place), SOON)


def captioned(image, **fields):
    """A request for a caption."""
    head = b"POST /caption?%s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: image/png\r\n"
    return head % urlencode(fields).encode() + b"Content-Length: %d\r\n\r\n%s" % (len(image), image)


def test_a_caption_ends_when_its_client_leaves_and_texts_are_translated_meanwhile(serving, eyes, scene, caplog):
    place = serving(warm=True, others=[eyes])
    assert b" 200 " in place.raw(captioned(scene)).splitlines()[0]
    asked = captioned(scene, ways=8, beam=10, nbest=6)
    held = [place.begin(asked) for _ in range(30)]
    until(lambda: working(place) >= 10)
    assert place.ask()[0] == 200
    with logged(caplog) as lines:
        for one in held:
            one.close()
        until(lambda: not working(place), SOON)
        until(lambda: any(" /caption 499 " in line for line in lines()))


def test_captions_are_the_ones_given_alone_whatever_others_ask(serving, eyes, scene):
    place = serving(others=[eyes], seconds=300)
    asked = [captioned(scene, prefix=prefix, ways=ways) for prefix in ("", "a red", "two") for ways in (0, 4)]
    alone = [answer_of(place.raw(one)) for one in asked]
    with ThreadPoolExecutor(16) as pool:
        other = pool.submit(place.ask, "/look", q=LONG, explain="erasure")
        together = list(pool.map(lambda one: answer_of(place.raw(one)), asked * 3))
        assert other.result(PATIENCE)[0] == 200
    for one, another in zip(alone * 3, together, strict=True):
        assert equal(one, another)


def answer_of(said):
    assert b" 200 " in said.splitlines()[0]
    return json.loads(said.partition(b"\r\n\r\n")[2])


def test_work_ends_when_its_time_is_up_and_others_are_served_meanwhile(serving):
    place = serving(warm=True, wordy=True, seconds=3)
    with ThreadPoolExecutor(24) as pool:  # eleven seconds of work
        slow = [pool.submit(place.ask, "/look", q=LONG, explain="gradients") for _ in range(24)]
        until(lambda: working(place) >= 3)
        worked = time.process_time()
        assert place.ask("/look")[0] == 200
        assert time.process_time() - worked < 1.5
        answers = [future.result(PATIENCE) for future in slow]
        errors = [said["error"] for status, said in answers if status != 200]
        assert errors and all("3 seconds" in error for error in errors)
    until(lambda: not working(place), SOON)


def test_only_so_much_work_is_taken_in(serving):
    place = serving(warm=True, wordy=True)
    asked = post("/look", {"q": LONG, "source": "en", "target": "es", "explain": "gradients"})
    held = [place.begin(asked) for _ in range(PLACES)]
    until(lambda: working(place) >= PLACES * 3 / 4)
    assert place.ask("/look")[0] == 503
    assert place.ask()[0] == 200
    for one in held:
        one.close()
    until(lambda: not working(place), SOON)
    assert place.ask("/look")[0] == 200


@pytest.mark.parametrize("engine", ["torch", "ctranslate2"])
def test_every_answer_is_the_one_given_alone_whatever_others_ask(serving, engine, run):
    """Explanations once worked on the model that others were translating with."""
    place = serving(engine, seconds=300)
    texts = ["I like soccer", "You sing. She reads a book in the garden.", "We like the sea and the beach"]
    asked = [("/translate", {"q": text}) for text in texts]
    asked += [
        ("/look", {"q": text, "explain": method}) for text in texts[:2] for method in ("erasure", "gradients", "")
    ]
    asked += [("/continue", {"q": texts[0], "prefix": []}), ("/translate", {"q": texts[1], "alternatives": 2})]
    asked += [("/translate", {"q": f"<p>{text}</p>", "format": "html"}) for text in texts]
    asked += [("/translate", {"q": "\n".join(texts * 10)})]
    asked += [("/translate", {"q": text}) for text in texts * 2]
    alone = [place.ask(path, **fields) for path, fields in asked]
    assert all(status == 200 for status, _ in alone)
    with ThreadPoolExecutor(16) as pool:
        together = list(pool.map(lambda one: place.ask(one[0], **one[1]), asked))
    for one, other in zip(alone, together, strict=True):
        assert equal(one, other)


def equal(one, other):
    """Whether two answers are the same but for the last digits of their figures."""
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(equal(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(equal, one, other))
    return abs(one - other) < 2e-3 if isinstance(one, float) else one == other


def test_silent_clients_do_not_keep_others_out(serving, monkeypatch):
    monkeypatch.setattr(Connection, "most", 20)
    place = serving()
    held = [place.begin(b"") for _ in range(60)]
    assert place.ask()[0] == 200
    for one in held:
        one.close()


def test_heads_have_to_come_in_time(serving, monkeypatch):
    monkeypatch.setattr(connections, "HEAD_SECONDS", 0.4)
    place = serving()
    assert place.raw(b"") == b""
    with place.begin(post("/translate", {"q": "a", "source": "en", "target": "es"}).replace(b"close", b"keep")) as one:
        until(lambda: b"translatedText" in one.recv(65536))
        started = time.monotonic()
        while time.monotonic() - started < 15:  # a byte of a second request now and then
            time.sleep(0.05)
            try:
                one.sendall(b"P")
                one.settimeout(0.01)
                if not one.recv(10):
                    break
            except TimeoutError:
                continue
            except OSError:
                break
        assert time.monotonic() - started < 10


BEGUN = b"POST /translate_file HTTP/1.1\r\nHost: localhost\r\nContent-Type: multipart/form-data; boundary=x\r\n"
FILE = b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\n'
"""How a form with a file begins."""


def test_bodies_have_to_come_in_time(serving, no_lingering):
    place = serving()
    desk_bodies(place).seconds = 0.3
    said = place.raw(BEGUN + b"Content-Length: 1000\r\n\r\n" + FILE + b"x" * 100)
    assert b" 408 " in said.splitlines()[0]


def test_endless_bodies_are_refused_while_they_come(serving):
    place = serving(file_bytes=100_000)
    chunk = b"8000\r\n" + b"x" * 0x8000 + b"\r\n"
    with place.begin(BEGUN + b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n" % (len(FILE), FILE)) as one:
        for _ in range(4):
            one.sendall(chunk)
        assert b" 413 " in one.recv(65536).splitlines()[0]
    until(lambda: desk_bodies(place).held == 0)


def test_a_large_body_may_take_longer_but_not_for_ever(serving, monkeypatch, no_lingering):
    monkeypatch.setattr(incoming, "SLOWEST", 50_000)
    place = serving()
    desk_bodies(place).seconds = 0.5
    begun = time.monotonic()
    with place.begin(BEGUN + b"Content-Length: 900000\r\n\r\n" + FILE) as one:
        for _ in range(4):
            time.sleep(0.3)
            one.sendall(b"x" * 20_000)  # 0.4 seconds more
        assert b" 408 " in one.recv(65536).splitlines()[0]
    assert 1.5 < time.monotonic() - begun < 30


def desk_bodies(place):
    return next(one.kwargs["bodies"] for one in place.app.user_middleware if "bodies" in one.kwargs)


def test_bodies_that_wait_are_bounded_together_and_small_ones_get_in(serving):
    place = serving()
    held = desk_bodies(place)
    held.together = 1_000_000
    uploads = [place.begin(BEGUN + b"Content-Length: 900000\r\n\r\n" + FILE + b"x" * 400_000) for _ in range(2)]
    until(lambda: held.held >= 700_000)
    said = place.raw(BEGUN + b"Content-Length: 900000\r\n\r\n" + FILE + b"x" * 400_000)
    assert b" 503 " in said.splitlines()[0]
    assert place.ask()[0] == 200
    for one in uploads:
        one.close()
    until(lambda: held.held == 0)


def test_a_refusal_is_heard_by_one_who_still_sends(serving, monkeypatch):
    monkeypatch.setattr(host_check, "LINGER", 30.0)
    with serving().begin(BEGUN + b"Content-Length: 50000000\r\n\r\n") as one:
        time.sleep(0.5)  # the answer is on its way
        for _ in range(4):
            one.sendall(b"x" * 100_000)
        assert b" 413 " in one.recv(65536).splitlines()[0]


def test_one_that_leaves_in_the_middle_is_one_line_in_the_log(serving, caplog):
    place = serving()
    with logged(caplog) as lines:
        for _ in range(5):
            place.begin(BEGUN + b"Content-Length: 1000\r\n\r\n" + FILE + b"x").close()
        until(lambda: len(lines()) >= 5)
        time.sleep(0.2)
        assert len(lines()) == 5
        assert all(" 499 " in line for line in lines())
    assert not [record for record in caplog.records if record.levelno > logging.INFO]


@pytest.mark.parametrize("headers", [b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n"])
def test_two_lengths_are_refused_and_the_connection_is_closed(serving, headers):
    said = serving().raw(
        b"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        + headers
        + b"\r\n0\r\n\r\nGET /models HTTP/1.1\r\nHost: localhost\r\n\r\n"
    )
    assert b" 400 " in said.splitlines()[0]
    assert said.count(b"HTTP/1.1") == 1


def test_what_is_refused_before_its_body_has_come_is_not_taken_for_a_request(serving, no_lingering):
    hidden = b"GET /models HTTP/1.1\r\nHost: localhost\r\n\r\n"
    said = serving().raw(BEGUN.replace(b"_file", b"_nowhere") + b"Content-Length: 5000000\r\n\r\n" + hidden)
    assert b" 404 " in said.splitlines()[0]
    assert b"\r\nconnection: close\r\n" in said
    assert said.count(b"HTTP/1.1") == 1


def test_the_system_is_asked_for_descriptors():
    resource = pytest.importorskip("resource")
    assert 16 <= most_connections() <= connections.MOST
    assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] > most_connections()


def test_wrong_keys_are_counted(serving):
    place = serving(api_keys={"secret": None, "other": None}, quota=Quota(per_minute=1000))
    assert place.ask(api_key="secret")[0] == 200
    assert [place.ask(api_key=f"guess {i}")[0] for i in range(12)] == [403] * 10 + [429] * 2
    assert place.ask(api_key="other")[0] == 429  # or guessing would go on
    assert place.ask(api_key="secret")[0] == 200  # who has been in before is not kept out by a neighbour


def test_memory_is_given_back_after_work_and_only_then(serving, monkeypatch):
    given = []
    monkeypatch.setattr(application, "give_memory_back", lambda: given.append(1))
    monkeypatch.setattr(application, "TIDY_SECONDS", 0.02)
    monkeypatch.setattr(application, "WORK_SECONDS", 1000)
    serving()
    time.sleep(0.2)
    assert not given
    monkeypatch.setattr(application, "WORK_SECONDS", 0)
    until(lambda: given)
