"""Metrics, the request log, and routes that need no model."""

import asyncio
import json
import logging
import re
import sys
from types import SimpleNamespace

import pytest
from fastapi.testclient import TestClient

from translucid import __version__
from translucid.serving import app as application
from translucid.serving.app import create_app
from translucid.serving.catalog import Catalog
from translucid.serving.edge import middleware as measuring
from translucid.serving.edge.failures import ClientLeft
from translucid.serving.live_sessions import LiveSessions
from translucid.serving.requests import RequestContext
from translucid.serving.server_options import ServerOptions


@pytest.fixture
def app():
    """Return a function that creates an application without models and returns its client: app(log="json")."""

    def client(catalog=None, **options):
        server_options = ServerOptions(hosts=("testserver",), **options)
        return TestClient(create_app(catalog or Catalog(), server_options), raise_server_exceptions=False)

    return client


def figures(client, **headers):
    """Return a server's metrics without labels, and the numbers of requests by path and status."""
    text = client.get("/metrics", headers=headers).text
    values = dict(re.findall(r"^(translucid_\w+) ([0-9.e+]+)$", text, re.MULTILINE))
    counts = re.findall(r'_seconds_count\{path="(.*?)",status="(\d+)"\} ([0-9.]+)', text)
    return {name: float(value) for name, value in values.items()}, {count[:2]: float(count[2]) for count in counts}


def test_metrics_count_requests_bytes_and_work(app):
    models = [SimpleNamespace(batcher=SimpleNamespace(sentences=count)) for count in (3, 4)]
    catalog = Catalog(models)
    catalog.close = lambda: None
    client = app(catalog)
    for length in ("7", "99999999999", "100000000000", "-3", "x"):
        client.post("/nowhere", headers={"content-length": length, "host": "evil.example"})
    for path in ("/health", "/page.js"):
        client.get(path)
    plain, counts = figures(client)
    assert plain == {
        "translucid_http_requests_in_flight": 1,
        "translucid_http_bytes_total": 7 + 99_999_999_999,
        "translucid_sentences_waiting": 7,
        "translucid_work_inside": 0,
        "translucid_websockets": 0,
    } | {name: value for name, value in plain.items() if name.endswith("_created")}
    text = client.get("/metrics").text
    assert f'translucid_build_info{{version="{__version__}"}} 1.0' in text
    assert 'le="3600.0"' in text
    assert "process_" in text or sys.platform != "linux"
    assert counts == {("other", "421"): 5, ("/health", "200"): 1, ("/page.js", "200"): 1}
    assert figures(client)[1][("/metrics", "200")] == 2


@pytest.mark.parametrize("form", ["text", "json", "off"])
def test_the_log_of_requests(app, caplog, monkeypatch, form):
    ticks = iter([10.0, 10.04017] * 9)
    monkeypatch.setattr(measuring, "time", SimpleNamespace(perf_counter=lambda: next(ticks)))
    client = app(log=form)
    with caplog.at_level(logging.INFO, "translucid.serving.requests"):
        client.get("/health")
        client.post("/download_file/a-secret", content=b"12345")
    lines = [record.getMessage() for record in caplog.records if record.name == "translucid.serving.requests"]
    if form == "off":
        assert lines == []
    elif form == "text":
        times, rest = zip(*(line.split(" ", 1) for line in lines), strict=True)
        assert all(re.fullmatch(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00", time) for time in times)
        assert rest == (
            "- GET /health 200 0.040 s 0 bytes",
            "- POST /download_file/{key} 405 0.040 s 5 bytes",
        )
    else:
        records = [json.loads(line) for line in lines]
        assert len({len(record.pop("time")) for record in records}) == 1
        first = {"client": "-", "key": "", "method": "GET", "path": "/health", "status": 200, "seconds": 0.0402}
        ids = [record.pop("id") for record in records]
        assert len(set(ids)) == 2 and all(re.fullmatch("[0-9a-f]{32}", id) for id in ids)
        assert records[0] == {**first, "bytes": 0}
        assert records[1] == {**first, "method": "POST", "path": "/download_file/{key}", "status": 405, "bytes": 5}


@pytest.mark.parametrize(("given", "kept"), [("a-7:b.c_D", True), ("x" * 65, False), ("a b", False), ("é", False)])
def test_a_request_has_the_id_of_its_proxy(app, given, kept):
    response = app().get("/health", headers={"X-Request-ID": given.encode()})
    assert (response.headers["x-request-id"] == given) == kept
    assert kept or re.fullmatch("[0-9a-f]{32}", response.headers["x-request-id"])


def test_translated_characters_are_counted_by_pair(serve, caplog):
    client = serve(log="json")
    with caplog.at_level(logging.INFO, "translucid.serving.requests"):
        for fields in ({"q": ["I sing", "You sing"]}, {"q": "<b>I</b> sing", "format": "html"}):
            assert client.post("/translate", json={"source": "en", "target": "es", **fields}).status_code == 200
        client.post("/look", json={"q": "I sing", "source": "en", "target": "es"})
        unsplit = {"text": ["I sing"], "source_lang": "EN", "target_lang": "ES", "split_sentences": "0"}
        client.post("/v2/translate", json=unsplit)
        client.get("/health")
    records = [json.loads(record.getMessage()) for record in caplog.records if "/" in record.getMessage()]
    assert [(record.get("pair"), record.get("characters")) for record in records] == [
        ("en-es", 14),
        ("en-es", 13),
        ("en-es", 6),
        ("en-es", 6),
        (None, None),
    ]
    text = client.get("/metrics").text
    assert 'translucid_characters_total{pair="en-es"} 39.0' in text
    assert 'translucid_texts_total{pair="en-es"} 5.0' in text


def test_a_request_without_an_answer_is_one_of_a_client_that_left(app, caplog):
    client = app(log="text")
    client_app = client.app

    @client_app.get("/leaves")
    async def leaves():
        raise ClientLeft

    with caplog.at_level(logging.INFO, "translucid.serving.requests"):
        assert client.get("/leaves").status_code == 499
    assert " GET /leaves 499 " in caplog.records[-1].getMessage()


def test_paths_below_a_prefix(app):
    client = app(url_prefix="/mt", log="text")
    redirected = client.get("/mt", follow_redirects=False)
    assert (redirected.status_code, redirected.headers["location"]) == (307, "/mt/")
    assert client.get("/mt/health").json() == client.get("/health").json() == {"status": "ok"}
    for path in ("/mt/openapi.json", "/mt/spec"):
        assert client.get(path).json()["servers"] == [{"url": "/mt"}]
    assert client.get("/mt/v2/nowhere").json() == {"message": "Not Found"}
    assert "servers" not in app().get("/spec").json()
    assert app().get("", follow_redirects=False).status_code == 200


def test_every_get_route_answers_head(app):
    client = app()
    for path, operations in client.get("/spec").json()["paths"].items():
        assert "head" not in operations
        if "get" in operations and "{" not in path:
            get, head = client.get(path), client.head(path)
            assert (head.status_code, head.content) == (get.status_code, b""), path
    assert client.get("/openapi.json").json()["info"]["title"] == "Translucid"
    assert client.get("/redoc").status_code == 404
    for path in ("/docs", "/", "/swagger-ui.css", "/swagger-ui-bundle.js", "/page.js"):
        assert client.get(path).status_code == client.head(path).status_code == 200
    assert client.get("/index.html").status_code == client.get("/docs.html").status_code == 404


def test_the_server_ends_in_order():
    """The worker pool ends before the memory and the jobs' folder are closed, because running work uses them."""
    closed = []

    def part(name):
        return SimpleNamespace(close=lambda: closed.append(name))

    context = SimpleNamespace(catalog=part("catalog"), worker_pool=part("worker pool"), all_memories=[part("memory")])
    context.live_sessions = part("sessions")
    context.close = lambda: RequestContext.close(context)
    jobs = SimpleNamespace(close=lambda: closed.append("jobs"), clean=lambda: closed.append("folder"))

    async def main():
        async with application._lifespan(None, context, jobs):
            before = asyncio.all_tasks()
            assert len(before) == 2 and not closed
        await asyncio.sleep(0)
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(main())
    assert closed == ["sessions", "jobs", "catalog", "worker pool", "memory", "folder"]
    context.all_memories = []
    closed.clear()
    asyncio.run(main())
    assert closed == ["sessions", "jobs", "catalog", "worker pool", "folder"]


def test_memory_is_returned_after_work(monkeypatch, caplog):
    returned, slept = [], []
    work = iter([0.0, 0.1, 0.2, 0.21, 0.21, 0.41, 0.42, 0.42])
    monkeypatch.setattr(application, "time", SimpleNamespace(process_time=lambda: next(work)))
    monkeypatch.setattr(application, "release_freed_memory", lambda: returned.append(len(slept)))

    async def sleep(seconds):
        slept.append(seconds)
        if len(slept) == 7:
            raise asyncio.CancelledError

    def tidy_up():
        if len(slept) == 2:
            raise OSError("gone")

    monkeypatch.setattr(application, "asyncio", SimpleNamespace(sleep=sleep, to_thread=asyncio.to_thread))
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(
            application._tidy_up(SimpleNamespace(tidy_up=tidy_up), SimpleNamespace(live_sessions=LiveSessions()))
        )
    assert returned == [4, 6] and set(slept) == {2.0}
    assert "old documents could not be forgotten" in caplog.text
