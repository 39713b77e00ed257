"""Cancellation: long work asks between its steps whether its result is still wanted.

A search asks before each token, an explanation before each batch. The caller sets the function that they call with
`asked_between_steps`; without one they run to their end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar


class Cancelled(Exception):  # noqa: N818  # not an error: the caller does not want the result
    """The caller cancelled the work."""


_ask: ContextVar[Callable[[], None] | None] = ContextVar("ask", default=None)


@contextmanager
def asked_between_steps(ask: Callable[[], None]) -> Iterator[None]:
    """Within the context, call `ask` between the steps of work; it may wait, or raise `Cancelled` to end the work."""
    before = _ask.set(ask)
    try:
        yield
    finally:
        _ask.reset(before)


def asked_about() -> bool:
    """Return whether work calls a function between its steps."""
    return _ask.get() is not None


def between_steps() -> None:
    """Mark the end of a step. The caller must hold no lock, because other work may run until this returns.

    In particular, no `cached_property` may call this: Python 3.11 computes it while it holds a lock.

    Raises:
        Cancelled: the caller does not want the next step.
    """
    if ask := _ask.get():
        ask()
