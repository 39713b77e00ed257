"""Tasks with a time limit, fair scheduling, and the pool of threads for long work outside the event loop.

One task runs at a time, next the one that has used the least time. Therefore short tasks do not wait for long ones.
Waiting reduces the time that counts as used, so that every task gets its turn, and several long ones progress equally.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

from bitext.cancellation import Cancelled, call_between_steps
from translucid.kernels.machine import lower_priority
from translucid.serving.edge.failures import ApiError

_POLL_SECONDS = 0.2
"""The interval in seconds at which waiting work checks whether its result is still needed."""
PATIENCE = 0.1
"""The seconds of work that one second of waiting offsets."""


class Task:
    """Work for a client; it is over when nobody waits for it any more, or the time limit is exceeded."""

    def __init__(self, client: str, seconds: float) -> None:
        """Start the time limit.

        Args:
            client: a key or an address, for fair scheduling.
            seconds: the time limit of all work.
        """
        self.client, self.seconds = client, seconds
        self.end = time.monotonic() + seconds
        self.abandoned = False

    def over(self) -> bool:
        """Return whether nobody waits for the work any more."""
        return self.abandoned or self.seconds_left() <= 0

    def seconds_left(self) -> float:
        """Return the seconds until the time limit."""
        return self.end - time.monotonic()


@dataclass(eq=False)
class _Turn:
    """A piece of work that runs, or waits for its turn."""

    over: Callable[[], bool]
    """Returns whether nobody needs the result any more."""
    worked: float = 0.0
    """The seconds of work before `since`."""
    waited: float = 0.0
    """The seconds of waiting before `since`."""
    since: float = 0.0
    """The time at which its present turn, or its present waiting, began."""
    started: threading.Event = field(default_factory=threading.Event)

    def rank(self) -> float:
        """Return the time that counts as used; the lowest is next."""
        return max(0.0, self.worked - PATIENCE * self.waited)

    def pass_time(self, *, working: bool) -> None:
        """Count the time since `since` as work or as waiting."""
        now = time.monotonic()
        if working:
            self.worked += now - self.since
        else:
            self.waited += now - self.since
        self.since = now


class FairScheduler:
    """Lets one piece of work run at a time."""

    def __init__(self, seconds: float) -> None:
        """Let a turn last at least this many seconds if others wait."""
        self.seconds = seconds
        self.lock = threading.Lock()
        self.working: _Turn | None = None
        self.waiting: list[_Turn] = []

    @contextmanager
    def turn(self, over: Callable[[], bool]) -> Iterator[None]:
        """Wait for a turn and work; between steps (`cancellation.py`), let others have theirs.

        Args:
            over: returns whether nobody needs the result any more.

        Raises:
            Cancelled: nobody needs it.
        """
        turn = _Turn(over)
        with self.lock:
            self._line_up(turn)
        self._wait(turn)
        try:
            with call_between_steps(lambda: self._ask(turn)):
                yield
        finally:
            with self.lock:
                self._leave(turn)

    def _ask(self, turn: _Turn) -> None:
        """Between two steps: end work that nobody needs, and pause if other work has used less time."""
        if turn.over():
            raise Cancelled
        # Without the lock, because this runs at every step: an outdated answer only delays a turn by a step.
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
        while not turn.started.wait(_POLL_SECONDS):
            if turn.over():
                with self.lock:
                    self._leave(turn)
                raise Cancelled

    # The caller of the following methods holds the lock.

    def _line_up(self, turn: _Turn) -> None:
        turn.since = time.monotonic()
        turn.started.clear()
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
            for other in self.waiting:
                other.pass_time(working=False)
            turn = min(self.waiting, key=_Turn.rank)  # of equal ones, the first in the list, which came first
            self.waiting.remove(turn)
            self.working = turn
            turn.started.set()


Result = TypeVar("Result")

PLACES = 64
"""The maximum number of pieces of work, running or waiting for their turn."""
SHARE = 48
"""The maximum number of pieces of work of one client."""
TURN = 0.01
"""The seconds of work after which others may have their turn."""


class WorkerPool:
    """Explanations, attention, beam trees, long texts: all work but the translation of a few sentences."""

    def __init__(self) -> None:
        self.scheduler = FairScheduler(TURN)
        self.lock = threading.Lock()
        self.work_counts: Counter[str] = Counter()
        # With low priority, so that the event loop and the batches of short requests get the processor first.
        self.threads = ThreadPoolExecutor(PLACES, "worker_pool", initializer=lower_priority)

    def submit(self, task: Task, work: Callable[[], Result]) -> Future[Result]:
        """Start work that asks between its steps whether its result is still needed (`cancellation.py`).

        Raises:
            ApiError: 503, there is too much work.
        """
        with self.lock:
            if self.work_counts.total() >= PLACES or self.work_counts[task.client] >= SHARE:
                raise ApiError(503, "The server is busy, please come again", retry_after=5)
            self.work_counts[task.client] += 1

        def leave(_: Future[Result]) -> None:
            with self.lock:
                self.work_counts[task.client] -= 1
                self.work_counts += Counter()  # adding counters drops the clients with a count of zero

        def run() -> Result:
            with self.scheduler.turn(task.over):
                return work()

        future = self.threads.submit(run)
        future.add_done_callback(leave)
        return future

    def close(self) -> None:
        """Finish all work, and stop."""
        self.threads.shutdown()
