"""Chromium for tests of pages; where it can't be started the tests are skipped, with the reason."""

import shutil
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, sync_playwright

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start a browser; end it before other tests start theirs in the same process."""
    if CHROMIUM is None:
        skip("no Chromium (apt-get install chromium)")
    starting = sync_playwright()
    try:
        playwright = starting.start()
    except Exception as error:  # Playwright raises no class of its own
        # Its driver is Node, which a bare Debian lacks a library for.
        skip(f"Playwright's driver does not start (apt-get install libatomic1): {error}")
    try:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()
    finally:
        playwright.stop()


def skip(reason: str) -> None:
    warnings.warn(f"THE PAGES ARE NOT TESTED: {reason}", stacklevel=2)
    pytest.skip(reason)
