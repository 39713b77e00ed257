"""Live lessons: on a server, the same pages accept the reader's own sentences."""

import os
import re
import threading
import time
import urllib.request

import numpy as np
import pytest
import uvicorn
from fastapi.testclient import TestClient
from playwright.sync_api import expect

from translucid.lessons.beside import recorded_routes
from translucid.lessons.lessons import LESSONS
from translucid.lessons.live import Live
from translucid.lessons.recording import PAIRS, PASSAGES, SENTENCE, record_of
from translucid.lessons.serving import recorded_server
from translucid.serving.app import create_app
from translucid.serving.catalog import load
from translucid.serving.server_options import ServerOptions

OWN = "We like the beach"


@pytest.fixture(scope="module")
def app(models, records):
    options = ServerOptions(hosts=("testserver",))
    models.load()
    return create_app(
        load([str(models.runs / "demo")], "cpu", options),
        options,
        lessons=lambda context: Live(models, context).routes(),
    )


@pytest.fixture(scope="module")
def client(app):
    with TestClient(app, raise_server_exceptions=False) as test_client:
        yield test_client


def test_the_figures_are_those_of_the_models(client, records):
    script = client.get("/lessons/records/memory.js")
    assert script.headers["content-type"].startswith("text/javascript")
    assert records["memory"] in script.text
    assert "data-live" in client.get("/lessons/memory.html").text
    assert client.head("/lessons/").status_code == 200
    assert "default-src 'self'" in client.get("/lessons/").headers["content-security-policy"]


@pytest.mark.parametrize("lesson", SENTENCE)
def test_a_sentence_of_the_reader(client, records, lesson):
    text = {"patching": " / ".join(next(iter(PAIRS))), "context": " / ".join(next(iter(PASSAGES)))}.get(lesson, OWN)
    answer = client.post("/lessons/look", json={"lesson": lesson, "q": f"  {text}\n"})
    assert answer.status_code == 200, answer.text
    assert answer.json()["text"] == text


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"lesson": "positions", "q": OWN}, 400),
        ({"lesson": "no such", "q": OWN}, 400),
        ({"lesson": "heads", "q": "   "}, 400),
        ({"lesson": "heads", "q": "x" * 121}, 400),
        ({"lesson": "heads", "q": 7}, 400),
        ({"lesson": "patching", "q": OWN}, 400),
        ({"lesson": "patching", "q": f"{OWN} / {OWN}"}, 400),
        ({"lesson": "heads"}, 400),
    ],
)
def test_invalid_sentences_are_refused(client, fields, status):
    answer = client.post("/lessons/look", json=fields)
    assert answer.status_code == status
    assert answer.json()["error"]


def test_figures_are_cached_until_a_model_is_trained_again(models, records):
    (lesson,) = (candidate for candidate in LESSONS if candidate.name == "positions")
    file, model = models.runs / "lessons" / "positions.json", models.runs / "demo" / "model.safetensors"
    kept = '{"width": 7}'
    file.write_text(kept)
    assert record_of(models, lesson) == kept
    for damaged in ('{"breadth": 7}', "{"):  # fields of another version, and no record at all
        file.write_text(damaged)
        assert record_of(models, lesson) == records["positions"]
    file.write_text(kept)
    os.utime(file, (0, model.stat().st_mtime - 1))
    assert record_of(models, lesson) == records["positions"] == file.read_text()


def test_lessons_beside_a_translator_show_the_packaged_records(models):
    options = ServerOptions(hosts=("testserver",), url_prefix="/translate")
    app = create_app(load([str(models.runs / "demo")], "cpu", options), options, lessons=lambda _: recorded_routes())
    with TestClient(app, base_url="http://testserver/translate/") as client:
        assert client.get("frontend/settings").json()["lessons"] is True
        for path in ("/translate/lessons", "/lessons"):  # a proxy may have removed the prefix
            assert client.get(f"http://testserver{path}").url.path == "/translate/lessons/"
        for path in ("/translate/lessons/", "/lessons/", "//translate//lessons//"):
            statuses = []
            for method in ("GET", "HEAD", "POST"):
                statuses.append(client.request(method, f"http://testserver{path}").status_code)
            assert statuses == [200, 200, 405]
        assert client.head("lessons/").headers["content-security-policy"].startswith("default-src 'self'")
        for lesson in LESSONS:
            page = client.get(f"lessons/{lesson.name}.html")
            files = [
                page,
                *(client.get(f"lessons/{file}") for file in re.findall('(?:src|stylesheet" href)="(.+?)"', page.text)),
            ]
            assert [file.status_code for file in files] == [200] * 5
            assert sum(len(file.content) for file in files) < 350_000
            assert 'href="../"' in page.text
            assert "data-live" not in page.text
        for path in ("records/none.js", "none.html", "%2e%2e/pages.py", "records/..%2f..%2fpages.py"):
            assert client.get(f"lessons/{path}").status_code == 404
        assert client.post("lessons/look", json={"lesson": "heads", "q": OWN}).status_code == 405


def test_other_paths_are_not_found(client):
    for path in ("records/none.js", "records/..%2f..%2fruns.js", "../pages.py"):
        assert client.get(f"/lessons/{path}").status_code == 404


def test_a_sentence_of_the_reader_in_the_browser(app, models, context):
    server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=0, log_level="warning", lifespan="off"))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.05)
    url = f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/lessons/"
    page = context.new_page()
    problems = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    try:
        page.goto(url)
        page.get_by_role("link", name="Queries, keys and values").click()
        page.get_by_label("or your own").fill(OWN)
        page.keyboard.press("Enter")
        expect(page.get_by_label("Sentence").locator("option:checked")).to_have_text(OWN)
        equation = models.demo.translate(OWN, split=False).equation(head=0)
        shown = [float(text.replace("−", "-")) for text in page.locator(".memory .score").all_inner_texts()]
        np.testing.assert_allclose(shown, equation.scores[min(2, len(equation.scores) - 1)].numpy(), atol=0.01)
        assert page.get_by_label("or your own").bounding_box()["width"] > 500
        page.goto(f"{url}memory.html?lang=es")
        page.get_by_label("o la tuya").fill(" ")
        page.keyboard.press("Enter")
        expect(page.locator(".problem")).to_contain_text("entre 1 y 120 caracteres")
        page.goto(f"{url}patching.html")
        for label, text in zip(("or your own CLEAN", "and OTHER"), next(iter(PAIRS)), strict=True):
            page.get_by_label(label).fill(text)
        page.keyboard.press("Enter")
        expect(page.get_by_label("Sentence").locator("option")).to_have_count(len(PAIRS) + 1)
    finally:
        page.close()
        server.should_exit = True
        thread.join(30)
    assert [problem for problem in problems if "400" not in problem] == []


def test_a_server_without_models_shows_the_packaged_records():
    with recorded_server(0) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_address[1]}"
        with urllib.request.urlopen(f"{url}/") as answer:
            assert answer.url == f"{url}/lessons/"
            assert b"sixteen short lessons" in answer.read()
        with urllib.request.urlopen(f"{url}/lessons/records/beam.js") as answer:
            assert answer.headers["Content-Type"].startswith("text/javascript")
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(f"{url}/lessons/../pages.py")
        server.shutdown()
