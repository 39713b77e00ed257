"""Cancellation: long work asks between its steps whether its result is still wanted.

A search asks before each token, an explanation before each batch. Who starts such work says what is asked, by
`asked_between_steps`; where nobody does, nothing is.
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
    """Let the work within call `ask` between its steps; it may wait there, and raises `Cancelled` to end the work."""
    before = _ask.set(ask)
    try:
        yield
    finally:
        _ask.reset(before)


def asked_about() -> bool:
    """Whether anything is asked between steps."""
    return _ask.get() is not None


def between_steps() -> None:
    """Say that a step is done. No lock may be held, as others may work until this returns.

    Python 3.11 computes cached properties with a lock held.

    Raises:
        Cancelled: the next is not wanted.
    """
    if ask := _ask.get():
        ask()
