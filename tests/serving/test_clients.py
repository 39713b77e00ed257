"""Real LibreTranslate clients from PyPI, unchanged, against a real server; and fuzzing from our own schema."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import deep_translator
import libretranslatepy
import pytest
import schemathesis
import torch
import uvicorn
from hypothesis import HealthCheck, Phase, given, settings

from translucid.api.translator import Translator
from translucid.lessons.beside import recorded_routes
from translucid.serving.app import create_app
from translucid.serving.catalog import load
from translucid.serving.memory import ServerMemory
from translucid.serving.server_options import ServerOptions


def with_browser_cache(app):
    """Let browsers cache the page's files, so that each test need not request forty of them again."""

    async def application(scope, receive, send):
        async def relay(message):
            if message["type"] == "http.response.start":
                replacements = {b"no-cache": b"max-age=600"}
                message["headers"] = [(name, replacements.get(value, value)) for name, value in message["headers"]]
            await send(message)

        await app(scope, receive, relay)

    return application


@contextmanager
def serving(*runs, memory=None, terms=(), knn=False, **options):
    """Run a server on a free port of this machine and provide its address; `memory` is a file that grows."""
    server_options = ServerOptions(**options)
    catalog = load(list(runs), "cpu", server_options, terms=terms)
    memory_routes = ServerMemory.open(memory, next(iter(catalog)).pair, grows=True, knn=knn) if memory else None
    app = create_app(catalog, server_options, memory_routes, lessons=lambda _: recorded_routes())
    server = uvicorn.Server(uvicorn.Config(with_browser_cache(app), host="127.0.0.1", port=0, log_level="warning"))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join(30)
    assert not thread.is_alive(), "the server does not go down"


@pytest.fixture(scope="module")
def address(run):
    """The address of a server with one model."""
    with serving(str(run)) as server_address:
        yield server_address


def test_libretranslatepy(address, run):
    client = libretranslatepy.LibreTranslateAPI(address)
    assert client.translate("I like soccer", "en", "es") == Translator.load(run).translate("I like soccer").text
    assert client.detect("Los niños leen un libro en el jardín")[0]["language"] == "es"
    assert {"en", "es"} == {language["code"] for language in client.languages()}


def test_deep_translator(address, run):
    client = deep_translator.LibreTranslator(
        source="en", target="es", base_url=address, api_key="none", use_free_api=False
    )
    client._base_url = address + "/"
    assert client.translate("I like soccer") == Translator.load(run).translate("I like soccer").text


def test_many_at_once_get_their_own_answers(address, run):
    api = libretranslatepy.LibreTranslateAPI(address)
    words = ("soccer", "music", "the beach", "books", "my sister", "the sea", "dogs", "art")
    texts = [f"{subject} like {noun}" for subject in ("I", "You", "We", "They") for noun in words]
    translator = Translator.load(run)
    expected = [translation.text for translation in translator.translate(texts)]
    with ThreadPoolExecutor(32) as pool:
        assert list(pool.map(lambda text: api.translate(text, "en", "es"), texts)) == expected


def test_fuzzing_finds_no_server_error(run, captioner_run):
    torch.set_flush_denormal(False)  # Hypothesis needs subnormal numbers in this process
    with serving(str(run), str(captioner_run)) as address:
        schema = schemathesis.openapi.from_url(f"{address}/openapi.json")
        for operation in schema.get_all_operations():
            api = operation.ok()

            @settings(
                max_examples=3,
                deadline=None,
                phases=[Phase.generate],
                derandomize=True,
                suppress_health_check=list(HealthCheck),
            )
            @given(case=api.as_strategy())
            def fuzz(case):
                response = case.call(timeout=60)  # the first picture loads Matplotlib
                assert response.status_code < 500 or response.status_code == 503, (case.body, response.text)

            fuzz()
