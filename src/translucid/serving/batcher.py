"""Requests that arrive together are translated together; what does not fit into the queue is refused."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field

from translucid.serving.failures import ApiError
from translucid.translation import Translation
from translucid.translator import Translator


@dataclass
class Job:
    """Some sentences of one request."""

    texts: Sequence[str]
    nbest: int
    """Translations wanted of each."""
    future: Future[list[Translation]] = field(default_factory=Future)


class Batcher:
    """One thread that translates, and a bounded queue before it.

    What a sentence's translation is does not depend on the batch it is in, so nobody sees that others are there.
    """

    def __init__(self, translator: Translator, queue: int, batch: int) -> None:
        """`queue`: sentences that may wait; `batch`: sentences translated together."""
        self.translator, self.queue, self.batch = translator, queue, batch
        self.waiting: deque[Job] = deque()
        self.sentences = 0
        """That wait."""
        self.changed = threading.Condition()
        self.closed = False
        self.thread = threading.Thread(target=self._work, daemon=True)
        self.thread.start()

    def submit(self, texts: Sequence[str], nbest: int = 1) -> Future[list[Translation]]:
        """Put sentences into the queue, all or none.

        Raises:
            ApiError: 503, there is no room, or the server is going down.
        """
        job = Job(texts, nbest)
        with self.changed:
            if self.closed:
                raise ApiError(503, "The server is shutting down", retry_after=10)
            if self.sentences and self.sentences + len(texts) > self.queue:
                raise ApiError(503, "The server is busy, please come again", retry_after=2)
            self.waiting.append(job)
            self.sentences += len(texts)
            self.changed.notify()
        return job.future

    def close(self) -> None:
        """Take nothing more, finish what was taken, and stop."""
        with self.changed:
            self.closed = True
            self.changed.notify()
        self.thread.join()

    def _take(self) -> list[Job]:
        """Wait for jobs, and take as many of the first one's kind as fit into a batch. None are left: it is closed."""
        with self.changed:
            while not self.waiting and not self.closed:
                self.changed.wait()
            jobs: list[Job] = []
            size = 0
            while self.waiting and (not jobs or size + len(self.waiting[0].texts) <= self.batch):
                if jobs and self.waiting[0].nbest != jobs[0].nbest:
                    break
                job = self.waiting.popleft()
                self.sentences -= len(job.texts)
                if job.future.set_running_or_notify_cancel():  # False: the client has left
                    jobs.append(job)
                    size += len(job.texts)
            return jobs

    def _work(self) -> None:
        while True:
            jobs = self._take()
            if not jobs:
                with self.changed:
                    if self.closed and not self.waiting:
                        return
                continue
            try:
                own = self.translator.configuration.decoding
                nbest = jobs[0].nbest
                options = own.model_copy(update={"nbest": nbest, "beam": max(own.beam, nbest)})
                texts = [text for job in jobs for text in job.texts]
                found = iter(list(self.translator.stream(texts, options)))
            except Exception as error:  # the requests of this batch fail, the server goes on
                for job in jobs:
                    job.future.set_exception(error)
                continue
            for job in jobs:
                job.future.set_result([next(found) for _ in job.texts])
