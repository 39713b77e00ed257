"""Word links of terms: the translation of a term is linked to the term, and to nothing else.

When a constraint makes a model write a term, its attention is often on other words.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product
from typing import NamedTuple, TypeAlias

from bitext.words import LINKED_WORD, words_without_signs

Span: TypeAlias = tuple[int, int]
"""The start and end of a range of characters."""
Links: TypeAlias = Sequence[tuple[int, int, float]]
"""Links as the index of a source word, the index of a target word, and a weight; words are those of `linked_words`."""


class TermLink(NamedTuple):
    """The spans of a term in a source and in its translation."""

    source: Span
    target: Span


def certain_links(links: Iterable[tuple[int, int]]) -> list[tuple[int, int, float]]:
    """Return links between words with the weight 1."""
    return [(s, t, 1.0) for s, t in links]


def with_term_links(links: Links, source: str, target: str, terms: Iterable[TermLink]) -> list[tuple[int, int, float]]:
    """Return links in which the words of each term are linked only to the words of its translation.

    A word with further letters, such as `soccer-mad` with the term `soccer`, keeps its other links too.

    Args:
        links: the links between the words of both texts.
        source: the source text.
        target: its translation.
        terms: the terms in both.
    """
    owned_source: set[int] = set()
    owned_target: set[int] = set()
    term_weights: dict[tuple[int, int], float] = {}
    for term in terms:
        source_words, whole_words = _words(source, term.source)
        owned_source.update(whole_words)
        target_words, whole_words = _words(target, term.target)
        owned_target.update(whole_words)
        if source[slice(*term.source)] == target[slice(*term.target)] and len(source_words) == len(target_words):
            # A term that is copied, such as a name, is linked word by word.
            term_weights.update(dict.fromkeys(zip(source_words, target_words, strict=True), 1.0))
        else:
            for s, t in product(source_words, target_words):
                term_weights[s, t] = 1 / len(source_words)
    result = []
    for s, t, weight in links:
        if (s, t) in term_weights:
            term_weights[s, t] += weight  # The attention shows which words within a term belong together.
        elif s not in owned_source and t not in owned_target:
            result.append((s, t, weight))
    for (s, t), weight in term_weights.items():
        result.append((s, t, weight))
    return sorted(result)


def _words(text: str, span: Span) -> tuple[list[int], list[int]]:
    """Return the indices of the words that overlap a span, and of those without letters outside of it."""
    overlapping, whole_words = [], []
    for number, match in enumerate(LINKED_WORD.finditer(text)):
        if match.start() >= span[1]:
            break
        if match.end() <= span[0]:
            continue
        overlapping.append(number)
        outside = f"{text[match.start() : span[0]]} {text[span[1] : match.end()]}"
        if not words_without_signs(outside):
            whole_words.append(number)
    return overlapping, whole_words
