"""Chromium for tests of pages; where it can't be started the tests are skipped, with the reason."""

import asyncio
import shutil
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, BrowserContext, expect, sync_playwright

expect.set_options(timeout=30_000)
# The first switches off the drawing of invisible pages, which takes a third of the time.
NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
CHROMIUM = next(filter(None, map(shutil.which, NAMES)), None)
HURRY = """{
  const begin = setTimeout;
  globalThis.setTimeout = (step, milliseconds = 0, ...more) => begin(step, milliseconds / 10, ...more);
}"""
"""For pages that wait by the clock, until somebody has stopped typing or before they ask a server again."""


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start a browser, for as many modules as there are; each opens its pages within `opening`."""
    if CHROMIUM is None:
        skip("no Chromium (apt-get install chromium-headless-shell, or chromium)")
    starting = sync_playwright()
    try:
        playwright = starting.start()
    except Exception as error:  # Playwright raises a plain Exception
        # Its driver is Node, which a bare Debian lacks a library for.
        skip(f"Playwright's driver does not start (apt-get install libatomic1): {error}")
    loop = asyncio.get_running_loop()
    try:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
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

    Playwright leaves its event loop marked as running between calls, and other tests could start none of theirs. So it
    is marked only in here.
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
