"""Cancellation: long work checks between its steps whether its result is still needed.

A search checks before each token, an explanation before each batch. With `call_between_steps`, the caller sets the
function that they call; without one, they run to the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar


class Cancelled(Exception):  # noqa: N818  # not an error: the caller does not want the result
    """The caller cancelled the work."""


_check: ContextVar[Callable[[], None] | None] = ContextVar("check", default=None)


@contextmanager
def call_between_steps(check: Callable[[], None]) -> Iterator[None]:
    """Within the context, call `check` between the steps of work; it may wait, or raise `Cancelled` to end the work."""
    token = _check.set(check)
    try:
        yield
    finally:
        _check.reset(token)


@contextmanager
def call_around_steps(before: Callable[[], None], after: Callable[[], None]) -> Iterator[None]:
    """Within the context, call `before` and `after` around the function of `call_between_steps`, if there is one."""
    check = _check.get()

    def around() -> None:
        before()
        if check:
            check()
        after()

    with call_between_steps(around):
        yield


def is_cancellable() -> bool:
    """Whether work in this context can be cancelled, because a function is called between its steps."""
    return _check.get() is not None


def between_steps() -> None:
    """Mark the end of a step. The caller must hold no lock, because other work may run until this returns.

    In particular, no `cached_property` may call this: Python 3.11 computes it while it holds a lock.

    Raises:
        Cancelled: the caller does not want the next step.
    """
    if check := _check.get():
        check()
