"""Helpers for refused work, and clocks that tests control."""

from types import SimpleNamespace

import pytest

from translucid.serving.edge.failures import ApiError


def refusal_of(work, *arguments, **keywords):
    """Return the status, message and retry delay with which a call is refused."""
    with pytest.raises(ApiError) as error:
        work(*arguments, **keywords)
    return error.value.status, error.value.message, error.value.retry_after


def why_invalid(response):
    """Return the error message of a response with status 400."""
    assert response.status_code == 400, response.text
    return response.json()["error"].removeprefix("Invalid request: ")


def stopped_clock(monkeypatch, module, now):
    """Replace a module's clock by one that shows `now` until a test changes it."""
    clock = SimpleNamespace(now=now)
    clock.monotonic = lambda: clock.now
    monkeypatch.setattr(module, "time", clock)
    return clock
