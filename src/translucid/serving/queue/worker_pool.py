"""Long work outside the event loop: each piece in its own thread, one running at a time."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from translucid.kernels.machine import lower_priority
from translucid.serving.edge.failures import ApiError
from translucid.serving.queue.fair_scheduler import FairScheduler, Task

Result = TypeVar("Result")

PLACES = 64
"""The maximum number of pieces of work, running or waiting for their turn."""
SHARE = 48
"""The maximum number of pieces of work of one client."""
TURN = 0.01
"""The seconds of work after which others may have their turn."""


class WorkerPool:
    """Explanations, attention, beam trees, long texts, images: all work but the translation of a few sentences."""

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
