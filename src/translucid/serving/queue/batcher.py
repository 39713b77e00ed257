"""The request queue: short requests are translated in batches; requests beyond its bound are refused."""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from bitext.cancellation import Cancelled, between_steps
from translucid.api.pivot_translator import AnyTranslation, AnyTranslator
from translucid.decoding.decoding_options import DecodingOptions
from translucid.serving.edge.failures import ApiError, as_server_errors
from translucid.serving.queue.fair_scheduler import FairScheduler, Task

Item = TypeVar("Item")

THREADS = 4
"""The maximum number of batches at once; there are several only while the first takes longer than its turn."""
TURN = 0.25
"""The seconds of work on a batch after which later ones may have their turn."""
CHUNK_TEXTS, CHUNK_CHARACTERS = 64, 1000
"""The maximum number of texts and characters of a long request that are translated at once."""


def in_chunks(items: Iterable[Item], characters: Callable[[Item], int]) -> Iterator[list[Item]]:
    """Split the items of a long request into parts; an item that is longer than a part is one by itself.

    Args:
        items: any number of items.
        characters: returns the number of characters of an item.
    """
    chunk: list[Item] = []
    size = 0
    for item in items:
        length = characters(item)
        if chunk and (len(chunk) == CHUNK_TEXTS or size + length > CHUNK_CHARACTERS):
            yield chunk
            chunk, size = [], 0
        chunk.append(item)
        size += length
    if chunk:
        yield chunk


def options_for(translator: AnyTranslator, nbest: int) -> DecodingOptions:
    """Return the decoding options of a translator for this many translations of each text."""
    decoding = translator.configuration.decoding
    return decoding.model_copy(update={"nbest": nbest, "beam": max(decoding.beam, nbest)})


def translate(
    translator: AnyTranslator, texts: Sequence[str], nbest: int = 1, before: Sequence[Sequence[str]] | None = None
) -> list[AnyTranslation]:
    """Translate texts in small parts, between which other requests may have their turn; equal texts only once.

    `before`: for each text, the texts before it, for a run with document context.
    """
    options = options_for(translator, nbest)
    items = list(zip(texts, map(tuple, before or [()] * len(texts)), strict=True))
    translations: dict[tuple[str, tuple[str, ...]], AnyTranslation] = {}
    for chunk in in_chunks(dict.fromkeys(items), lambda item: len(item[0])):
        between_steps()
        chunk_texts, chunk_before = zip(*chunk, strict=True)
        with as_server_errors():
            if before is None:
                translated = translator.stream(chunk_texts, options)
            else:
                translated = translator.stream(chunk_texts, options, before=chunk_before)
            translations.update(zip(chunk, translated, strict=True))
    return [translations[item] for item in items]


@dataclass
class Portion:
    """Some sentences of one request."""

    task: Task
    translator: AnyTranslator
    """The translator for the languages of the request."""
    texts: Sequence[str]
    nbest: int
    """The number of translations of each sentence."""
    before: Sequence[Sequence[str]] | None
    """The sentences before each sentence, for a run with document context."""
    future: Future[list[AnyTranslation]] = field(default_factory=Future)

    @property
    def kind(self) -> tuple[int, int]:
        """A key that is equal for portions that can be translated in one batch."""
        return id(self.translator), self.nbest

    def over(self) -> bool:
        """Return whether nobody waits for the result any more."""
        return self.task.over() or self.future.cancelled()


class Batcher:
    """A bounded queue, in which clients take turns, and threads that translate its sentences in batches.

    The translation of a sentence does not depend on its batch, so that no client notices the others. A multilingual
    model has one queue for all languages.
    """

    def __init__(self, queue: int, batch: int) -> None:
        """Start the threads.

        Args:
            queue: the maximum number of sentences that wait.
            batch: the maximum number of sentences in a batch.
        """
        self.queue, self.batch = queue, batch
        self.clients: OrderedDict[str, deque[Portion]] = OrderedDict()
        """The portions that wait, by client; the first client is served next."""
        self.sentences = 0
        """The number of sentences that wait."""
        self.changed = threading.Condition()
        self.scheduler = FairScheduler(TURN)
        self.closed = False
        self.threads = [threading.Thread(target=self._work, daemon=True) for _ in range(THREADS)]
        for thread in self.threads:
            thread.start()

    def submit(
        self,
        task: Task,
        translator: AnyTranslator,
        texts: Sequence[str],
        nbest: int = 1,
        before: Sequence[Sequence[str]] | None = None,
    ) -> Future[list[AnyTranslation]]:
        """Put sentences into the queue, all or none; `before` is that of `translate`.

        Raises:
            ApiError: 503, the queue is full, or the server is shutting down.
        """
        portion = Portion(task, translator, texts, nbest, before)
        with self.changed:
            if self.closed:
                raise ApiError(503, "The server is shutting down", retry_after=10)
            # An empty queue accepts any request, which might otherwise never be translated.
            if self.sentences and self.sentences + len(texts) > self.queue:
                raise ApiError(503, "The server is busy, please come again", retry_after=2)
            self.clients.setdefault(task.client, deque()).append(portion)
            self.sentences += len(texts)
            self.changed.notify()
        return portion.future

    def close(self) -> None:
        """Refuse new requests, translate those in the queue, and stop."""
        with self.changed:
            self.closed = True
            self.changed.notify_all()
        for thread in self.threads:
            thread.join()

    def _take(self) -> list[Portion]:
        """Take portions of one kind for a batch, as many as fit, from one client after the other."""
        portions: list[Portion] = []
        room = self.batch
        with self.changed:
            skipped = 0  # the number of clients in a row whose next portion does not fit
            while self.clients and skipped < len(self.clients) and room > 0:
                client, queued = next(iter(self.clients.items()))
                self.clients.move_to_end(client)
                if portions and (queued[0].kind != portions[0].kind or len(queued[0].texts) > room):
                    skipped += 1
                    continue
                skipped = 0
                portion = queued.popleft()
                self.sentences -= len(portion.texts)
                if not queued:
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
            try:
                with self.scheduler.turn(partial(_all_over, portions)):
                    portions += self._take()  # only now, so that the batch has all requests that came before its turn
                    self._translate(portions)
            except Cancelled:
                _fail(portions, Cancelled())

    def _translate(self, portions: Sequence[Portion]) -> None:
        if not portions:
            return
        texts: list[str] = []
        before: list[Sequence[str]] = []
        for portion in portions:
            texts += portion.texts
            before += portion.before or [()] * len(portion.texts)
        contexts = before if any(before) else None
        try:
            translations = translate(portions[0].translator, texts, portions[0].nbest, contexts)
        except Cancelled:
            raise
        except Exception as error:
            if len(portions) == 1:
                _fail(portions, error)
                return
            for portion in portions:  # one by one, so that only the portion with the error fails
                self._translate([portion])
            return
        start = 0
        for portion in portions:
            if portion.future.set_running_or_notify_cancel():
                portion.future.set_result(translations[start : start + len(portion.texts)])
            start += len(portion.texts)


def _all_over(portions: Sequence[Portion]) -> bool:
    """Return whether nobody waits for a batch any more; a batch without portions has not been taken yet."""
    return bool(portions) and all(portion.over() for portion in portions)


def _fail(portions: Sequence[Portion], error: Exception) -> None:
    for portion in portions:
        if not portion.future.done() and portion.future.set_running_or_notify_cancel():
            portion.future.set_exception(error)
