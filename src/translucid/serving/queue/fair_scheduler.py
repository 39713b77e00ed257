"""Fair scheduling: one client at a time, next the one that has used least time.

So what takes a moment is not kept waiting by what takes a minute. Who waits for long counts as having worked less, so
that nobody waits for ever, and two that take long get on alike.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from translucid.ground.cancellation import Cancelled, asked_between_steps

_LOOK_AGAIN = 0.2
"""Seconds after which one that waits looks whether it is still wanted."""
PATIENCE = 0.1
"""Seconds of work that are forgotten for each second of waiting."""


@dataclass(eq=False)
class _Turn:
    """One that works, or waits for its turn."""

    over: Callable[[], bool]
    """Whether it is not wanted any more."""
    worked: float = 0.0
    waited: float = 0.0
    """Seconds, before `since`."""
    since: float = 0.0
    """When its present turn, or its present waiting, began."""
    go: threading.Event = field(default_factory=threading.Event)

    def rank(self) -> float:
        """The lower, the sooner it is its turn."""
        return max(0.0, self.worked - PATIENCE * self.waited)

    def pass_time(self, *, working: bool) -> None:
        """Count the time until now."""
        now = time.monotonic()
        if working:
            self.worked += now - self.since
        else:
            self.waited += now - self.since
        self.since = now


class FairScheduler:
    """Whose turn it is."""

    def __init__(self, seconds: float) -> None:
        """`seconds`: of a turn, at least, if others wait."""
        self.seconds = seconds
        self.lock = threading.Lock()
        self.working: _Turn | None = None
        self.waiting: list[_Turn] = []

    @contextmanager
    def taken(self, over: Callable[[], bool]) -> Iterator[None]:
        """Wait for a turn and work; between steps (`stopping.py`), let others have theirs.

        Args:
            over: whether the work is not wanted any more.

        Raises:
            Cancelled: it is not.
        """
        turn = _Turn(over)
        with self.lock:
            self._line_up(turn)
        self._wait(turn)
        try:
            with asked_between_steps(lambda: self._ask(turn)):
                yield
        finally:
            with self.lock:
                self._leave(turn)

    def _ask(self, turn: _Turn) -> None:
        if turn.over():
            raise Cancelled
        if not self.waiting or time.monotonic() - turn.since < self.seconds:
            return
        with self.lock:
            turn.pass_time(working=True)
            for other in self.waiting:
                other.pass_time(working=False)
            if all(other.rank() > turn.rank() for other in self.waiting):
                return
            self.working = None
            self._line_up(turn)
        self._wait(turn)

    def _wait(self, turn: _Turn) -> None:
        while not turn.go.wait(_LOOK_AGAIN):
            if turn.over():
                with self.lock:
                    self._leave(turn)
                raise Cancelled

    # With the lock held.

    def _line_up(self, turn: _Turn) -> None:
        turn.since = time.monotonic()
        turn.go.clear()
        self.waiting.append(turn)
        if self.working is None:
            self._next()

    def _leave(self, turn: _Turn) -> None:
        if self.working is turn:
            self.working = None
            self._next()
        elif turn in self.waiting:
            self.waiting.remove(turn)

    def _next(self) -> None:
        if self.waiting:
            for one in self.waiting:
                one.pass_time(working=False)
            turn = min(self.waiting, key=_Turn.rank)  # of equal ones, who has waited longer
            self.waiting.remove(turn)
            self.working = turn
            turn.go.set()
