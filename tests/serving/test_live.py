"""Live translation over WebSockets, requests and server-sent events; sessions of growing texts."""

import asyncio
import json
import os
import random
import re
import time
from contextlib import asynccontextmanager
from types import SimpleNamespace

import pytest
from starlette.testclient import WebSocketDenialResponse
from starlette.websockets import WebSocketDisconnect

from translucid import Translator
from translucid.ground.joint_steps import Step
from translucid.live import routes
from translucid.serving import live_sessions, queue
from translucid.serving.app import create_app
from translucid.serving.catalog import Catalog
from translucid.serving.server_options import ApiKey, Quota, ServerOptions

TEXT = "I like soccer and Mr. Smith sees 3.5 houses. The dog eats it!  We go"
START = {"source": "en", "target": "es"}
ORDERS = int(os.environ.get("LIVE_ORDERS", "90"))


@pytest.fixture(scope="module")
def expected(run):
    """What the translator itself writes."""
    session = Translator.load(run, engine="torch").live("alignatt", lag=2)
    session.read(TEXT)
    session.finish()
    return session


def said(socket, **message):
    socket.send_json(message)
    return socket.receive_json()


def parts_of(text, seed=0):
    rng, start = random.Random(seed), 0
    while start < len(text):
        size = rng.choice([1, 2, 15, 17])
        yield text[start : start + size]
        start += size


def test_a_websocket_writes_what_the_translator_writes(client, expected):
    with client.websocket_connect("/live") as socket:
        name = said(socket, **START, record=True)["session"]
        messages = [said(socket, text=part) for part in parts_of(TEXT)]
        messages.append(said(socket, text="", finish=True))
        assert "".join(message["text"] for message in messages) == expected.text
        assert [delay for message in messages for delay in message["delays"]] == expected.delays
        assert [message["finished"] for message in messages] == [False] * (len(messages) - 1) + [True]
        sentences = [sentence for message in messages for sentence in message["record"]["sentences"]]
        ended = [sentence for sentence in sentences if sentence["ended"]]
        assert ended == expected.record["sentences"]
        # The session goes on with another text, and the words before it are still counted.
        assert min(said(socket, text="I sing.", finish=True)["delays"]) > 15
        assert name
    assert client.app.state.context.live_sessions.by_name == {}


def test_requests_write_the_same(client, expected):
    name = client.post("/live", json=START).json()["session"]
    messages = [client.post(f"/live/{name}", json={"text": part}).json() for part in parts_of(TEXT, 1)]
    messages.append(client.post(f"/live/{name}", json={"finish": True}).json())
    assert "".join(message["text"] for message in messages) == expected.text
    assert set(messages[0]) == {"text", "delays", "finished"}
    assert client.post("/live/nobody", json={"text": "I"}).status_code == 404
    assert client.post(f"/live/{name}", json={"text": "a" * 5001}).status_code == 400
    assert client.post("/live", json={**START, "source": "auto"}).status_code == 400
    assert client.post("/live", json={**START, "attention": "decoder.9.cross"}).status_code == 400
    assert client.post("/live", json={**START, "session": "a/b"}).status_code == 400


def grow(client, text, **fields):
    answer = client.post("/translate", json={"q": text, "session": "talk", **START, **fields})
    assert answer.status_code == 200, answer.text
    return answer.json()["translatedText"]


def test_a_growing_text_never_changes_what_was_translated(client, expected):
    before = ""
    for end in range(1, len(TEXT), 9):
        # Recognizers change the last words: here, the last word is another one until the next one follows.
        text = TEXT[:end] + random.Random(end).choice(["", "x", "?"])
        after = grow(client, text)
        assert after.startswith(before)
        before = after
    assert grow(client, TEXT, finish=True) == expected.text
    # The session has ended: the same name is another text now.
    assert grow(client, "I sing", finish=True) != expected.text


def test_another_text_begins_anew_and_changed_words_do_not(client):
    whole = grow(client, "I like soccer and music. The")
    assert grow(client, "I liked soccer and music. They") == whole
    assert grow(client, "I like") == whole
    assert grow(client, "They see a small house", finish=True) == grow(client, "They see a small house", finish=True)
    for fields in ({"source": "auto"}, {"format": "html"}, {"alternatives": 1}, {"q": ["a"]}):
        assert client.post("/translate", json={"q": "a", "session": "s", **START, **fields}).status_code == 400


def test_sessions_belong_to_a_client_and_end(serve, monkeypatch):
    keys = {"one": None, "two": None, "few": ApiKey(Quota(per_minute=3))}
    client = serve(api_keys=keys, characters=100)
    sessions = client.app.state.context.live_sessions
    name = client.post("/live", json={**START, "api_key": "one"}).json()["session"]
    send = {"text": "I sing ", "api_key": "one"}
    assert client.post(f"/live/{name}", json=send).status_code == 200
    assert client.post(f"/live/{name}", json={**send, "api_key": "two"}).status_code == 404
    assert client.post(f"/live/{name}", json={"text": "I"}).status_code == 401
    # As many characters as a request may have count as one: of three, one has begun the session.
    name = client.post("/live", json={**START, "api_key": "few"}).json()["session"]
    statuses = [
        client.post(f"/live/{name}", json={"text": "." * 90 + " ", "api_key": "few"}).status_code for _ in range(5)
    ]
    assert statuses == [200, 200, 200, 429, 429]
    with client.websocket_connect("/live") as socket:
        assert said(socket, **START) == {"error": "Invalid request: an API key is needed (api_key)", "status": 401}
        with pytest.raises(WebSocketDisconnect) as closed:
            socket.receive_json()
        assert closed.value.code == 1008
    monkeypatch.setattr(live_sessions, "IDLE_SECONDS", 0.0)
    sessions.tidy_up()
    assert sessions.by_name == {}


def test_other_sites_may_not_use_websockets(client):
    for headers, status in (({"Origin": "https://evil.example"}, 403), ({"Host": "evil.example"}, 421)):
        with pytest.raises(WebSocketDenialResponse) as denied, client.websocket_connect("/live", headers=headers):
            pass
        assert denied.value.status_code == status
    with client.websocket_connect("/live", headers={"Origin": "http://testserver"}) as socket:
        assert "session" in said(socket, **START)


def test_wrong_messages_end_a_websocket(client):
    for messages in ("no", "[]", '{"source": "en"}', "{" * 9999, '{"source": "xx", "target": "es"}'):
        with client.websocket_connect("/live") as socket:
            socket.send_text(messages)
            assert socket.receive_json()["status"] == 400
    with client.websocket_connect("/live") as socket:
        said(socket, **START)
        assert "text is not a text" in said(socket, text=1)["error"]


def test_the_page_for_streaming_software_loads_its_own_files_only(client):
    page = client.get("/live?overlay&session=stage")
    assert page.headers["content-security-policy"].startswith("default-src 'self'")
    for path in re.findall(r'(?:src|href)="(live[^"]*)"', page.text):
        assert client.get(f"/{path}").headers["content-type"].split(";")[0] in ("text/css", "text/javascript")
    assert client.get("/live", follow_redirects=False).headers["location"] == "/"


class Echo:
    """A session that writes each word, in capitals, when the next one has come."""

    def __init__(self):
        self.text, self.rest, self.heard = "", "", 0
        self.delays, self.record, self.messages = [], {}, []

    async def reading(self, text):
        self.rest += text
        *words, self.rest = self.rest.split(" ")
        return self._write(words)

    async def finishing(self):
        words, self.rest = [self.rest], ""
        return self._write(words)

    def forget(self):
        self.delays = []

    def _write(self, words):
        words = [word for word in words if word]
        for _ in words:
            self.heard += 1
            self.delays.append(self.heard)
        written = "".join(f" {word.upper()}" for word in words)
        self.text += written
        return written


class Echoes(Catalog):
    """A catalog whose translator echoes."""

    def usual_codes(self, source, target):
        return source, target

    def find(self, source, target, name=None):
        return self.served

    served = SimpleNamespace(source="en", target="es", translator=SimpleNamespace(live=lambda **options: Echo()))


@pytest.fixture
def echo():
    app = create_app(Echoes(), ServerOptions(hosts=("*",)))
    yield app
    app.state.context.worker_pool.close()


@asynccontextmanager
async def connection(app, path="/live", kind="websocket", size=10_000, **scope):
    """Connect to an application; yields functions that send a message and return the next answer."""
    incoming, answers = asyncio.Queue(), asyncio.Queue(size)
    headers = [(b"host", b"localhost")]
    if kind == "http":
        scope = {"method": "GET", "query_string": b"", **scope}
        incoming.put_nowait({"type": "http.request"})
    else:
        incoming.put_nowait({"type": "websocket.connect"})
    scope = {"type": kind, "path": path, "headers": headers, "query_string": b"", "client": ("127.0.0.1", 1), **scope}
    task = asyncio.ensure_future(app(scope, incoming.get, answers.put))

    def send(message):
        incoming.put_nowait({"type": "websocket.receive", "text": json.dumps(message)})

    async def answer():
        async with asyncio.timeout(60):
            while True:
                message = await answers.get()
                if "text" in message:
                    return json.loads(message["text"])
                if message.get("body", b"").startswith(b"data: "):
                    return json.loads(message["body"][6:])
                if message["type"] == "websocket.close":
                    return message["code"]

    try:
        yield SimpleNamespace(send=send, answer=answer, task=task)
    finally:
        incoming.put_nowait({"type": f"{kind}.disconnect", "code": 1006})
        async with asyncio.timeout(60):
            await asyncio.gather(task, return_exceptions=True)


async def order(app, seed):
    """One client: parts of any size, sent before earlier ones are answered or not, and a drop at any time."""
    rng = random.Random(seed)
    text = " ".join(rng.choices(["one", "two", "three", "four"], k=rng.randrange(1, 12)))
    parts = [*parts_of(text, seed)]
    sent = parts[: rng.randrange(len(parts) + 1)] if rng.random() < 0.5 else parts
    written, delays, waiting = "", [], 0
    async with connection(app) as socket:
        socket.send({**START, "session": rng.choice(["", f"name{seed}"])})
        if rng.random() < 0.9:
            assert set(await socket.answer()) == {"session"}
        else:
            waiting = -1  # the name has not been read
        for part in sent:
            socket.send({"text": part})
            waiting += 1
            while waiting > 0 and rng.random() < 0.6:
                message = await socket.answer()
                if "session" not in message:
                    written, delays, waiting = written + message["text"], delays + message["delays"], waiting - 1
                else:
                    waiting += 1
        if sent is parts:
            socket.send({"finish": True})
            while True:
                message = await socket.answer()
                written, delays = written + message.get("text", ""), delays + message.get("delays", [])
                if message.get("finished"):
                    break
    whole = "".join(f" {word.upper()}" for word in text.split())
    assert whole.startswith(written)
    if sent is parts:
        assert written == whole and delays == list(range(1, len(text.split()) + 1))


def test_random_orders_of_messages_and_drops_lose_nothing_and_leave_nothing(echo):
    """No word is lost or repeated, and no session, connection or work is left."""

    async def run():
        context = echo.state.context
        for start in range(0, ORDERS, 30):
            await asyncio.gather(*(order(echo, seed) for seed in range(start, min(start + 30, ORDERS))))
            sessions = context.live_sessions
            assert sessions.by_name == {} and sessions.sockets == 0
        joint = context.worker_pool.joint
        for _ in range(100):
            if not joint.works:
                break
            await asyncio.sleep(0.01)
        assert not joint.works and not joint.waiting
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(run())


def test_watchers_get_the_same_words_and_slow_ones_are_disconnected(echo, monkeypatch):
    monkeypatch.setattr(live_sessions, "WAITING_MESSAGES", 3)
    monkeypatch.setattr(live_sessions, "WATCHERS", 3)

    async def run():
        async with connection(echo) as speaker:
            speaker.send({**START, "session": "stage"})
            await speaker.answer()
            speaker.send({"text": "one two "})
            await speaker.answer()
            async with (
                connection(echo) as watcher,
                connection(echo, "/live/stage", "http") as events,
                connection(echo, size=1) as slow,
            ):
                watcher.send({"watch": "stage"})
                slow.send({"watch": "stage"})
                first = {"text": " ONE TWO", "delays": [], "finished": False}
                assert await watcher.answer() == await events.answer() == first
                session = echo.state.context.live_sessions.find("address 127.0.0.1", "stage")
                while len(session.watchers) < 3:
                    await asyncio.sleep(0.01)
                async with connection(echo) as one_too_many:
                    one_too_many.send({"watch": "stage"})
                    assert (await one_too_many.answer())["status"] == 503
                for number in range(3, 12):
                    speaker.send({"text": "more "})
                    message = await speaker.answer()
                    assert message == {"text": " MORE", "delays": [number], "finished": False}
                    assert await watcher.answer() == await events.answer() == message
                assert len(session.watchers) == 2
                watcher.send({"text": "I"})
                assert (await watcher.answer())["status"] == 400
        async with connection(echo) as late:
            late.send({"watch": "stage"})
            assert (await late.answer())["status"] == 404

    asyncio.run(run())


def test_a_client_that_reads_nothing_is_disconnected(echo, monkeypatch):
    monkeypatch.setattr(routes, "SEND_SECONDS", 0.05)

    async def run():
        async with connection(echo, size=2) as socket:
            socket.send(START)
            for _ in range(5):
                socket.send({"text": "one "})
            async with asyncio.timeout(60):
                await asyncio.wait([socket.task])
            assert echo.state.context.live_sessions.by_name == {}

    asyncio.run(run())


def test_words_that_wait_are_translated_together_and_in_one_place(echo, monkeypatch):
    """The places of the worker pool are left to ordinary requests."""
    monkeypatch.setattr(queue, "JOINT_BATCH", 4)
    sizes = []

    class Counted(Step):
        def joins(self, other):
            return True

        def compute(self, steps):
            sizes.append(len(steps))
            time.sleep(0.001)

    class Slow(Echo):
        async def reading(self, text):
            await Counted()
            return await super().reading(text)

    monkeypatch.setattr(Echoes.served.translator, "live", lambda **options: Slow())

    async def run():
        await asyncio.gather(*(order(echo, seed) for seed in range(30)))

    asyncio.run(run())
    assert max(sizes) == 4 and not echo.state.context.worker_pool.work_counts


def test_sessions_are_bounded(echo, monkeypatch):
    monkeypatch.setattr(live_sessions, "SHARE", 2)
    monkeypatch.setattr(routes, "FIRST_SECONDS", 0.05)

    async def run():
        sessions = echo.state.context.live_sessions
        async with connection(echo) as first, connection(echo) as second, connection(echo) as third:
            for socket in (first, second):
                socket.send({**START, "session": "a" if socket is first else "b"})
                await socket.answer()
            third.send(START)
            assert (await third.answer())["status"] == 503 and await third.answer() == 1013
            async with connection(echo) as again:  # a client that connects again replaces its session
                again.send({**START, "session": "a"})
                assert await again.answer() == {"session": "a"}
                assert (await first.answer())["status"] == 404
                assert [name for _, name in sessions.by_name] == ["b", "a"]
        async with connection(echo) as silent:
            assert (await silent.answer())["status"] == 408
        monkeypatch.setattr(routes, "SOCKETS", 0)
        async with connection(echo) as refused:
            assert (await refused.answer())["status"] == 503

    asyncio.run(run())


def test_closing_the_server_ends_sessions(echo):
    async def run():
        sessions = echo.state.context.live_sessions
        async with connection(echo) as socket:
            socket.send({**START, "session": "a"})
            await socket.answer()
            async with connection(echo, "/live/a", "http") as events:
                await events.answer()
                sessions.close()
                assert (await socket.answer())["status"] == 404
                async with asyncio.timeout(60):
                    await asyncio.wait([events.task])

    asyncio.run(run())
