"""Short requests that arrive together are translated together; what does not fit into the queue is refused."""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field

from translucid.ground.stopping import Stopped, between_steps
from translucid.serving.errand import Errand
from translucid.serving.failures import ApiError
from translucid.serving.turns import Turns
from translucid.translation import Translation
from translucid.translator import Translator

THREADS = 4
"""Batches that may be under way; more than one are only when the first takes long."""
TURN = 0.25
"""Seconds of work on a batch after which those that have come since may have their turn."""
CHUNK_TEXTS, CHUNK_CHARACTERS = 64, 1000
"""Of a long request that are translated in one go."""


def translate(translator: Translator, texts: Sequence[str], nbest: int = 1) -> list[Translation]:
    """Translate any number of texts in small parts, between which others may have their turn."""
    own = translator.configuration.decoding
    options = own.model_copy(update={"nbest": nbest, "beam": max(own.beam, nbest)})
    different = list(dict.fromkeys(texts))
    found: dict[str, Translation] = {}
    at = 0
    while at < len(different):
        between_steps()
        part: list[str] = []
        size = 0
        while at < len(different) and len(part) < CHUNK_TEXTS and size + len(different[at]) <= CHUNK_CHARACTERS:
            size += len(different[at])
            part.append(different[at])
            at += 1
        if not part:  # one that is longer than that
            part, at = [different[at]], at + 1
        found.update(zip(part, translator.stream(part, options), strict=True))
    return [found[text] for text in texts]


@dataclass
class Job:
    """Some sentences of one request."""

    errand: Errand
    texts: Sequence[str]
    nbest: int
    """Translations wanted of each."""
    future: Future[list[Translation]] = field(default_factory=Future)

    def over(self) -> bool:
        """Whether nobody waits any more."""
        return self.errand.over() or self.future.cancelled()


class Batcher:
    """A bounded queue, in which clients take turns, and threads that translate what is in it.

    What a sentence's translation is does not depend on the batch it is in, so nobody sees that others are there.
    """

    def __init__(self, translator: Translator, queue: int, batch: int) -> None:
        """`queue`: sentences that may wait; `batch`: sentences translated together."""
        self.translator, self.queue, self.batch = translator, queue, batch
        self.clients: OrderedDict[str, deque[Job]] = OrderedDict()
        """What waits, by client; the first one's turn is next."""
        self.sentences = 0
        """That wait."""
        self.changed = threading.Condition()
        self.turns = Turns(TURN)
        self.closed = False
        self.threads = [threading.Thread(target=self._work, daemon=True) for _ in range(THREADS)]
        for thread in self.threads:
            thread.start()

    def submit(self, errand: Errand, texts: Sequence[str], nbest: int = 1) -> Future[list[Translation]]:
        """Put sentences into the queue, all or none.

        Raises:
            ApiError: 503, there is no room, or the server is going down.
        """
        job = Job(errand, texts, nbest)
        with self.changed:
            if self.closed:
                raise ApiError(503, "The server is shutting down", retry_after=10)
            if self.sentences and self.sentences + len(texts) > self.queue:
                raise ApiError(503, "The server is busy, please come again", retry_after=2)
            self.clients.setdefault(errand.client, deque()).append(job)
            self.sentences += len(texts)
            self.changed.notify()
        return job.future

    def close(self) -> None:
        """Take nothing more, finish what was taken, and stop."""
        with self.changed:
            self.closed = True
            self.changed.notify_all()
        for thread in self.threads:
            thread.join()

    def _take(self) -> list[Job]:
        """Take as many jobs as fit into a batch, all of the first one's kind, from one client after the other."""
        jobs: list[Job] = []
        room = self.batch
        with self.changed:
            passed = 0  # clients whose next job does not fit
            while self.clients and passed < len(self.clients) and room > 0:
                client, waiting = next(iter(self.clients.items()))
                self.clients.move_to_end(client)
                if jobs and (waiting[0].nbest != jobs[0].nbest or len(waiting[0].texts) > room):
                    passed += 1
                    continue
                passed = 0
                job = waiting.popleft()
                self.sentences -= len(job.texts)
                if not waiting:
                    del self.clients[client]
                if not job.over():
                    jobs.append(job)
                    room -= len(job.texts)
        return jobs

    def _work(self) -> None:
        while True:
            with self.changed:
                while not self.clients and not self.closed:
                    self.changed.wait()
                if not self.clients:
                    return
            jobs: list[Job] = []

            def over(jobs: list[Job] = jobs) -> bool:
                return bool(jobs) and all(job.over() for job in jobs)

            try:
                with self.turns.taken(over):
                    jobs += self._take()  # all that has come until the turn did
                    self._translate(jobs)
            except Stopped:
                _fail(jobs, Stopped())

    def _translate(self, jobs: Sequence[Job]) -> None:
        if not jobs:
            return
        try:
            found = translate(self.translator, [text for job in jobs for text in job.texts], jobs[0].nbest)
        except Stopped:
            raise
        except Exception as error:  # one of them is to blame, and the server goes on
            if len(jobs) == 1:
                _fail(jobs, error)
            else:
                for job in jobs:
                    self._translate([job])
            return
        at = 0
        for job in jobs:
            if job.future.set_running_or_notify_cancel():
                job.future.set_result(found[at : at + len(job.texts)])
            at += len(job.texts)


def _fail(jobs: Sequence[Job], error: Exception) -> None:
    for job in jobs:
        if not job.future.done() and job.future.set_running_or_notify_cancel():
            job.future.set_exception(error)
