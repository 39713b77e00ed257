"""The translation memory of a server: translations use it, and suggestions and corrections may be added to it.

Other programs, such as `translucid memory add`, may write to the same file for minutes. Only suggestions wait for them,
and not for long: readers have a connection of their own, and the writer has a thread of its own.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Self, TypeVar

from cachetools import LRUCache

from bitext.languages import Languages, same_language
from bitext.memory.database import ENDING, MemoryBusyError, is_database
from bitext.memory.match import MIN_PERCENT, UNWRITABLE, Match
from bitext.memory.translation_memory import MAX_MATCHES, Recall, TranslationMemory
from bitext.pair import Pair
from bitext.words import normalized_text
from translucid.data.formality import may_be
from translucid.ground.errors import UserError
from translucid.ground.special import Formality
from translucid.memory.learned_adapters import latest_adapter, number_of
from translucid.memory.opening import open_memory
from translucid.serving.edge.failures import ApiError, ServerError
from translucid.serving.learning import AdapterLearner

if TYPE_CHECKING:
    from translucid.api.translator import Translator

Result = TypeVar("Result")

MOST = 1_000_000
"""The number of entries at which a memory accepts no more from clients."""
PENDING = 64
"""The maximum number of additions that wait to be written; further ones are refused with 503."""
RETRIEVING = 4
"""The most recently used translators that a memory changes; each keeps up to 65,536 states of the decoder."""
READ_SECONDS, WRITE_SECONDS = 0.5, 2.0
"""The seconds for which a reader and a writer wait for another program that has locked the file."""
MOST_FOUND, FIND_SECONDS = 20, 1.0
"""The limits of a search for a text: entries, and seconds, which are enough for some 100,000 entries."""
UNREADABLE = -2
"""The number of the latest change of a memory that can't be read; no memory has it."""
PAUSE = 10.0
"""The seconds until the next attempt after a memory could not be read."""

NO_ENTRY = "The memory has no such entry"
"""The message for a text without an entry."""

log = logging.getLogger("translucid.serving")


class WrittenEntry(NamedTuple):
    """An entry that was written, and what it has replaced."""

    source: str
    target: str
    replaced: str | None = None
    """The translation before; None if there was no entry."""
    who: str = ""
    """The author of that translation."""


class OptionalMemory(TranslationMemory):
    """A memory for look-up that appears empty while it can't be read, so that translations never fail because of it."""

    _pause_until = 0.0

    @classmethod
    def of(cls, memory: TranslationMemory) -> Self:
        """Return a memory as an optional one; the argument must not be used any more."""
        return cls(memory.file, memory._database)

    def exact(self, text: str) -> Match | None:
        """Return the entry of a text, if there is one and the memory can be read."""
        return self._unless_unreadable(lambda: super(OptionalMemory, self).exact(text), None)

    def matches(self, text: str, min_percent: int = MIN_PERCENT, limit: int = MAX_MATCHES) -> list[Match]:
        """Return the fuzzy matches of a text; none while the memory can't be read."""
        return self._unless_unreadable(lambda: super(OptionalMemory, self).matches(text, min_percent, limit), [])

    @property
    def change(self) -> int:
        """The number of the latest change; that is another one while the memory can't be read."""
        return self._unless_unreadable(lambda: super(OptionalMemory, self).change, UNREADABLE)

    def _unless_unreadable(self, look_up: Callable[[], Result], default: Result) -> Result:
        if time.monotonic() < self._pause_until:
            return default
        try:
            return look_up()
        except UserError as error:
            self._pause_until = time.monotonic() + PAUSE
            log.warning("texts are translated without the memory for %g seconds: %s", PAUSE, error)
            return default


class ServerMemory:
    """A memory of one language pair."""

    def __init__(
        self,
        memory: OptionalMemory,
        languages: Languages,
        writer: TranslationMemory | None = None,
        *,
        knn: bool = False,
    ) -> None:
        """Store an open memory; `open` is the usual way to get one.

        Args:
            memory: the memory for look-up.
            languages: the languages of its entries.
            writer: the same memory, opened for writing, if clients may add to it.
            knn: whether translators retrieve from it in the decoder.
        """
        self.memory, self.languages, self._writer = memory, languages, writer
        self.recall = Recall(memory)
        self.knn = knn
        self.learner: AdapterLearner | None = None
        self.adapter: Path | None = None
        """The latest adapter that was learned from the corrections, if there is one."""
        self._translators: LRUCache[tuple[Translator, Path | None], Translator] = LRUCache(RETRIEVING)
        self._translators_lock = threading.Lock()
        self._thread = ThreadPoolExecutor(1, "memory")  # one writer at a time, which may wait for other programs
        self._pending = threading.BoundedSemaphore(PENDING)

    @classmethod
    def open(cls, file: Path, languages: Languages, *, grows: bool, knn: bool = False) -> Self:
        """Open a memory.

        Args:
            file: a memory that `translucid memory add` wrote, or any corpus if it does not grow; a memory that grows
                is created if it does not exist.
            languages: the languages of the server's first translator, for a memory that names none.
            grows: whether clients may add to it.
            knn: whether translators retrieve from it in the decoder.

        Raises:
            UserError: the file is no memory, or can't be opened.
        """
        if grows and not is_database(file):
            raise UserError("can't be added to", file=file, fix=f"Name a memory to add to: mine{ENDING}.")
        writer = None
        if grows:
            writer = TranslationMemory.open(file, write=True, wait=WRITE_SECONDS)
        if is_database(file):
            memory = OptionalMemory.open(file, wait=READ_SECONDS)
        else:
            memory = OptionalMemory.of(open_memory(file, languages))
        memory_languages = memory.languages
        if writer is not None and memory_languages == (None, None):  # a new memory
            notes = {"source language": languages[0], "target language": languages[1]}
            writer.note({name: code for name, code in notes.items() if code})
        languages = memory_languages[0] or languages[0], memory_languages[1] or languages[1]
        return cls(memory, languages, writer, knn=knn)

    def recall_with(self, formality: Formality | None) -> Recall:
        """Return the matches without signs of the other form of address."""
        if formality is None:
            return self.recall
        return Recall(self.memory, accepts=partial(may_be, formality, self.languages))

    @property
    def grows(self) -> bool:
        """Whether clients may add to the memory."""
        return self._writer is not None

    def learn(self, translator: Translator, every: int) -> None:
        """Learn an adapter for a translator after each `every` corrections, and use the latest one.

        Raises:
            UserError: the latest one belongs to another model.
        """

        def use(adapter: Path) -> None:
            self._changed(translator, adapter).translate("1 a")  # loads it, before requests wait for it
            self.adapter = adapter

        run, file = translator.loaded.folder.path, self.memory.file
        self.learner = AdapterLearner(run, file, every, use)
        if latest := latest_adapter(file):
            use(latest)

    @property
    def learned(self) -> dict[str, object] | None:
        """The number and the time of the adapter that is used, for JSON."""
        if adapter := self._current_adapter():
            with suppress(OSError):  # it is forgotten at this moment
                when = datetime.fromtimestamp(adapter.stat().st_mtime, UTC)
                return {"number": number_of(adapter), "when": when.strftime("%Y-%m-%dT%H:%M:%SZ")}
        return None

    def changed(self, translator: Translator) -> Translator:
        """Return a translator between its languages as the memory changes it: with its adapter, and retrieving from it.

        It is the same one for all requests, so that they share batches, and one for each memory, so that no translation
        depends on another memory.

        Raises:
            UserError: the translator can't retrieve.
        """
        adapter = None
        if self.learner and translator.loaded.folder.path == self.learner.run:
            adapter = self._current_adapter()
        return self._changed(translator, adapter) if self.knn or adapter else translator

    def _current_adapter(self) -> Path | None:
        if self.adapter and not self.adapter.exists():  # `translucid memory forget` has removed it
            self.adapter = latest_adapter(self.memory.file)
        return self.adapter

    def _changed(self, translator: Translator, adapter: Path | None) -> Translator:
        with self._translators_lock:
            if (translator, adapter) not in self._translators:
                changed = translator.with_adapter(adapter) if adapter else translator
                self._translators[translator, adapter] = changed.with_knn(self.memory) if self.knn else changed
            return self._translators[translator, adapter]

    def entry(self, source: str, target: str, text: str) -> Match:
        """Return the entry of a text.

        Raises:
            ApiError: 404, there is none.
        """
        match = self.memory.exact(text) if self.is_between(source, target) else None
        if match is None:
            raise ApiError(404, NO_ENTRY)
        return match

    def concordance(self, source: str, target: str, text: str) -> tuple[list[Match], bool]:
        """Return the newest entries that contain a text on either side, and whether these are all.

        Raises:
            ApiError: 404, the memory is of other languages.
        """
        if not self.is_between(source, target):
            raise ApiError(404, NO_ENTRY)
        started = time.monotonic()
        with _as_api_errors():
            entries = list(islice(self.memory.find(text, seconds=FIND_SECONDS), MOST_FOUND + 1))
        is_complete = len(entries) <= MOST_FOUND and time.monotonic() - started < FIND_SECONDS
        return [Match(text, entry) for entry in entries[:MOST_FOUND]], is_complete

    def add(self, source: str, target: str, pairs: Sequence[Pair], who: str) -> Future[list[WrittenEntry]]:
        """Add pairs to the memory in the writer's thread.

        Args:
            source: the source language.
            target: the target language.
            pairs: texts and their translations.
            who: the origin that is stored with the pairs.

        Returns:
            A future of the entries, when they are written; or it fails with an ApiError: 403, the memory is full; 503,
            another program writes to it; or with a ServerError.

        Raises:
            ApiError: 403, the memory does not grow; 400, it is of other languages, or can't store a pair; 503, too many
                additions wait.
        """
        writer = self._writer_for(source, target)
        if len(pairs) == 1 and (match := UNWRITABLE.search("".join(pairs[0]))):
            name = f"U+{ord(match[0]):04X}"
            raise ApiError(400, f"Invalid request: a suggestion has the character {name}, which no file can hold")
        return self._submit(lambda: self._add(writer, pairs, who))

    def remove(self, source: str, target: str, text: str) -> Future[None]:
        """Remove the entry of a text in the writer's thread.

        Returns:
            A future that ends when it is removed, or fails with an ApiError: 404, there is none; or as `add`.

        Raises:
            ApiError: as `add`.
        """
        writer = self._writer_for(source, target)
        return self._submit(lambda: self._remove(writer, text))

    def take_back(self, source: str, target: str, entries: Sequence[WrittenEntry]) -> Future[int]:
        """Bring back what entries have replaced, in the writer's thread; what was changed since then stays.

        The entries are in the order in which they were written.

        Returns:
            A future of the number of entries that stay; it may fail as `add`.

        Raises:
            ApiError: as `add`.
        """
        writer = self._writer_for(source, target)
        return self._submit(lambda: self._take_back(writer, entries))

    def close(self) -> None:
        """Write all additions that wait, end the learning, and close the file."""
        self._thread.shutdown()
        if self.learner:
            self.learner.close()
        self.memory.close()
        if self._writer is not None:
            self._writer.close()

    def _writer_for(self, source: str, target: str) -> TranslationMemory:
        """Return the memory to write to, if clients may change it, and it is of these languages."""
        if self._writer is None:
            raise ApiError(403, "Suggestions are disabled on this server.")
        if not self.is_between(source, target):
            direction = " to ".join(map(str, self.languages))
            raise ApiError(400, f"Invalid request: suggestions are taken from {direction}")
        return self._writer

    def _submit(self, work: Callable[[], Result]) -> Future[Result]:
        """Write in the writer's thread."""
        if not self._pending.acquire(blocking=False):
            raise ApiError(503, "Too many suggestions are waiting, please come again", retry_after=10)
        future = self._thread.submit(work)
        future.add_done_callback(lambda _: self._pending.release())
        return future

    def _add(self, writer: TranslationMemory, pairs: Sequence[Pair], who: str) -> list[WrittenEntry]:
        with _as_api_errors():
            if len(writer) >= MOST:
                raise ApiError(403, "No more suggestions are taken: the memory is full")
            entries = []
            written: dict[str, WrittenEntry] = {}
            for pair in pairs:
                if earlier := written.get(pair.source):
                    entry = WrittenEntry(*pair, earlier.target, who)
                else:
                    old = writer.exact(pair.source)
                    entry = WrittenEntry(*pair, old.target, old.entry.who) if old else WrittenEntry(*pair)
                written[pair.source] = entry
                entries.append(entry)
            added = writer.add(pairs, who)
        if self.learner:
            self.learner.corrected(added.new + added.changed)
        if added.skipped == len(pairs):
            raise ApiError(400, "Invalid request: a suggestion has two texts of some thousand characters at most")
        return entries

    def _take_back(self, writer: TranslationMemory, entries: Sequence[WrittenEntry]) -> int:
        staying = 0
        with _as_api_errors():
            for source, target, replaced, who in reversed(entries):
                now = writer.exact(source)
                if now is None:
                    continue
                if now.target != normalized_text(target):
                    staying += 1
                elif replaced is None:
                    writer.remove([source])
                else:
                    writer.add([Pair(source, replaced)], who)
        return staying

    def _remove(self, writer: TranslationMemory, text: str) -> None:
        with _as_api_errors():
            if writer.exact(text) is None:
                raise ApiError(404, NO_ENTRY)
            writer.remove([text])

    def is_between(self, source: str, target: str) -> bool:
        """Return whether the memory is of these languages; one that names no languages is of all."""
        for language, code in zip(self.languages, (source, target), strict=True):
            if language is not None and not same_language(language, code):
                return False
        return True


@contextmanager
def _as_api_errors() -> Iterator[None]:
    """Within the context, turn errors of a writer into those of a server."""
    try:
        yield
    except MemoryBusyError as error:
        log.warning("a suggestion was not taken: %s", error)
        message = "Another program is writing to the translation memory, please come again"
        raise ApiError(503, message, retry_after=30) from error
    except UserError as error:
        raise ServerError(str(error)) from error
