"""Sentence pairs whose words are linked. Links follow their words through all changes of the text before training."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import TypeAlias

from bitext.pair import Pair
from bitext.protected_spans import Edit, splice
from bitext.words import LINKED_WORD
from translucid.data.readers.corpus import SyntheticPair

WordLinks: TypeAlias = frozenset[tuple[int, int]]
"""Pairs of a source word and a target word, counted from 0, of the words in `data.words.linked_words`."""


class LinkedPair(Pair):
    """A pair with links between its words."""

    links: WordLinks = frozenset()

    @classmethod
    def of(cls, pair: Pair, links: Iterable[tuple[int, int]]) -> LinkedPair:
        """Return a pair with links; a synthetic pair stays one."""
        kind = LinkedSyntheticPair if isinstance(pair, SyntheticPair) else LinkedPair
        linked = kind(*pair).like(pair)
        if pair.original:
            linked.original = pair.original
        linked.links = frozenset(links)
        return linked

    @property
    def swapped(self) -> LinkedPair:
        """The pair with its sides exchanged."""
        return LinkedPair.of(super().swapped, ((target, source) for source, target in self.links))


class LinkedSyntheticPair(LinkedPair, SyntheticPair):  # type: ignore[misc]  # mypy rejects two bases that are tuples
    """A linked pair whose source was written by a model."""


def edited(pair: Pair, source: Sequence[Edit], target: Sequence[Edit] = ()) -> Pair:
    """Return a pair with edits of its texts; they are in order and do not overlap. Its links follow the words."""
    changed = pair._replace(source=splice(pair.source, source), target=splice(pair.target, target))
    changed.like(pair)
    changed.original = pair.original or pair
    if not isinstance(pair, LinkedPair):
        return changed
    sources, targets = moved_words(pair.source, source), moved_words(pair.target, target)
    return LinkedPair.of(changed, ((sources[s], targets[t]) for s, t in pair.links))


def moved_words(text: str, edits: Sequence[Edit]) -> list[int]:
    """Return for each word of a text the index of the word in the edited text that its first character is now part of.

    A word that begins within an edit begins at the same distance from the start of the replacement, or at its end.

    >>> moved_words("see {{ a b }} now", [Edit(4, 13, "⟦1⟧")])
    [0, 1, 1, 1, 1, 2]
    """
    starts = [match.start() for match in LINKED_WORD.finditer(splice(text, edits))]
    moved = []
    for match in LINKED_WORD.finditer(text):
        offset, shift = match.start(), 0
        for start, end, replacement in edits:
            if offset < start:
                break
            if offset < end:
                offset = start + min(offset - start, max(len(replacement) - 1, 0))
                break
            shift += len(replacement) - (end - start)
        moved.append(max(bisect_right(starts, offset + shift) - 1, 0))
    return moved
