"""The request queue: short requests are translated in batches; requests beyond its bound are refused."""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TypeVar

from translucid.api.translation import Translation
from translucid.api.translator import Translator
from translucid.decoding.decoding_options import DecodingOptions
from translucid.ground.cancellation import Cancelled, between_steps
from translucid.serving.edge.failures import ApiError, no_request_to_blame
from translucid.serving.queue.fair_scheduler import FairScheduler
from translucid.serving.queue.request_task import RequestTask

Item = TypeVar("Item")

THREADS = 4
"""Batches that may be under way; more than one are only when the first takes long."""
TURN = 0.25
"""Seconds of work on a batch after which those that have come since may have their turn."""
CHUNK_TEXTS, CHUNK_CHARACTERS = 64, 1000
"""Of a long request that are translated in one go."""


def in_chunks(items: Iterable[Item], characters: Callable[[Item], int]) -> Iterator[list[Item]]:
    """Cut a long request into what is translated in one go; an item that is longer than that is alone.

    Args:
        items: any number.
        characters: how many an item has.
    """
    chunk: list[Item] = []
    size = 0
    for item in items:
        own = characters(item)
        if chunk and (len(chunk) == CHUNK_TEXTS or size + own > CHUNK_CHARACTERS):
            yield chunk
            chunk, size = [], 0
        chunk.append(item)
        size += own
    if chunk:
        yield chunk


def options_for(translator: Translator, nbest: int) -> DecodingOptions:
    """Return how a translator searches for so many translations of each text."""
    own = translator.configuration.decoding
    return own.model_copy(update={"nbest": nbest, "beam": max(own.beam, nbest)})


def translate(translator: Translator, texts: Sequence[str], nbest: int = 1) -> list[Translation]:
    """Translate any number of texts in small parts, between which others may have their turn."""
    options = options_for(translator, nbest)
    found: dict[str, Translation] = {}
    for part in in_chunks(dict.fromkeys(texts), len):
        between_steps()
        with no_request_to_blame():
            found.update(zip(part, translator.stream(part, options), strict=True))
    return [found[text] for text in texts]


@dataclass
class Portion:
    """Some sentences of one request."""

    task: RequestTask
    translator: Translator
    """Between its languages."""
    texts: Sequence[str]
    nbest: int
    """Translations wanted of each."""
    future: Future[list[Translation]] = field(default_factory=Future)

    @property
    def kind(self) -> tuple[int, int]:
        """Equal for portions that can be translated together."""
        return id(self.translator), self.nbest

    def over(self) -> bool:
        """Whether nobody waits any more."""
        return self.task.over() or self.future.cancelled()


class Batcher:
    """A bounded queue, in which clients take turns, and threads that translate what is in it.

    What a sentence's translation is does not depend on the batch it is in, so nobody sees that others are there. A
    model of many languages has one of them for all.
    """

    def __init__(self, queue: int, batch: int) -> None:
        """`queue`: sentences that may wait; `batch`: sentences translated together."""
        self.queue, self.batch = queue, batch
        self.clients: OrderedDict[str, deque[Portion]] = OrderedDict()
        """What waits, by client; the first one's turn is next."""
        self.sentences = 0
        """That wait."""
        self.changed = threading.Condition()
        self.turns = FairScheduler(TURN)
        self.closed = False
        self.threads = [threading.Thread(target=self._work, daemon=True) for _ in range(THREADS)]
        for thread in self.threads:
            thread.start()

    def submit(
        self, task: RequestTask, translator: Translator, texts: Sequence[str], nbest: int = 1
    ) -> Future[list[Translation]]:
        """Put sentences into the queue, all or none.

        Raises:
            ApiError: 503, there is no room, or the server is going down.
        """
        portion = Portion(task, translator, texts, nbest)
        with self.changed:
            if self.closed:
                raise ApiError(503, "The server is shutting down", retry_after=10)
            if self.sentences and self.sentences + len(texts) > self.queue:
                raise ApiError(503, "The server is busy, please come again", retry_after=2)
            self.clients.setdefault(task.client, deque()).append(portion)
            self.sentences += len(texts)
            self.changed.notify()
        return portion.future

    def close(self) -> None:
        """Take nothing more, finish what was taken, and stop."""
        with self.changed:
            self.closed = True
            self.changed.notify_all()
        for thread in self.threads:
            thread.join()

    def _take(self) -> list[Portion]:
        """Take as many portions as fit into a batch, all of the first one's kind, from one client after the other."""
        portions: list[Portion] = []
        room = self.batch
        with self.changed:
            passed = 0  # clients whose next portion does not fit
            while self.clients and passed < len(self.clients) and room > 0:
                client, waiting = next(iter(self.clients.items()))
                self.clients.move_to_end(client)
                if portions and (waiting[0].kind != portions[0].kind or len(waiting[0].texts) > room):
                    passed += 1
                    continue
                passed = 0
                portion = waiting.popleft()
                self.sentences -= len(portion.texts)
                if not waiting:
                    del self.clients[client]
                if not portion.over():
                    portions.append(portion)
                    room -= len(portion.texts)
        return portions

    def _work(self) -> None:
        while True:
            with self.changed:
                while not self.clients and not self.closed:
                    self.changed.wait()
                if not self.clients:
                    return
            portions: list[Portion] = []

            def over(portions: list[Portion] = portions) -> bool:
                return bool(portions) and all(portion.over() for portion in portions)

            try:
                with self.turns.taken(over):
                    portions += self._take()  # all that has come until the turn did
                    self._translate(portions)
            except Cancelled:
                _fail(portions, Cancelled())

    def _translate(self, portions: Sequence[Portion]) -> None:
        if not portions:
            return
        try:
            texts = [text for portion in portions for text in portion.texts]
            found = translate(portions[0].translator, texts, portions[0].nbest)
        except Cancelled:
            raise
        except Exception as error:  # one of them is to blame, and the server goes on
            if len(portions) == 1:
                _fail(portions, error)
            else:
                for portion in portions:
                    self._translate([portion])
            return
        at = 0
        for portion in portions:
            if portion.future.set_running_or_notify_cancel():
                portion.future.set_result(found[at : at + len(portion.texts)])
            at += len(portion.texts)


def _fail(portions: Sequence[Portion], error: Exception) -> None:
    for portion in portions:
        if not portion.future.done() and portion.future.set_running_or_notify_cancel():
            portion.future.set_exception(error)
