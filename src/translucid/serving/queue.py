"""The order of work: fair turns of tasks, batches of short requests, and a pool of threads for long ones.

One task runs at a time, next the one that has used the least time. Therefore short tasks do not wait for long ones.
Waiting reduces the time that counts as used, so that every task gets its turn, and several long ones progress equally.
Sentences of short requests are translated in batches; requests beyond the bound of the queue are refused.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from bitext.cancellation import Cancelled, between_steps, call_between_steps
from translucid.api.pivot_translator import AnyTranslation, AnyTranslator
from translucid.data.document_context import Source
from translucid.decoding.decoding_options import DecodingOptions
from translucid.ground.errors import UserError
from translucid.ground.joint_steps import Running, Step, compute_steps
from translucid.kernels.machine import lower_priority
from translucid.serving.edge.failures import ApiError, ServerError

Result = TypeVar("Result")
Item = TypeVar("Item")

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


JOINT_BATCH = 32
"""The maximum number of coroutines whose steps are computed together."""
JOINT_TURN = 0.05
"""The seconds of work on their steps after which others may have their turn."""


class JointWork:
    """Coroutines whose steps are computed together, by one thread: the words of live sessions."""

    def __init__(self, scheduler: FairScheduler) -> None:
        """Take turns with other work by a scheduler."""
        self.scheduler = scheduler
        self.lock = threading.Lock()
        self.waiting: deque[tuple[Task, Running[Any]]] = deque()
        """The coroutines that have not begun, with the tasks that they belong to."""
        self.works = False
        # With low priority, as the worker pool: the event loop and the batches of short requests come first.
        self.threads = ThreadPoolExecutor(1, "joint_work", initializer=lower_priority)

    def submit(self, task: Task, work: Coroutine[Step, None, Result]) -> Future[Result]:
        """Start a coroutine, and return the future of its result; it ends early if the task is over."""
        running = Running(work)
        with self.lock:
            self.waiting.append((task, running))
            if not self.works:
                self.works = True
                self.threads.submit(self._work)
        return running.future

    def close(self) -> None:
        """Finish all work, and stop."""
        self.threads.shutdown()

    def _work(self) -> None:
        """Compute steps until no coroutine is left."""
        batch: list[tuple[Task, Running[Any]]] = []
        while True:
            with self.lock:
                if not batch and not self.waiting:
                    self.works = False
                    return
            # Each turn is new work to the scheduler, as the next words are: it does not count what was done before.
            with self.scheduler.turn(lambda: False):
                end = time.monotonic() + JOINT_TURN
                while time.monotonic() < end and (batch := self._begun(batch)):
                    compute_steps([running for _, running in batch])

    def _begun(self, batch: list[tuple[Task, Running[Any]]]) -> list[tuple[Task, Running[Any]]]:
        """Return those of a batch that wait for a step and are still needed, and begin others in the places left."""
        needed = []
        for task, running in batch:
            if running.step and task.over():
                running.go_on(Cancelled())
            if running.step:
                needed.append((task, running))
        while len(needed) < JOINT_BATCH:
            with self.lock:
                if not self.waiting:
                    break
                task, running = self.waiting.popleft()
            if not running.future.set_running_or_notify_cancel():
                running.close()
                continue
            running.go_on()
            if running.step:
                needed.append((task, running))
        return needed


PLACES = 64
"""The maximum number of pieces of work, running or waiting for their turn."""
SHARE = 48
"""The maximum number of pieces of work of one client."""
POOL_TURN = 0.01
"""The seconds of work after which others may have their turn."""


class WorkerPool:
    """Explanations, attention, beam trees, long texts: all work but the translation of a few sentences."""

    def __init__(self) -> None:
        self.scheduler = FairScheduler(POOL_TURN)
        self.joint = JointWork(self.scheduler)
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
        self.joint.close()
        self.threads.shutdown()


THREADS = 4
"""The maximum number of batches at once; there are several only while the first takes longer than its turn."""
BATCH_TURN = 0.25
"""The seconds of work on a batch after which later ones may have their turn."""
CHUNK_TEXTS, CHUNK_CHARACTERS = 64, 1000
"""The maximum number of texts and characters of a long request that are translated at once."""


@contextmanager
def as_server_errors() -> Iterator[None]:
    """Within the context, a `UserError` is about the server's own models and files, and becomes a `ServerError`.

    A model with damaged weights, for instance, fails during the search of any text.
    """
    try:
        yield
    except UserError as error:
        raise ServerError(str(error)) from error


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
    translator: AnyTranslator, sources: Sequence[Source[str]], nbest: int = 1, *, split: bool = True
) -> list[AnyTranslation]:
    """Translate texts in small parts, between which other requests may have their turn; equal texts only once."""
    options = options_for(translator, nbest)
    translations: dict[Source[str], AnyTranslation] = {}
    for chunk in in_chunks(dict.fromkeys(sources), lambda source: len(source.text)):
        between_steps()
        with as_server_errors():
            translations.update(zip(chunk, translator.stream(chunk, options, split=split), strict=True))
    return [translations[source] for source in sources]


@dataclass
class Portion:
    """Some sentences of one request."""

    task: Task
    translator: AnyTranslator
    """The translator for the languages of the request."""
    sources: Sequence[Source[str]]
    nbest: int
    """The number of translations of each sentence."""
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
        self.scheduler = FairScheduler(BATCH_TURN)
        self.closed = False
        self.threads = [threading.Thread(target=self._work, daemon=True) for _ in range(THREADS)]
        for thread in self.threads:
            thread.start()

    def submit(
        self, task: Task, translator: AnyTranslator, sources: Sequence[Source[str]], nbest: int = 1
    ) -> Future[list[AnyTranslation]]:
        """Put sentences into the queue, all or none.

        Raises:
            ApiError: 503, the queue is full, or the server is shutting down.
        """
        portion = Portion(task, translator, sources, nbest)
        with self.changed:
            if self.closed:
                raise ApiError(503, "The server is shutting down", retry_after=10)
            # An empty queue accepts any request, which might otherwise never be translated.
            if self.sentences and self.sentences + len(sources) > self.queue:
                raise ApiError(503, "The server is busy, please come again", retry_after=2)
            self.clients.setdefault(task.client, deque()).append(portion)
            self.sentences += len(sources)
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
                if portions and (queued[0].kind != portions[0].kind or len(queued[0].sources) > room):
                    skipped += 1
                    continue
                skipped = 0
                portion = queued.popleft()
                self.sentences -= len(portion.sources)
                if not queued:
                    del self.clients[client]
                if not portion.over():
                    portions.append(portion)
                    room -= len(portion.sources)
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
        sources: list[Source[str]] = []
        for portion in portions:
            sources += portion.sources
        try:
            translations = translate(portions[0].translator, sources, portions[0].nbest)
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
                portion.future.set_result(translations[start : start + len(portion.sources)])
            start += len(portion.sources)


def _all_over(portions: Sequence[Portion]) -> bool:
    """Return whether nobody waits for a batch any more; a batch without portions has not been taken yet."""
    return bool(portions) and all(portion.over() for portion in portions)


def _fail(portions: Sequence[Portion], error: Exception) -> None:
    for portion in portions:
        if not portion.future.done() and portion.future.set_running_or_notify_cancel():
            portion.future.set_exception(error)
