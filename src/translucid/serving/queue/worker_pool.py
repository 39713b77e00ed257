"""What takes long, off the event loop: each in a thread of its own, one working at a time."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from translucid.kernels.machine import lower_priority
from translucid.serving.edge.failures import ApiError
from translucid.serving.queue.fair_scheduler import FairScheduler
from translucid.serving.queue.request_task import RequestTask

Result = TypeVar("Result")

PLACES = 64
"""Pieces of work inside, at work or waiting for their turn."""
SHARE = 48
"""Of them one client may have."""
TURN = 0.01
"""Seconds of work after which others may have their turn."""


class WorkerPool:
    """Explanations, maps, trees, long texts, images: all that is not a sentence or two to translate."""

    def __init__(self) -> None:
        self.turns = FairScheduler(TURN)
        self.lock = threading.Lock()
        self.inside: Counter[str] = Counter()
        self.threads = ThreadPoolExecutor(PLACES, "worker_pool", initializer=lower_priority)

    def submit(self, task: RequestTask, work: Callable[[], Result]) -> Future[Result]:
        """Let some work be done that asks between its steps whether it is still wanted (`stopping.py`).

        Raises:
            ApiError: 503, there is no room.
        """
        with self.lock:
            if self.inside.total() >= PLACES or self.inside[task.client] >= SHARE:
                raise ApiError(503, "The server is busy, please come again", retry_after=5)
            self.inside[task.client] += 1

        def leave(_: Future[Result]) -> None:
            with self.lock:
                self.inside[task.client] -= 1
                self.inside += Counter()  # forgets who has nothing inside

        def run() -> Result:
            with self.turns.taken(task.over):
                return work()

        future = self.threads.submit(run)
        future.add_done_callback(leave)
        return future

    def close(self) -> None:
        """Finish what is wanted, and stop."""
        self.threads.shutdown()
