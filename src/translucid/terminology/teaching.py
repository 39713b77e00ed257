"""Sentence pairs from which a model learns to apply terms that are annotated in the source."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from random import Random

from bitext.pair import Pair
from bitext.words import Word, capitalised
from translucid.data.linked_pairs import edited
from translucid.terminology.lemmas import Lemmas
from translucid.terminology.marking import Marking, marking_edits
from translucid.terminology.mining import Lexicon, content

ANNOTATED_SHARE = 1 / 3
"""The share of possible terms of a pair that are annotated, in addition to one that always is."""
PHRASE_SHARE = 0.5
"""The share of adjacent words with adjacent translations that are annotated as one term."""
REPLACED_SHARE = 0.3
"""The share of single words that are replaced by another word with the same ending, so that only the annotation shows
the meaning. Otherwise, the model would learn to translate the word and ignore the annotation."""


def with_terms(pairs: Iterable[Pair], lexicon: Lexicon, lemmas: Lemmas, share: float, seed: int) -> Iterator[Pair]:
    """Yield pairs with terms annotated in some of the sources, each with the dictionary form of its translation.

    Args:
        pairs: the training pairs.
        lexicon: the translations of words.
        lemmas: the dictionary forms of the target language.
        share: the share of pairs with annotations; below 1, so that the model also learns to translate without them.
        seed: the seed; together with the text of a pair, it determines its annotations, whatever the order of pairs.
    """
    for pair in pairs:
        draw = Random(f"{seed} {pair.source}\t{pair.target}")
        if draw.random() < share and (markings := _annotations(pair, lexicon, lemmas, draw)):
            pair = edited(pair, marking_edits(pair.source, markings))
        yield pair


def _annotations(pair: Pair, lexicon: Lexicon, lemmas: Lemmas, draw: Random) -> list[Marking]:
    source, target = content(pair.source), content(pair.target)
    links = lexicon.terms(source, target)
    if not links:
        return []
    forced_index = draw.randrange(len(links))
    markings, end = [], 0
    for index, (i, j) in enumerate(links):
        alternative = None
        if i < end or (index != forced_index and draw.random() >= ANNOTATED_SHARE):
            continue
        source_end, translations = i + 1, [j]
        if (
            index + 1 < len(links)
            and _adjacent((i, j), links[index + 1], pair, source, target)
            and draw.random() < PHRASE_SHARE
        ):
            source_end, translations = i + 2, sorted([j, links[index + 1][1]])
        elif draw.random() < REPLACED_SHARE:
            alternative = _similar_word(source[i].text, lexicon, draw)
        words = " ".join(_lemma(target[k], lemmas, first=k == 0) for k in translations)
        markings.append(Marking(source[i].start, source[source_end - 1].end, words, alternative))
        end = source_end
    return markings


def _adjacent(
    link: tuple[int, int], next_link: tuple[int, int], pair: Pair, source: list[Word], target: list[Word]
) -> bool:
    """Whether the words of two links have only a space between them, in both languages."""
    if next_link[0] != link[0] + 1 or abs(next_link[1] - link[1]) != 1:
        return False
    low, high = sorted((link[1], next_link[1]))
    between_sources = pair.source[source[link[0]].end : source[next_link[0]].start]
    return between_sources == pair.target[target[low].end : target[high].start] == " "


def _similar_word(word: str, lexicon: Lexicon, draw: Random) -> str:
    """Return another word with the same ending, which often means the same number and tense."""
    similar = draw.choice(lexicon.ending(word.casefold()))
    return capitalised(similar) if word[0].isupper() else similar


def _lemma(word: Word, lemmas: Lemmas, *, first: bool) -> str:
    """Return the dictionary form, capitalised if the word is, unless it begins the sentence."""
    form = lemmas.of(word.text)
    return capitalised(form) if word.text[0].isupper() and not first else form
