"""Sources with the translation of a near match appended, for models that have learned to use it.

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


def with_match(source: str, match: Match) -> str:
    """Return a source with the translation of a match appended."""
    return f"{source}{MATCH} {match.target}"  # A space before the mark would be a separate piece.


@dataclass(frozen=True)
class MatchAnnotation:
    """The step of the text pipeline that appends the translation of a near match."""

    memory: TranslationMemory
    least: int
    """The smallest percentage of a match."""

    def apply(self, text: str, shown: str) -> str:
        """Return `shown` with the translation of the best match of `text` appended, if there is one."""
        matches = self.memory.matches(text, self.least, most=1)
        return with_match(shown, matches[0]) if matches else shown


def near_match(memory: TranslationMemory, text: str, least: int) -> Match | None:
    """Return the best match of at least `least` percent whose source is another text."""
    wanted = spaced(text)
    for match in memory.matches(wanted, least, most=2):
        if match.entry.source != wanted:
            return match
    return None


def augmented(
    pairs: Iterable[Pair], memory: TranslationMemory, least: int, on_pairs: Callable[[int], None] | None = None
) -> Iterator[Pair]:
    """Yield the pairs that have a near match, with its translation appended to their source.

    Args:
        pairs: pairs, for example those of the memory itself.
        memory: the memory with the matches.
        least: the smallest percentage of a match.
        on_pairs: receives the number of further pairs that were looked up.
    """
    for number, pair in enumerate(pairs, 1):
        if match := near_match(memory, pair.source, least):
            yield Pair(with_match(pair.source, match), pair.target)
        if on_pairs and number % TELL == 0:
            on_pairs(TELL)
