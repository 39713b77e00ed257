"""Annotations of terms in the source, for models that learn to apply them, and the sentence pairs that teach it.

The dictionary form of the translation is inserted after a word, and the model writes the form that the sentence needs
(Dinu et al. 2019, arXiv 1906.01105, "append"; Bergmanis and Pinnis 2021, arXiv 2101.10035). Three reserved pieces of
the vocabulary mark the start of the word, the start of its translation, and its end.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from random import Random
from typing import NamedTuple

from bitext.pair import Pair
from bitext.protected_spans import Edit, splice
from bitext.words import Word, capitalized
from translucid.data.linked_pairs import edited
from translucid.data.tokenizing.pieces import TERM
from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.ground.special import SPECIAL
from translucid.terminology.matching import Lemmas, TermList, terms_in
from translucid.terminology.mining import Lexicon, content


class Marking(NamedTuple):
    """The annotation of a span of the source."""

    start: int
    end: int
    target: str
    replacement: str | None = None
    """A word that replaces the source word, if any."""


def marked(source: str, markings: Iterable[Marking]) -> str:
    """Return a source with annotations, which are given from left to right and do not overlap.

    The first mark is inserted before the space before the word, so that the pieces of all other words do not change.
    """
    return splice(source, marking_edits(source, markings))


def marking_edits(source: str, markings: Iterable[Marking]) -> list[Edit]:
    """Return the edits of `marked`."""
    edits, last_end = [], 0
    for start, end, target, replacement in markings:
        has_space = source[:start].endswith(" ") and start > last_end
        mark_offset = start - 1 if has_space else start
        edits.append(Edit(mark_offset, mark_offset, TERM.source))
        edits.append(Edit(start, end, f"{replacement or source[start:end]}{TERM.target} {target}{TERM.end}"))
        last_end = end
    return edits


@dataclass(frozen=True)
class TermAnnotation:
    """The step of the text pipeline that annotates terms."""

    terms: TermList
    tokenizer: Tokenizer

    def apply(self, text: str, model_text: str) -> str:
        """Return the text with its terms annotated.

        Return `model_text` instead if an earlier step changed it, or the vocabulary lacks a translation.
        """
        matches = terms_in(self.terms, text)
        if not matches or model_text != text:
            return model_text
        annotated = marked(text, [Marking(match.start, match.end, match.targets[0]) for match in matches])
        (ids,) = self.tokenizer.encode_source([annotated])
        return model_text if SPECIAL.unknown in ids else annotated


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
    return capitalized(similar) if word[0].isupper() else similar


def _lemma(word: Word, lemmas: Lemmas, *, first: bool) -> str:
    """Return the dictionary form, capitalized if the word is, unless it begins the sentence."""
    form = lemmas.of(word.text)
    return capitalized(form) if word.text[0].isupper() and not first else form
