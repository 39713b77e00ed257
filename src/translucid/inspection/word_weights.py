"""Attention between the words of a sentence pair, and the word links that are read from it; needs no PyTorch."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from translucid.evaluation.alignment_error import Links, spread
from translucid.inspection.words import span_words, split_at_spaces

FAINT = 0.01
"""Smaller weights are left out."""
_NEIGHBORS = [(-1, -1), (-1, 0), (-1, 1), (0, -1), (0, 1), (1, -1), (1, 0), (1, 1)]
"""The offsets of the links that touch a link, also at a corner."""

Floats = NDArray[np.float32]


class WordWeights(NamedTuple):
    """Weights between the words of a sentence and those of its translation, without end tokens and openings."""

    source: list[tuple[str, int, int]]
    """The words as `word_spans` returns them."""
    target: list[tuple[str, int, int]]
    weights: Floats
    """[T, S], from target to source words."""
    words_read: tuple[list[int], list[int]] | None = None
    """How many words the tokenizer reads in each word of both texts (`Tokenizer.words_read`), if texts are given."""

    @property
    def shares(self) -> Floats:
        """The weights [T, S], divided by the total that each source word receives.

        Without this, a verb that half of the sentence attends to would be the strongest link of all these words.
        """
        return source_shares(self.weights)

    @property
    def text_words(self) -> tuple[list[str], list[str]]:
        """The words of both texts, separated by spaces: `{{ a b }}` is one word of the model, but four here."""
        return split_at_spaces(span_words(self.source)), split_at_spaces(span_words(self.target))

    def links(self, *, both: bool, reverse: WordWeights | None = None) -> Links:
        """Return the word alignment, between words as `linked_words` separates them.

        Args:
            both: whether to combine both directions; see `link`.
            reverse: the same pair in a model of the opposite direction, whose weights are multiplied with these.
        """
        weights = self.shares if both else self.weights
        if reverse is not None:
            weights = weights * (reverse.shares if both else reverse.weights).T
        weighted = [(source, target, 1.0) for source, target in link(weights, both=both)]
        return [(source, target) for source, target, _ in self._between_texts(weighted)]

    def soft_links(self) -> list[tuple[int, int, float]]:
        """Return links (source word, target word, weight); the weights of each target word sum to 1.

        The weights are the normalized squares of the shares: on 1,000 phrasebook pairs they place tags better than
        links or the shares themselves (docs/placeholders.md).
        """
        squares = self.shares**2
        squares = squares / squares.sum(1, keepdims=True).clip(min=1e-9)
        links = []
        for target, source in np.argwhere(squares >= FAINT).tolist():
            links.append((source, target, squares[target, source].item()))
        return self._between_texts(links)

    def _between_texts(self, links: list[tuple[int, int, float]]) -> list[tuple[int, int, float]]:
        """Turn links between the words that the model reads into links between the words of the texts.

        They differ where a placeholder contains spaces, and where the tokenizer reads several words in one of the text.
        """
        sources = [len(split_at_spaces([word])) for word, _, _ in self.source]
        targets = [len(split_at_spaces([word])) for word, _, _ in self.target]
        if {*sources, *targets} != {1}:
            links = spread(links, [sources, targets])
        return joined_links(links, *self.words_read) if self.words_read else links


def joined_links(
    links: list[tuple[int, int, float]], sources: Sequence[int], targets: Sequence[int]
) -> list[tuple[int, int, float]]:
    """Return links between the words of texts, given links between the words that a tokenizer reads in them.

    The weights of links to one target word still sum to the same.

    Args:
        links: links (source word, target word, weight).
        sources: for each source word, how many words the tokenizer reads in it.
        targets: the same for each target word.
    """
    if {*sources, *targets} == {1}:
        return links
    source_words, target_words = (np.repeat(np.arange(len(counts)), counts).tolist() for counts in (sources, targets))
    weights: dict[tuple[int, int], float] = {}
    for source, target, weight in links:
        # A placeholder may contain what the tokenizer would read otherwise; then the last words are left out.
        if source < len(source_words) and target < len(target_words):
            word_pair = source_words[source], target_words[target]
            weights[word_pair] = weights.get(word_pair, 0.0) + weight / targets[word_pair[1]]
    return sorted((source, target, weight) for (source, target), weight in weights.items())


def source_shares(weights: Floats) -> Floats:
    """Return weights [T, S] divided by the sum of each source word."""
    shares: Floats = weights / weights.sum(0, keepdims=True).clip(min=1e-9)
    return shares


def link(weights: Floats, *, both: bool) -> Links:
    """Link each target word to the source word of the greatest weight [T, S].

    With `both`, each source word is linked to the target word of the greatest weight as well, and `grow_diagonal`
    joins the two.
    """
    if not weights.size:
        return []
    forward = [(source, target) for target, source in enumerate(weights.argmax(1).tolist())]
    if not both:
        return sorted(forward)
    return grow_diagonal(forward, enumerate(weights.argmax(0).tolist()))


def grow_diagonal(forward: Iterable[tuple[int, int]], backward: Iterable[tuple[int, int]]) -> Links:
    """Join the alignments of two directions (Koehn et al. 2005, IWSLT, section 2): grow-diag.

    The alignment begins with the links that both directions have. Links of only one direction are then added while they
    touch a link of the alignment, also at a corner, and belong to a word without any link.

    Args:
        forward: links (source, target) of the model from source to target.
        backward: links of the model from target to source, reversed to (source, target) already.
    """
    forward_links, backward_links = set(forward), set(backward)
    alignment, union = forward_links & backward_links, forward_links | backward_links
    while candidates := _growth(alignment, union - alignment):
        alignment.add(min(candidates))  # only one, because the next candidate's word may now have a link
    return sorted(alignment)


def _growth(alignment: set[tuple[int, int]], unused: set[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the unused links that touch a link of the alignment and belong to a word without any."""
    sources = {source for source, _ in alignment}
    targets = {target for _, target in alignment}
    candidates = []
    for source, target in unused:
        if source in sources and target in targets:
            continue
        if any((source + i, target + j) in alignment for i, j in _NEIGHBORS):
            candidates.append((source, target))
    return candidates
