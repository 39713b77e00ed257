"""How the parts of a server refuse work, and clocks by which they wait."""

from types import SimpleNamespace

import pytest

from translucid.serving.edge.failures import ApiError


def refused(work, *given, **named):
    """Return the status, the message and the seconds to wait with which work is refused."""
    with pytest.raises(ApiError) as error:
        work(*given, **named)
    return error.value.status, error.value.message, error.value.retry_after


def why_invalid(answer):
    """Return the reason that an answer of status 400 gives."""
    assert answer.status_code == 400, answer.text
    return answer.json()["error"].removeprefix("Invalid request: ")


def stopped_clock(monkeypatch, module, now):
    """Give a module a clock that shows `now` until a test changes it."""
    clock = SimpleNamespace(now=now)
    clock.monotonic = lambda: clock.now
    monkeypatch.setattr(module, "time", clock)
    return clock
