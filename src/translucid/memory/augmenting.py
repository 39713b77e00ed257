"""Sources that have the translation of a near match behind them, for models that learn to make use of it.

    I like green tea⟨MATCH⟩ Me gusta el té negro

(Bulte and Tezcan 2019, "Neural fuzzy repair", section 3.2; https://aclanthology.org/P19-1175)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from translucid.data.readers.corpus import Pair
from translucid.data.tokenizing.reserved import MATCH
from translucid.memory.folding import spaced
from translucid.memory.match import Match
from translucid.memory.translation_memory import TELL, TranslationMemory


def behind(source: str, match: Match) -> str:
    """Return a source with the translation of a match behind it."""
    return f"{source}{MATCH} {match.target}"  # a space before it would be a piece of its own


@dataclass(frozen=True)
class MatchAnnotation:
    """The step of the text pipeline that shows the translation of a near match."""

    memory: TranslationMemory
    """To be looked up in, sentence by sentence."""
    least: int
    """Percent that a match has."""

    def apply(self, text: str, shown: str) -> str:
        """Return what is shown with the translation of the best match of the text behind it, if there is one."""
        found = self.memory.matches(text, self.least, most=1)
        return behind(shown, found[0]) if found else shown


def near_match(memory: TranslationMemory, text: str, least: int) -> Match | None:
    """Return the best match of so many percent whose source is another text."""
    wanted = spaced(text)
    found = memory.matches(wanted, least, most=2)
    return next((match for match in found if match.entry.source != wanted), None)


def augmented(
    pairs: Iterable[Pair], memory: TranslationMemory, least: int, on_pairs: Callable[[int], None] | None = None
) -> Iterator[Pair]:
    """Yield those pairs that have a near match, with it.

    Args:
        pairs: such as those of the memory itself.
        memory: to be looked up in.
        least: percent that a match has.
        on_pairs: told how many more pairs were looked up.
    """
    for number, pair in enumerate(pairs, 1):
        if match := near_match(memory, pair.source, least):
            yield Pair(behind(pair.source, match), pair.target)
        if on_pairs and number % TELL == 0:
            on_pairs(TELL)
