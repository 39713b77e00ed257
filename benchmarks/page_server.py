"""A server of some runs in this process, and a browser to view its page."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from playwright.sync_api import Browser, sync_playwright

from tests.probes.chromium import CHROMIUM
from translucid.lessons.beside import recorded_routes
from translucid.serving.app import create_app
from translucid.serving.catalog import load
from translucid.serving.server_options import ServerOptions


@contextmanager
def served(runs: list[str]) -> Iterator[str]:
    """Yield the address of a server."""
    options = ServerOptions()
    app = create_app(load(runs, "cpu", options), options, lessons=lambda _: recorded_routes())
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="warning"))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.05)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    server.should_exit = True
    thread.join()


@contextmanager
def chromium() -> Iterator[Browser]:
    """Yield a browser."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()
