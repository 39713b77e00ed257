"""Chromium for tests of pages. Without it, these tests are skipped and the reason is shown."""

import asyncio
import shutil
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, BrowserContext, expect, sync_playwright

expect.set_options(timeout=30_000)
# The first of these does not draw invisible pages, which would take a third of the time.
NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
CHROMIUM = next(filter(None, map(shutil.which, NAMES)), None)
FLAGS = ("--no-sandbox", "--disable-gpu")
HURRY = """{
  const begin = setTimeout;
  globalThis.setTimeout = (step, milliseconds = 0, ...more) => begin(step, milliseconds / 10, ...more);
}"""
"""Shortens the waits of a page, for example until the user has stopped typing, or before it asks a server again."""


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start a browser for all test modules; each module opens its pages within `opening`."""
    if CHROMIUM is None:
        skip("no Chromium (apt-get install chromium-headless-shell, or chromium)")
    starting = sync_playwright()
    try:
        playwright = starting.start()
    except Exception as error:  # Playwright raises a plain Exception
        # The driver is Node, which needs a library that a minimal Debian lacks.
        skip(f"Playwright's driver does not start (apt-get install libatomic1): {error}")
    loop = asyncio.get_running_loop()
    try:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=[*FLAGS])
        asyncio._set_running_loop(None)
        yield browser
        asyncio._set_running_loop(loop)
        browser.close()
    finally:
        asyncio._set_running_loop(loop)
        playwright.stop()


@contextmanager
def opening(browser: Browser) -> Iterator[BrowserContext]:
    """Open pages whose timers take a tenth of the time.

    Playwright leaves its event loop marked as running between calls, so that other tests could not start one. Here, the
    loop is marked as running only within the context.
    """
    asyncio._set_running_loop(browser._loop)
    try:
        context = browser.new_context()
        context.add_init_script(HURRY)
        yield context
        context.close()
    finally:
        asyncio._set_running_loop(None)


def skip(reason: str) -> None:
    warnings.warn(f"THE PAGES ARE NOT TESTED: {reason}", stacklevel=2)
    pytest.skip(reason)
