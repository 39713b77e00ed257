"""Word links of terms: what stands for a term in a translation belongs to the term, and to nothing else.

Attention often looks elsewhere when a model is made to write what it would not have said.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import product
from typing import NamedTuple, TypeAlias

from translucid.data.words import words_in

Span: TypeAlias = tuple[int, int]
"""The first character, and the one behind the last."""
Links: TypeAlias = Sequence[tuple[int, int, float]]
"""Source word, target word, both counted from 0, words by white space, and the weight of the link."""


class TermLink(NamedTuple):
    """Where a term stands in a source and in its translation."""

    source: Span
    target: Span


def with_term_links(links: Links, source: str, target: str, terms: Iterable[TermLink]) -> list[tuple[int, int, float]]:
    """Return links in which the words of each term are linked to one another and to no others.

    A word that has other letters than those of a term, as that of `soccer-mad`, keeps its other links too.

    Args:
        links: of the words of both texts.
        source: the text.
        target: its translation.
        terms: that stand in both.
    """
    owned_source: set[int] = set()
    owned_target: set[int] = set()
    inside: dict[tuple[int, int], float] = {}
    for term in terms:
        source_words, whole = _words(source, term.source)
        owned_source.update(whole)
        target_words, whole = _words(target, term.target)
        owned_target.update(whole)
        if source[slice(*term.source)] == target[slice(*term.target)] and len(source_words) == len(target_words):
            inside.update(dict.fromkeys(zip(source_words, target_words, strict=True), 1.0))  # as of a name that stays
        else:
            for s, t in product(source_words, target_words):
                inside[s, t] = 1 / len(source_words)
    kept = []
    for s, t, weight in links:
        if (s, t) in inside:
            inside[s, t] += weight  # tells which words within a term belong together
        elif s not in owned_source and t not in owned_target:
            kept.append((s, t, weight))
    return sorted([*kept, *((s, t, weight) for (s, t), weight in inside.items())])


def _words(text: str, span: Span) -> tuple[list[int], list[int]]:
    """Return the numbers of the words that a span has a letter of, and of those that have no letters outside of it."""
    touched, whole = [], []
    for number, match in enumerate(re.finditer(r"\S+", text)):
        if match.start() >= span[1]:
            break
        if match.end() <= span[0]:
            continue
        touched.append(number)
        outside = f"{text[match.start() : span[0]]} {text[span[1] : match.end()]}"
        if not any(word.text.isalnum() for word in words_in(outside)):
            whole.append(number)
    return touched, whole
