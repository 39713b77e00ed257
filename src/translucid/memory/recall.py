"""What a memory has for a text: the entry that stands in the place of a translation, and those that are shown."""

from __future__ import annotations

from translucid.memory.match import EXACT, LEAST, Match
from translucid.memory.translation_memory import SHOWN, TranslationMemory


class Recall:
    """A memory, and what of it is used."""

    def __init__(self, memory: TranslationMemory, use_from: int = EXACT) -> None:
        """`use_from`: percent from which on the best match is used."""
        self.memory, self.use_from = memory, use_from

    def used(self, text: str) -> Match | None:
        """Return the match that is used for a text, if there is one; none with wrong numbers or placeholders."""
        if self.use_from >= EXACT:
            return self.memory.exact(text)
        near = self.memory.matches(text, self.use_from, SHOWN)
        return next((match for match in near if match.has_right_numbers), None)

    def shown(self, text: str) -> list[Match]:
        """Return the best matches, the one that is used among them."""
        return self.memory.matches(text, min(LEAST, self.use_from), SHOWN)
