"""Use of a memory for a text: the match that replaces a translation, and the matches that are shown."""

from __future__ import annotations

from bitext.memory.match import EXACT, MIN_PERCENT, Match
from bitext.memory.translation_memory import MAX_MATCHES, TranslationMemory


class Recall:
    """A memory and the percentage from which its matches replace translations."""

    def __init__(self, memory: TranslationMemory, use_from: int = EXACT) -> None:
        """Use matches of `memory` of at least `use_from` percent."""
        self.memory, self.use_from = memory, use_from

    def replacement(self, text: str) -> Match | None:
        """Return the match to use instead of a translation, if there is one with the right numbers and placeholders."""
        if self.use_from >= EXACT:
            return self.memory.exact(text)
        for match in self.memory.matches(text, self.use_from, MAX_MATCHES):
            if match.has_right_numbers:
                return match
        return None

    def suggestions(self, text: str) -> list[Match]:
        """Return the best matches to show, including the one that is used."""
        return self.memory.matches(text, min(MIN_PERCENT, self.use_from), MAX_MATCHES)
