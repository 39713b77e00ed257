"""Sources with the translation of a near match appended, for models that have learned to use it.

    I like green tea⟨MATCH⟩ Me gusta el té negro

(Bulte and Tezcan 2019, "Neural fuzzy repair", section 3.2; https://aclanthology.org/P19-1175)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from bitext.memory.match import Match
from bitext.memory.translation_memory import PROGRESS_STEP, TranslationMemory
from bitext.pair import Pair
from bitext.words import normalized_text
from translucid.data.tokenizing.pieces import MATCH


def with_match(source: str, match: Match) -> str:
    """Return a source with the translation of a match appended."""
    return f"{source}{MATCH} {match.target}"  # A space before the mark would become a piece of its own.


@dataclass(frozen=True)
class MatchAnnotation:
    """The step of the text pipeline that appends the translation of a near match."""

    memory: TranslationMemory
    min_percent: int
    """The smallest percentage of a match."""

    def apply(self, text: str, model_text: str) -> str:
        """Return `model_text` with the translation of the best match of `text` appended, if there is one."""
        matches = self.memory.matches(text, self.min_percent, limit=1)
        return with_match(model_text, matches[0]) if matches else model_text


def near_match(memory: TranslationMemory, text: str, min_percent: int) -> Match | None:
    """Return the best match of at least `min_percent` whose source is a different text."""
    query = normalized_text(text)
    for match in memory.matches(query, min_percent, limit=2):
        if match.entry.source != query:
            return match
    return None


def augmented(
    pairs: Iterable[Pair], memory: TranslationMemory, min_percent: int, on_pairs: Callable[[int], None] | None = None
) -> Iterator[Pair]:
    """Yield the pairs that have a near match, with its translation appended to their source.

    Args:
        pairs: pairs, for example those of the memory itself.
        memory: the memory with the matches.
        min_percent: the smallest percentage of a match.
        on_pairs: receives the number of pairs looked up since the last call.
    """
    for number, pair in enumerate(pairs, 1):
        if match := near_match(memory, pair.source, min_percent):
            yield Pair(with_match(pair.source, match), pair.target)
        if on_pairs and number % PROGRESS_STEP == 0:
            on_pairs(PROGRESS_STEP)
