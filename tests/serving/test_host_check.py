"""Access checks of the server, rate limits, path prefixes, and what is logged."""

import asyncio
import json
import logging
import time
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import unquote

import pytest
from fastapi.testclient import TestClient

from translucid.api.inspector import Inspector
from translucid.api.translator import Translator
from translucid.ground.errors import UserError
from translucid.lessons.beside import recorded_routes
from translucid.serving.app import create_app
from translucid.serving.catalog import is_language, load
from translucid.serving.edge.middleware import HostCheck
from translucid.serving.edge.rate_limits import RateLimits, trusted_proxies
from translucid.serving.edge.rendering import Asset
from translucid.serving.requests import Bodies
from translucid.serving.routes import inspection
from translucid.serving.server_options import ApiKey, Quota, ServerOptions, read_keys

SECRET = "a text that nobody else may read"


def translate(client, **fields):
    return client.post("/translate", json={"q": "I sing", "source": "en", "target": "es", **fields})


def test_heads_are_answered(client):
    for path in (
        "/",
        "/health",
        "/docs",
        "/page.js",
        "/spec",
        "/languages",
        "/frontend/settings",
        "/models",
        "/metrics",
    ):
        response = client.head(path)
        assert (response.status_code, response.content) == (200, b""), path
        assert client.get(path).status_code == 200


def test_answers_say_how_many_requests_are_left(serve):
    client = serve(quota=Quota(per_minute=2))
    for remaining, status in ((1, 200), (0, 200), (0, 429)):
        response = translate(client)
        assert response.status_code == status
        limits = [response.headers[f"ratelimit-{name}"] for name in ("limit", "remaining")]
        assert limits == ["2", str(remaining)] and 0 < int(response.headers["ratelimit-reset"]) <= 60
    assert "ratelimit-limit" not in client.get("/health").headers
    assert "ratelimit-limit" not in translate(serve()).headers


def test_the_page_reads_its_limit_with_the_settings_or_its_key(serve):
    def remaining(client):
        return client.get("/frontend/settings").headers.get("ratelimit-remaining")

    client = serve(quota=Quota(per_minute=2))
    assert [remaining(client) for _ in range(3)] == ["2"] * 3
    translate(client)
    assert remaining(client) == "1"
    client = serve(api_keys={"secret": ApiKey(Quota(per_minute=5))}, quota=Quota(per_minute=2))
    translate(client, api_key="secret")
    assert remaining(client) is None
    assert client.post("/frontend/key", json={"api_key": "secret"}).headers["ratelimit-remaining"] == "4"
    assert remaining(serve()) is None


def test_a_key_is_tried_without_being_counted(serve):
    client = serve(api_keys={"secret": ApiKey(Quota(per_minute=1))})
    for key, status in ((None, 400), ("wrong", 403), ("secret", 200), ("secret", 200)):
        assert client.post("/frontend/key", json={"api_key": key} if key else {}).status_code == status
    assert translate(client, api_key="secret").status_code == 200
    assert serve().post("/frontend/key", json={}).json() == {"valid": True}


def test_ten_corrections_count_as_one_request(serve):
    client = serve(quota=Quota(per_minute=1))
    form = {"data": {"source": "en", "target": "es"}, "files": {"file": ("a.txt", b"I sing.")}}
    job = client.post("/documents", **form).json()
    while client.get(f"/documents/{job['id']}").json()["state"] != "done":
        time.sleep(0.02)
    statuses = [
        client.put(f"/documents/{job['id']}/segments/0", json={"text": f"Canto {i}."}).status_code for i in range(11)
    ]
    assert statuses == [200] * 10 + [429]


@pytest.mark.parametrize(("metrics", "without", "with_key"), [("key", 401, 200), ("open", 200, 200), ("off", 404, 404)])
def test_metrics_are_for_who_may_see_them(serve, metrics, without, with_key):
    client = serve(api_keys={"secret": None}, metrics=metrics)
    assert client.get("/metrics").status_code == without
    assert client.get("/metrics", headers={"Authorization": "Bearer secret"}).status_code == with_key
    assert serve(metrics=metrics).get("/metrics").status_code == (404 if metrics == "off" else 200)


def test_a_client_that_is_no_address_is_not_logged_and_not_remembered(run, caplog):
    """X-Forwarded-For may contain anything, even behind a proxy."""
    options = ServerOptions(log="text", quota=Quota(per_minute=2), hosts=("testserver",))
    app = create_app(load([str(run)], "cpu", options), options)
    statuses = []
    with caplog.at_level(logging.INFO, "translucid.serving.requests"):
        for host in ("\x1b[31m1.2.3.4 GET /fake 200", "9" * 10_000, "anybody", "fe80::1%eth0", "192.0.2.7"):
            client = TestClient(app, client=(host, 1))
            statuses.append(translate(client).status_code)
    assert statuses == [200, 200, 429, 200, 200]
    clients = [record.message.split()[1] for record in caplog.records if record.name == "translucid.serving.requests"]
    assert clients == ["-", "-", "-", "fe80::1", "192.0.2.7"]


def test_wrong_keys_are_counted_by_network_and_work_is_shared_by_it(run):
    options = ServerOptions(api_keys={"right": None}, hosts=("testserver",))
    app = create_app(load([str(run)], "cpu", options), options)
    statuses = [
        translate(TestClient(app, client=(f"2001:db8::{i}", 1)), api_key="wrong").status_code for i in range(1, 13)
    ]
    assert statuses == [403] * 10 + [429] * 2
    assert translate(TestClient(app, client=("2001:db8:0:1::1", 1)), api_key="wrong").status_code == 403
    client = SimpleNamespace(client=SimpleNamespace(host="2001:db8::9"), headers={})
    assert RateLimits(ServerOptions()).check(client, {}) == "address 2001:db8::/64"


def test_proxies_are_addresses_and_ipv4_ones_are_known_on_a_socket_for_both():
    assert trusted_proxies(["127.0.0.1", "10.1.2.3/8", "2001:db8::/32"]) == [
        "127.0.0.1/32",
        "::ffff:127.0.0.1/128",
        "10.0.0.0/8",
        "::ffff:10.0.0.0/104",
        "2001:db8::/32",
    ]
    assert trusted_proxies(["*"]) == ["*"]
    with pytest.raises(UserError, match="'nginx' is no address"):
        trusted_proxies(["nginx"])


def test_a_browser_asks_each_time_whether_there_is_a_newer_script(run):
    options = ServerOptions(hosts=("testserver",))
    client = TestClient(create_app(load([str(run)], "cpu", options), options, lessons=lambda _: recorded_routes()))
    for path in ("/", "/docs", "/page.js", "/page.css", "/inspector.js", "/swagger-ui-bundle.js", "/lessons/"):
        first = client.get(path)
        assert first.headers["cache-control"] == "no-cache"
        tag = first.headers["etag"]
        for tag_list in (tag, tag.removeprefix("W/"), f'"other", {tag}'):
            repeated = client.get(path, headers={"If-None-Match": tag_list})
            assert (repeated.status_code, repeated.content, repeated.headers["etag"]) == (304, b"", tag)
        assert client.get(path, headers={"If-None-Match": '"other"'}).content == first.content
    assert Asset("page.js", b"new").etag != Asset("page.js", b"old").etag


def test_what_is_wrong_with_a_model_is_no_fault_of_the_request(client, monkeypatch, caplog):
    message = "the model's predictions are not numbers (NaN or infinite)"

    def fail(*_, **__):
        raise UserError(message)

    monkeypatch.setattr(Translator, "stream", fail)
    html = {"q": "<p>I sing</p>", "source": "en", "target": "es", "format": "html"}
    deepl = {"text": "I sing", "source_lang": "EN", "target_lang": "ES"}
    requests = [("/translate", {"q": "I sing", "source": "en", "target": "es"}), ("/translate", html)]
    requests += [("/translate", {"q": "I sing. " * 100, "source": "en", "target": "es"})]
    requests += [("/v2/translate", deepl), ("/v2/translate", {**deepl, "split_sentences": "0"})]
    for path, fields in requests:
        response = client.post(path, json=fields)
        name = "message" if path.startswith("/v2") else "error"
        assert (response.status_code, response.json()) == (500, {name: "Internal error; it is in the server's log"})
    assert caplog.text.count(message) >= len(requests)


@pytest.mark.parametrize("started", [False, True])
def test_a_request_that_fails_is_answered_once(started):
    """Call the application directly: a test client would wait for a response that never comes."""

    async def application(scope, receive, send):
        if started:
            await send({"type": "http.response.start", "status": 200, "headers": []})
        raise ZeroDivisionError

    async def receive():
        return {"type": "http.request", "body": b""}

    async def send(message):
        messages.append(message)

    messages = []
    scope = {"type": "http", "method": "GET", "path": "/", "headers": [(b"host", b"testserver")]}
    host_check = HostCheck(application, ServerOptions(hosts=("testserver",)), Bodies())
    asyncio.run(host_check(scope, receive, send))
    if started:
        assert [message["status"] for message in messages] == [200]
    else:
        assert [message["type"] for message in messages] == ["http.response.start", "http.response.body"]
        assert messages[0]["status"] == 500
        assert json.loads(messages[1]["body"]) == {"error": "Internal error; it is in the server's log"}


def test_a_damaged_run_is_no_fault_of_the_request(client, monkeypatch, caplog):
    def fail(*_, **__):
        raise UserError("is damaged", file=Path("runs/mine/model.safetensors"))

    monkeypatch.setattr(Inspector, "inspect_encoded", fail)
    response = client.post("/look", json={"q": "I sing", "source": "en", "target": "es", "translations": ["Canto"]})
    assert (response.status_code, "damaged" in response.text) == (500, False)
    assert "runs/mine/model.safetensors: is damaged" in caplog.text


def test_an_error_of_ours_is_told_in_the_words_of_each_api(client, monkeypatch):
    monkeypatch.setattr("translucid.serving.dialects.deepl.DeepL.pair", lambda *_: 1 / 0)
    assert client.post("/v2/translate", json={"text": "a", "target_lang": "ES"}).json() == {
        "message": "Internal error; it is in the server's log"
    }


@pytest.mark.parametrize("form", ["text", "json"])
def test_the_log_has_the_names_of_keys(serve, tmp_path, caplog, form):
    file = tmp_path / "keys.txt"
    file.write_text("secret-one name=office per-minute=2\nsecret-two name=Büro@2\nsecret-three\n")
    keys = read_keys(file)
    assert keys["secret-one"] == ApiKey(Quota(per_minute=2), "office")
    assert keys["secret-two"] == ApiKey(None, "Büro@2")
    client = serve(log=form, api_keys=keys)
    with caplog.at_level(logging.INFO, "translucid.serving.requests"):
        statuses = [
            translate(client, api_key=f"secret-{key}").status_code for key in ("one", "one", "one", "two", "three", "x")
        ]
    assert statuses == [200, 200, 429, 200, 200, 403]
    lines = [record.message for record in caplog.records if record.name == "translucid.serving.requests"]
    if form == "json":
        assert [json.loads(line)["key"] for line in lines] == ["office"] * 3 + ["Büro@2", "", ""]
    else:
        assert [line.split()[2] for line in lines] == ["office"] * 3 + ["Büro@2", "POST", "POST"]
    assert "secret" not in "".join(lines)


@pytest.mark.parametrize("form", ["text", "json"])
def test_the_log_has_no_texts_and_no_keys(serve, caplog, form):
    client = serve(log=form, api_keys={"secret-key": None})
    with caplog.at_level(logging.INFO, "translucid.serving.requests"):
        assert translate(client, q=SECRET, api_key="secret-key").status_code == 200
        client.get(f"/made/up?q={SECRET}")
        client.get("/download_file/some-key")
    lines = [record.message for record in caplog.records if record.name == "translucid.serving.requests"]
    assert len(lines) == 3
    if form == "json":
        first = json.loads(lines[0])
        assert (first["method"], first["path"], first["status"]) == ("POST", "/translate", 200)
        assert first["bytes"] > 20 and 0 < first["seconds"] < 60
    assert "POST" in lines[0] and "404" in lines[1]
    for secret in (SECRET, "secret-key", "some-key", "made"):
        assert secret not in "".join(lines)


def test_forms_of_all_kinds_are_read_everywhere(client, serve):
    fields = {"q": "I sing.", "source": "en", "target": "es"}
    for path in ("/translate", "/detect", "/look", "/beam"):
        expected = client.post(path, json=fields)
        assert expected.status_code == 200
        multipart = {name: (None, value) for name, value in fields.items()}
        assert client.post(path, files=multipart).json() == expected.json(), path
    response = client.post(
        "/translate", files=[("q", (None, "I sing.")), ("q", (None, "You sing.")), *list(multipart.items())[1:]]
    )
    assert len(response.json()["translatedText"]) == 2
    assert client.post("/translate", content=b"x", headers={"content-type": "multipart/form-data"}).status_code == 400
    long_form = {"q": (None, " " * 1_100_000), "source": (None, "en"), "target": (None, "es")}
    assert serve(characters=2_000_000).post("/translate", files=long_form).status_code == 200


FIELDS = ["q", "source", "target", "format", "alternatives", "api_key", "model", "explain", "prefix", "s"]


PATHS = ["/translate", "/detect", "/look", "/continue", "/beam", "/suggest"]
VALUES = ['"\\ud800"', '["\\udfff"]', '{"\\ud800": "\\ud800"}', '"auto\\ud800"']


def test_half_a_surrogate_in_any_field_is_no_internal_error(client, serve, monkeypatch):
    monkeypatch.setattr(inspection, "CHOICES", 1)  # one continuation, because the others take as long
    odd = "any\\ud800thing"
    requests = [(client, *request) for request in product(PATHS, [*FIELDS, odd], VALUES)]
    closed = serve(api_keys={"secret": None})  # it reads no other field without a key
    requests += [(closed, *request) for request in product(PATHS, ["api_key", odd], VALUES)]
    for server, path, field, value in requests:
        body = {"q": '" "', "source": '"en"', "target": '"es"', "prefix": "[]", field: value}
        text = "{" + ", ".join(f'"{name}": {value}' for name, value in body.items()) + "}"
        response = server.post(path, content=text.encode(), headers={"content-type": "application/json"})
        assert response.status_code < 500, (path, field, value, response.text)


def test_the_description_of_the_api_is_there(client):
    assert client.get("/spec").json() == client.get("/openapi.json").json()
    assert client.get("/redoc").status_code == 404


@pytest.mark.parametrize(
    "text", ["Hi", "...", "Ich esse gerne Brot und trinke dazu ein Glas Wasser aus der Leitung", "足球"]
)
def test_what_can_not_be_told_is_taken_for_the_language_that_is_served(client, text):
    response = translate(client, q=text, source="auto")
    assert response.status_code == 200
    assert response.json()["detectedLanguage"] == {"confidence": 0, "language": "en"}
    several = translate(client, q=[text, "The children are reading a book in the garden"], source="auto").json()
    assert [detected["language"] for detected in several["detectedLanguage"]] == ["en", "en"]
    assert several["detectedLanguage"][1]["confidence"] > 50


def test_files_keep_their_name_and_may_be_in_any_language(client):
    def upload_and_download(name, content=b"The children are reading a book in the garden.\n", source="auto"):
        form = {"source": source, "target": "es"}
        response = client.post("/translate_file", data=form, files={"file": (name, content)})
        assert response.status_code == 200, response.text
        return client.get(response.json()["translatedFileUrl"])

    for name, expected in (
        ("notes.txt", 'filename="notes_es.txt"'),  # curl and other clients do not know filename*
        ("my notes.txt", 'filename="my notes_es.txt"'),
        ("C:\\mine\\Über uns.TXT", "filename*=UTF-8''Über uns_es.TXT"),
        ("../../etc/a.txt", 'filename="a_es.txt"'),
        ('a"; x=\r\nSet-Cookie: b.txt', None),
    ):
        headers = upload_and_download(name).headers
        assert "set-cookie" not in headers
        if expected:
            assert unquote(headers["content-disposition"]) == f"attachment; {expected}"
    assert upload_and_download("n.txt", "Los niños leen un libro en el jardín.\n".encode()).text.startswith(
        "Los niños leen"
    )


def test_everything_works_below_a_prefix(serve):
    client = serve(url_prefix="/translate-app")
    page = client.get("/translate-app/")
    assert page.status_code == 200
    assert client.get("/translate-app").url.path == client.head("/translate-app").url.path == "/translate-app/"
    for path in ("page.js", "generated_text.css", "docs", "swagger-ui.css", "spec", "languages", "health", "models"):
        assert client.get(f"/translate-app/{path}").status_code == 200, path
    response = client.post("/translate-app/translate", json={"q": "I sing", "source": "en", "target": "es"})
    assert response.status_code == 200
    form = {"source": "en", "target": "es"}
    job = client.post("/translate-app/translate_file", data=form, files={"file": ("a.txt", b"I sing")}).json()
    assert "/translate-app/download_file/" in job["translatedFileUrl"]
    assert client.get(job["translatedFileUrl"]).status_code == 200


def test_languages_are_known_by_their_codes():
    assert all(map(is_language, ["en", "es", "pt-BR", "zh-Hans", "ast"]))
    assert not any(map(is_language, ["", "demo", "xx", "en-es", "english", "EN"]))
