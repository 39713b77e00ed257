"""The translation memory of a server: what is in it is used, and what people suggest and correct may go in."""

from __future__ import annotations

from pathlib import Path

from translucid.data.corpus import Pair
from translucid.data.languages import Languages, same_language
from translucid.ground.errors import UserError
from translucid.memory.database import ENDING, is_database
from translucid.memory.opening import open_memory
from translucid.memory.recall import Recall
from translucid.memory.translation_memory import TranslationMemory
from translucid.serving.failures import ApiError

MOST = 1_000_000
"""Entries, from which on nothing more is taken from clients."""


class Remembering:
    """A memory of one pair of languages."""

    def __init__(self, memory: TranslationMemory, languages: Languages, *, grows: bool) -> None:
        """See `open`."""
        self.memory, self.languages, self.grows = memory, languages, grows
        self._recall = Recall(memory)

    @classmethod
    def open(cls, file: Path, languages: Languages, *, grows: bool) -> Remembering:
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
        if not grows:
            memory = open_memory(file, (None, None) if is_database(file) else languages)
        else:
            memory = TranslationMemory.open(file, write=True)
        own = memory.languages
        if grows and own == (None, None):
            named = zip(("source language", "target language"), languages, strict=True)
            memory.note({name: code for name, code in named if code})
        return cls(memory, (own[0] or languages[0], own[1] or languages[1]), grows=grows)

    def recall(self, source: str, target: str) -> Recall | None:
        """Return the memory for a pair of languages, if it has them."""
        return self._recall if self._has(source, target) else None

    def add(self, source: str, target: str, pair: Pair, who: str) -> None:
        """Take a pair in.

        Args:
            source: language.
            target: language.
            pair: a text and its translation.
            who: what it is from.

        Raises:
            ApiError: 403, nothing is taken; 400, the memory is of other languages, or the pair can't be in one.
        """
        if not self.grows:
            raise ApiError(403, "Suggestions are disabled on this server.")
        if not self._has(source, target):
            ours = " to ".join(map(str, self.languages))
            raise ApiError(400, f"Invalid request: suggestions are taken from {ours}")
        if len(self.memory) >= MOST:
            raise ApiError(403, "No more suggestions are taken: the memory is full")
        if self.memory.add([pair], who).skipped:
            raise ApiError(400, "Invalid request: a suggestion has two texts of some thousand characters at most")

    def close(self) -> None:
        """Close the file."""
        self.memory.close()

    def _has(self, source: str, target: str) -> bool:
        return all(
            ours is None or same_language(ours, code)
            for ours, code in zip(self.languages, (source, target), strict=True)
        )
