"""Sentence pairs from which a model learns to apply terms that are pointed out to it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from random import Random

from translucid.data.readers.corpus import Pair
from translucid.data.words import Word
from translucid.terminology.lemmas import Lemmas
from translucid.terminology.marking import Marking, marked
from translucid.terminology.mining import Lexicon, content

POINTED_OUT = 1 / 3
"""Share of the words that may be terms that are pointed out in a pair, but one at least."""
TOGETHER = 0.5
"""How often two that stand side by side on both sides are one term."""
OTHERS = 0.3
"""How often another word of the same ending stands in the place of a single one: nothing but what is pointed out tells
then what it means, or the model would learn to look at the word alone."""


def with_terms(pairs: Iterable[Pair], lexicon: Lexicon, lemmas: Lemmas, share: float, seed: int) -> Iterator[Pair]:
    """Yield pairs with terms pointed out in some of the sources, each with the dictionary form of its translation.

    Args:
        pairs: the training text.
        lexicon: says which words translate each other.
        lemmas: of the target language.
        share: of the pairs in which terms are pointed out; the model must go on translating without.
        seed: which, with the text of a pair; the order of the pairs does not matter.
    """
    for pair in pairs:
        draw = Random(f"{seed} {pair.source}\t{pair.target}")
        if draw.random() < share and (markings := _drawn(pair, lexicon, lemmas, draw)):
            pair = pair._replace(source=marked(pair.source, markings))
        yield pair


def _drawn(pair: Pair, lexicon: Lexicon, lemmas: Lemmas, draw: Random) -> list[Marking]:
    source, target = content(pair.source), content(pair.target)
    links = lexicon.terms(source, target)
    if not links:
        return []
    first = draw.randrange(len(links))
    markings, at = [], 0
    for n, (i, j) in enumerate(links):
        other = None
        if i < at or (n != first and draw.random() >= POINTED_OUT):
            continue
        after, to = i + 1, [j]
        if n + 1 < len(links) and _beside((i, j), links[n + 1], pair, source, target) and draw.random() < TOGETHER:
            after, to = i + 2, sorted([j, links[n + 1][1]])
        elif draw.random() < OTHERS:
            other = _alike(source[i].text, lexicon, draw)
        words = " ".join(_lemma(target[place], lemmas, first=place == 0) for place in to)
        markings.append(Marking(source[i].start, source[after - 1].end, words, other))
        at = after
    return markings


def _beside(one: tuple[int, int], other: tuple[int, int], pair: Pair, source: list[Word], target: list[Word]) -> bool:
    """Whether two links are of words with nothing but a space between them, on both sides."""
    if other[0] != one[0] + 1 or abs(other[1] - one[1]) != 1:
        return False
    low, high = sorted((one[1], other[1]))
    between = (
        pair.source[source[one[0]].end : source[other[0]].start],
        pair.target[target[low].end : target[high].start],
    )
    return between == (" ", " ")


def _alike(word: str, lexicon: Lexicon, draw: Random) -> str:
    """Return another word of the corpus that ends alike, as those of one number and tense do in many languages."""
    other = draw.choice(lexicon.ending(word.casefold()))
    return other[:1].upper() + other[1:] if word[0].isupper() else other


def _lemma(word: Word, lemmas: Lemmas, *, first: bool) -> str:
    """Return the dictionary form; a capital stays where it is not that of a sentence's beginning."""
    form = lemmas.of(word.text)
    return form[:1].upper() + form[1:] if word.text[0].isupper() and not first else form
