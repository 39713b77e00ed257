"""Word links of terms: the translation of a term is linked to the term, and to nothing else.

The attention of a model often is on other words when a constraint makes it write a term.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import product
from typing import NamedTuple, TypeAlias

from translucid.data.words import words_without_signs

Span: TypeAlias = tuple[int, int]
"""The start and end of a range of characters."""
Links: TypeAlias = Sequence[tuple[int, int, float]]
"""Links as the index of a source word, the index of a target word, and a weight; words are separated by white space."""


class TermLink(NamedTuple):
    """The spans of a term in a source and in its translation."""

    source: Span
    target: Span


def certain_links(links: Iterable[tuple[int, int]]) -> list[tuple[int, int, float]]:
    """Return links between words with the weight 1."""
    return [(s, t, 1.0) for s, t in links]


def with_term_links(links: Links, source: str, target: str, terms: Iterable[TermLink]) -> list[tuple[int, int, float]]:
    """Return links in which the words of each term are linked to one another and to no others.

    A word with further letters, such as `soccer-mad` with the term `soccer`, keeps its other links too.

    Args:
        links: the links between the words of both texts.
        source: the source text.
        target: its translation.
        terms: the terms in both.
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
            # A name that is not translated is linked word by word.
            inside.update(dict.fromkeys(zip(source_words, target_words, strict=True), 1.0))
        else:
            for s, t in product(source_words, target_words):
                inside[s, t] = 1 / len(source_words)
    kept = []
    for s, t, weight in links:
        if (s, t) in inside:
            inside[s, t] += weight  # The attention shows which words within a term belong together.
        elif s not in owned_source and t not in owned_target:
            kept.append((s, t, weight))
    for (s, t), weight in inside.items():
        kept.append((s, t, weight))
    return sorted(kept)


def _words(text: str, span: Span) -> tuple[list[int], list[int]]:
    """Return the indices of the words with a letter in a span, and of those without letters outside of it."""
    touched, whole = [], []
    for number, match in enumerate(re.finditer(r"\S+", text)):
        if match.start() >= span[1]:
            break
        if match.end() <= span[0]:
            continue
        touched.append(number)
        outside = f"{text[match.start() : span[0]]} {text[span[1] : match.end()]}"
        if not words_without_signs(outside):
            whole.append(number)
    return touched, whole
