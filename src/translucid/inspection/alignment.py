"""Word alignments from attention, in Pharaoh format: `0-0 1-2`, source word first, counted from 0."""

from __future__ import annotations

from collections.abc import Iterable

from translucid.inspection.words import WordMap

Links = list[tuple[int, int]]


def align(words: WordMap) -> Links:
    """Link each target word to the source word it looked at most. The end tokens take no part."""
    inner = words.weights[:-1, :-1]
    if not inner.numel():
        return []
    return sorted((int(best), target) for target, best in enumerate(inner.argmax(1)))


def to_pharaoh(links: Iterable[tuple[int, int]]) -> str:
    """[(0, 0), (1, 2)] -> `0-0 1-2`."""
    return " ".join(f"{source}-{target}" for source, target in links)
