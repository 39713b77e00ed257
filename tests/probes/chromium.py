"""Chromium for tests of pages. Without it, these tests are skipped and the reason is shown."""

import asyncio
import shutil
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright._impl.errors import TimeoutError
from playwright._impl.frame import Frame
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

OFTEN = 2_000
"""Milliseconds of a question of Playwright; within a longer one, it looks every half second instead of every tenth."""
_expect, _wait_for_selector = Frame._expect, Frame.wait_for_selector


async def _expect_often(frame, selector, expression, options, title):
    """Ask what `expect` asks, until it is so or its time is up."""
    end = time.monotonic() + options["timeout"] / 1000
    while True:
        rest = 1000 * (end - time.monotonic())
        answer = await _expect(frame, selector, expression, options | {"timeout": max(1, min(rest, OFTEN))}, title)
        if rest <= OFTEN or not answer.get("timedOut"):
            return answer


async def _wait_often(frame, selector, strict=None, timeout=None, state=None):
    """Wait for an element, half a minute by default."""
    end = time.monotonic() + (timeout or 30_000) / 1000
    while True:
        rest = 1000 * (end - time.monotonic())
        try:
            return await _wait_for_selector(frame, selector, strict, max(1, min(rest, OFTEN)), state)
        except TimeoutError:
            if rest <= OFTEN:
                raise


Frame._expect, Frame.wait_for_selector = _expect_often, _wait_often


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
