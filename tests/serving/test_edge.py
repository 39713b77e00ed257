"""The outermost layers of the server: the host check, error responses, and the page's files."""

import asyncio
import gzip
import json
import re
import sqlite3
from types import SimpleNamespace

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from translucid.ground.errors import UserError
from translucid.serving.edge import middleware as host_check
from translucid.serving.edge.failures import (
    CLIENT_CLOSED_REQUEST,
    INTERNAL,
    NO_ROOM,
    ApiError,
    ClientLeft,
    GoneError,
    ServerError,
    answer_errors,
)
from translucid.serving.edge.middleware import HostCheck
from translucid.serving.edge.rate_limits import RATE_LIMIT
from translucid.serving.edge.rendering import Asset
from translucid.serving.requests import Bodies
from translucid.serving.server_options import PAGE_HEADERS, ServerOptions

OK = ({"type": "http.response.start", "status": 200, "headers": []}, {"type": "http.response.body", "body": b"ok"})
BODY = [{"type": "http.request", "body": b"x", "more_body": True}] * 2 + [{"type": "http.request", "body": b"x"}]


def run_check(reads=0, answer=OK, error=None, options=None, bodies=None, received=BODY, state=(), **headers):
    """Run an application behind the host check; return the messages that it sent, and how many remained unread."""
    incoming_messages, sent = list(received), []

    async def application(scope, receive, send):
        for _ in range(reads):
            await receive()
        for message in answer:
            await send(dict(message))
        if error:
            raise error

    async def receive():
        return incoming_messages.pop(0) if incoming_messages else await asyncio.sleep(60)

    async def send(message):
        sent.append(message)

    all_headers = {"host": "localhost", **headers}
    encoded = [(name.replace("_", "-").encode(), value.encode()) for name, value in all_headers.items()]
    scope = {"type": "http", "method": "POST", "path": "/", "headers": encoded, **dict(state)}
    check = HostCheck(application, options or ServerOptions(), bodies or Bodies())
    asyncio.run(check(scope, receive, send))
    return sent, len(incoming_messages)


def headers_of(message):
    return {name.decode(): value.decode() for name, value in message["headers"]}


def test_other_messages_than_requests_pass_unchanged():
    calls = []

    async def application(*arguments):
        calls.append(arguments)

    arguments = {"type": "lifespan"}, object(), object()
    asyncio.run(HostCheck(application, ServerOptions(), Bodies())(*arguments))
    assert calls == [arguments]


@pytest.mark.parametrize(
    ("headers", "reads", "closes"),
    [
        ({"content_length": "3"}, 0, True),
        ({"content_length": "3"}, 2, True),
        ({"content_length": "3"}, 3, False),
        ({"transfer_encoding": "chunked"}, 0, True),
        ({"transfer_encoding": "chunked"}, 3, False),
        ({"content_length": "0"}, 0, False),
        ({}, 0, False),
    ],
)
def test_a_connection_is_closed_after_an_answer_to_an_unread_body(headers, reads, closes):
    sent, unread = run_check(reads, **headers)
    if closes:
        assert headers_of(sent[0]) == {"connection": "close"} and unread == 0
        assert sent[1:] == [OK[1] | {"more_body": True}, {"type": "http.response.body", "body": b""}]
    else:
        assert sent == [OK[0], OK[1]] and unread == 3 - reads


def test_an_answer_of_several_parts_is_sent_before_the_rest_of_the_body_is_read():
    parts = [OK[0], {"type": "http.response.body", "body": b"1", "more_body": True}, OK[1]]
    sent, unread = run_check(0, parts, content_length="3")
    assert sent[1:] == [parts[1], OK[1] | {"more_body": True}, {"type": "http.response.body", "body": b""}]
    assert unread == 0


def test_a_client_that_is_refused_may_send_for_a_second(monkeypatch):
    assert host_check.LINGER == 1
    monkeypatch.setattr(host_check, "LINGER", 0.01)
    sent, _ = run_check(0, content_length="9", received=BODY[:2])
    assert len(sent) == 3


def test_an_internal_error_has_one_answer_and_releases_the_body(caplog):
    bodies = Bodies()
    for answer, expected in (((), {"error": INTERNAL}), (OK, None)):
        bodies.total_bytes = 5
        sent, _ = run_check(3, answer, ZeroDivisionError(), bodies=bodies, state=[("translucid.body_bytes", 5)])
        assert bodies.total_bytes == 0 and "ZeroDivisionError" in caplog.text
        if expected:
            assert sent[0]["status"] == 500 and json.loads(sent[1]["body"]) == expected
        else:
            assert sent == [OK[0], OK[1]]
    assert [record.message for record in caplog.records] == ["a request failed"] * 2


def test_answers_name_the_rate_limit():
    sent, _ = run_check(state=[(RATE_LIMIT, (2, 1, 29.2))])
    assert headers_of(sent[0]) == {"ratelimit-limit": "2", "ratelimit-remaining": "1", "ratelimit-reset": "30"}


SMUGGLED = "Invalid request: Content-Length and Transfer-Encoding contradict each other"
OTHER_SITE = "Pages of other sites may not use this server (--origins)"


@pytest.mark.parametrize(
    ("headers", "options", "status", "error"),
    [
        ({"content_length": "1", "transfer_encoding": "chunked"}, {}, 400, SMUGGLED),
        ({"host": "evil.example:80"}, {}, 421, "'evil.example'"),
        ({"host": "x" * 101}, {}, 421, repr("x" * 100)),
        ({"host": "evil.example"}, {"hosts": ("other.example",)}, 421, "'evil.example'"),
        ({"host": "here.example."}, {"hosts": ("here.example",)}, 200, None),
        ({"host": "any.example"}, {"hosts": ("*",)}, 200, None),
        ({"host": ""}, {}, 421, "''"),
        ({"host": "[::1"}, {}, 421, "''"),
        ({"host": "[::1]:80"}, {}, 200, None),
        ({"host": "x.localhost"}, {}, 200, None),
        ({"host": "xlocalhost"}, {}, 421, "'xlocalhost'"),
        ({"origin": "https://evil.example"}, {}, 403, OTHER_SITE),
        ({"origin": ""}, {}, 403, OTHER_SITE),
        ({"origin": "null"}, {}, 403, OTHER_SITE),
        ({"origin": "https://good.example"}, {"origins": ("https://good.example",)}, 200, None),
        ({"origin": "https://good.example"}, {"origins": ("*",)}, 200, None),
        ({"origin": "http://LOCALHOST"}, {}, 200, None),
        ({"host": "Localhost", "origin": "http://localhost"}, {}, 200, None),
        ({"origin": "http://localhost:80"}, {}, 403, OTHER_SITE),
        ({"origin": "https://evil.example", "sec_fetch_site": "same-origin"}, {}, 200, None),
        ({"origin": "https://evil.example", "sec_fetch_site": "same-site"}, {}, 403, OTHER_SITE),
    ],
)
def test_refused_requests(headers, options, status, error):
    sent, _ = run_check(3, options=ServerOptions(**options), **headers)
    if error is None:
        assert sent == [OK[0], OK[1]]
        return
    if status == 421:
        error = f"This server does not go by the name {error}; --hosts says which names it has"
    assert (sent[0]["status"], json.loads(sent[1]["body"])) == (status, {"error": error})
    assert (headers_of(sent[0]).get("connection") == "close") is (status == 400)


def response_to(error):
    app = FastAPI()
    answer_errors(app)

    async def fail():
        raise error

    app.get("/fail")(fail)
    app.get("/v2/fail")(fail)
    client = TestClient(app, raise_server_exceptions=False)
    first, second = client.get("/fail"), client.get("/v2/fail")
    assert first.status_code == second.status_code
    if first.content:
        assert second.json() == {"message": first.json()["error"]}
    return first


@pytest.mark.parametrize(
    ("error", "status", "message"),
    [
        (ApiError(413, "too large"), 413, "too large"),
        (GoneError(), 404, "There is no such file, or not any more"),
        (UserError("is wrong", file="a.txt"), 400, "a.txt: is wrong."),
        (ServerError("damaged"), 500, INTERNAL),
        (OSError("gone"), 500, INTERNAL),
        (OSError(28, "full"), 503, NO_ROOM),
        (sqlite3.OperationalError("locked"), 500, INTERNAL),
        (HTTPException(405, "Method Not Allowed"), 405, "Method Not Allowed"),
    ],
)
def test_errors_are_answers(error, status, message):
    response = response_to(error)
    assert (response.status_code, response.json()) == (status, {"error": message})
    assert "retry-after" not in response.headers


def test_headers_of_error_answers():
    assert response_to(ApiError(503, "busy", 5)).headers["retry-after"] == "5"
    assert response_to(HTTPException(405, "no", {"Allow": "POST"})).headers["allow"] == "POST"
    for error in (ClientLeft(), ClientDisconnect()):
        response = response_to(error)
        assert (response.status_code, response.content) == (CLIENT_CLOSED_REQUEST, b"") and CLIENT_CLOSED_REQUEST == 499


@pytest.mark.parametrize(
    ("name", "media"),
    [("page.js", "text/javascript"), ("a.b.css", "text/css"), ("index.html", "text/html"), ("js", "text/javascript")],
)
def test_files_of_the_page(name, media):
    asset = Asset(name, b"content")
    first = asyncio.run(asset.answer(SimpleNamespace(headers={})))
    assert (first.status_code, first.body, first.headers["content-type"]) == (
        200,
        b"content",
        f"{media}; charset=utf-8",
    )
    compressed = asyncio.run(asset.answer(SimpleNamespace(headers={"accept-encoding": "br, gzip"})))
    assert gzip.decompress(compressed.body) == b"content" and compressed.headers["content-encoding"] == "gzip"
    assert "content-encoding" not in first.headers
    expected = {**PAGE_HEADERS, "Cache-Control": "no-cache", "ETag": f"W/{asset.etag}", "Vary": "Accept-Encoding"}
    not_modified = asyncio.run(asset.answer(SimpleNamespace(headers={"if-none-match": f'"a", W/{asset.etag}'})))
    assert (not_modified.status_code, not_modified.body) == (304, b"")
    for response in (first, compressed, not_modified):
        assert {name: response.headers[name] for name in expected} == expected
    assert re.fullmatch('"[0-9a-f]{32}"', asset.etag) and asset.etag != Asset(name, b"other").etag
    for tag in ("", '"other"', asset.etag.strip('"'), asset.etag[:-2] + '"'):
        assert asyncio.run(asset.answer(SimpleNamespace(headers={"if-none-match": tag}))).status_code == 200
