"""The translation memory of a server: what is in it is used, and what people suggest and correct may go in.

Other programs may write to the same file for minutes, as `translucid memory add` does. Nothing but a suggestion waits
for them, and that not for long: what reads has a connection of its own, and what writes a thread of its own.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Self, TypeVar

from translucid.data.languages import Languages, same_language
from translucid.data.readers.corpus import Pair
from translucid.ground.errors import UserError
from translucid.memory.database import ENDING, MemoryBusyError, is_database
from translucid.memory.folding import UNWRITABLE
from translucid.memory.match import LEAST, Match
from translucid.memory.opening import open_memory
from translucid.memory.recall import Recall
from translucid.memory.translation_memory import SHOWN, TranslationMemory
from translucid.serving.edge.failures import ApiError, ServerError

Result = TypeVar("Result")

MOST = 1_000_000
"""Entries, from which on nothing more is taken from clients."""
PENDING = 64
"""Pairs that may wait to be written; then clients are sent away with 503."""
READ_SECONDS, WRITE_SECONDS = 0.5, 2.0
"""For which a reader and a writer wait for another program that has locked the file."""
PAUSE = 10.0
"""Seconds for which a memory that could not be read is left alone."""

log = logging.getLogger("translucid.serving")


class OptionalMemory(TranslationMemory):
    """A memory to look up in that translations can do without: while it can't be read, it has nothing."""

    _pause_until = 0.0

    @classmethod
    def of(cls, memory: TranslationMemory) -> Self:
        """Return the same memory, which is not to be used otherwise any more."""
        return cls(memory.file, memory._database)

    def exact(self, text: str) -> Match | None:
        """Return the entry of a text, if there is one and the memory can be read."""
        return self._unless_unreadable(lambda: super(OptionalMemory, self).exact(text), None)

    def matches(self, text: str, least: int = LEAST, most: int = SHOWN) -> list[Match]:
        """Return the entries that are most like a text; none while the memory can't be read."""
        return self._unless_unreadable(lambda: super(OptionalMemory, self).matches(text, least, most), [])

    def _unless_unreadable(self, ask: Callable[[], Result], nothing: Result) -> Result:
        if time.monotonic() < self._pause_until:
            return nothing
        try:
            return ask()
        except UserError as error:
            self._pause_until = time.monotonic() + PAUSE
            log.warning("texts are translated without the memory for %g seconds: %s", PAUSE, error)
            return nothing


class MemoryRoutes:
    """A memory of one pair of languages."""

    def __init__(self, memory: OptionalMemory, languages: Languages, writer: TranslationMemory | None = None) -> None:
        """Put one together; `open` is the usual way.

        Args:
            memory: to look up in.
            languages: of its entries.
            writer: the same memory, opened to be written to, if clients add to it.
        """
        self.memory, self.languages, self._writer = memory, languages, writer
        self._recall = Recall(memory)
        self._thread = ThreadPoolExecutor(1, "memory")
        self._pending = threading.BoundedSemaphore(PENDING)

    @classmethod
    def open(cls, file: Path, languages: Languages, *, grows: bool) -> Self:
        """Open a memory.

        Args:
            file: what `translucid memory add` wrote, or, if it does not grow, any corpus; made if it grows.
            languages: of the server's first translator, which the memory has unless it says others.
            grows: whether clients add to it.

        Raises:
            UserError: it is none, or can't be opened.
        """
        if grows and not is_database(file):
            raise UserError("can't be added to", file=file, fix=f"Name a memory to add to: mine{ENDING}.")
        writer = TranslationMemory.open(file, write=True, wait=WRITE_SECONDS) if grows else None
        if is_database(file):
            memory = OptionalMemory.open(file, wait=READ_SECONDS)
        else:
            memory = OptionalMemory.of(open_memory(file, languages))
        own = memory.languages
        if writer is not None and own == (None, None):
            named = zip(("source language", "target language"), languages, strict=True)
            writer.note({name: code for name, code in named if code})
        return cls(memory, (own[0] or languages[0], own[1] or languages[1]), writer)

    @property
    def grows(self) -> bool:
        """Whether clients add to it."""
        return self._writer is not None

    def recall(self, source: str, target: str) -> Recall | None:
        """Return the memory for a pair of languages, if it has them."""
        return self._recall if self._has(source, target) else None

    def add(self, source: str, target: str, pairs: Sequence[Pair], who: str) -> Future[None]:
        """Take pairs in, in a thread of its own.

        Args:
            source: language.
            target: language.
            pairs: texts and their translations.
            who: what it is from.

        Returns:
            What ends when the pairs are in, or with an ApiError: 403, the memory is full; 503, another program writes
            to it; or with a ServerError.

        Raises:
            ApiError: 403, nothing is taken; 400, the memory is of other languages, or no pair can be in one; 503, too
                many wait.
        """
        if self._writer is None:
            raise ApiError(403, "Suggestions are disabled on this server.")
        if not self._has(source, target):
            ours = " to ".join(map(str, self.languages))
            raise ApiError(400, f"Invalid request: suggestions are taken from {ours}")
        if len(pairs) == 1 and (strange := UNWRITABLE.search("".join(pairs[0]))):
            name = f"U+{ord(strange[0]):04X}"
            raise ApiError(400, f"Invalid request: a suggestion has the character {name}, which no file can hold")
        if not self._pending.acquire(blocking=False):
            raise ApiError(503, "Too many suggestions are waiting, please come again", retry_after=10)
        adding = self._thread.submit(self._add, self._writer, pairs, who)
        adding.add_done_callback(lambda _: self._pending.release())
        return adding

    def close(self) -> None:
        """Write what waits, and close the file."""
        self._thread.shutdown()
        self.memory.close()
        if self._writer is not None:
            self._writer.close()

    def _add(self, writer: TranslationMemory, pairs: Sequence[Pair], who: str) -> None:
        try:
            if len(writer) >= MOST:
                raise ApiError(403, "No more suggestions are taken: the memory is full")
            skipped = writer.add(pairs, who).skipped
        except MemoryBusyError as error:
            log.warning("a suggestion was not taken: %s", error)
            message = "Another program is writing to the translation memory, please come again"
            raise ApiError(503, message, retry_after=30) from error
        except UserError as error:
            raise ServerError(str(error)) from error
        if skipped == len(pairs):
            raise ApiError(400, "Invalid request: a suggestion has two texts of some thousand characters at most")

    def _has(self, source: str, target: str) -> bool:
        return all(
            ours is None or same_language(ours, code)
            for ours, code in zip(self.languages, (source, target), strict=True)
        )
