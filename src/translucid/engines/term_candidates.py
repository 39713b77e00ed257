"""Translations that have the terms of their sources: made from a free translation, and judged.

A model that is made to write a word which it would not say often writes its own word beside it, breaks off and begins
anew, or forgets the rest. So what a constrained search finds competes with the free translation in which the target of
a term stands in the place of the words that the attention links to it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain

from translucid.data.words import Word, unspaced, words_in
from translucid.evaluation.quality_checks import restarted
from translucid.terminology.matching import Match, TermList

MISSING, WRONG = 10, 4
"""What a missing term counts, and a word that should not be there, in words more or fewer than there should be."""
SLACK = 1
"""Words that a translation may have more than the free one, as another verb needs a preposition."""
PREFIX = 3
"""Letters that a broken-off word has of a word of a term, if it is no shorter beginning of it."""
SHORT = 3
"""Letters of words that may be linked to a part of a term by chance, such as articles."""

Span = tuple[int, int]


@dataclass(frozen=True)
class Draft:
    """A free translation that lacks some of the terms of its source."""

    text: str
    matches: Sequence[Match]
    """The terms in the source."""
    linked: Sequence[Sequence[Span]]
    """Of each match, the words of the text that are linked to it."""
    missing: Sequence[int]
    """The numbers of the matches that are missing."""
    spans: dict[int, list[Span]] = field(init=False)
    """Of each missing match that has some, the words in whose place it goes, and others that go with them."""

    def __post_init__(self) -> None:
        spans: dict[int, list[Span]] = {}
        taken: set[Span] = set()
        for number in self.missing:
            own = [span for span in _cores(self.text, self.linked[number]) if span not in taken]
            if own:
                spans[number] = _runs(self.text, own)
                taken.update(own)
        object.__setattr__(self, "spans", spans)

    @property
    def replaced(self) -> list[str]:
        """The words, casefolded, in whose place terms go."""
        return [
            word.text.casefold()
            for start, end in chain.from_iterable(self.spans.values())
            for word in words_in(self.text[start:end])
            if word.text.isalnum()
        ]

    def with_terms(self, targets: Sequence[str]) -> str | None:
        """Return the text with a target in the place of the words for each missing match; None if it has no words."""
        edits: list[tuple[int, int, str]] = []
        for number, target in zip(self.missing, targets, strict=True):
            if number not in self.spans:
                return None
            first, *others = self.spans[number]
            written = self.text[slice(*first)]
            if written[:1].isupper() and not self.matches[number].exact:
                target = target[:1].upper() + target[1:]
            edits.append((*first, target))
            for start, end in others:
                if end - start > SHORT:
                    edits.append((len(self.text[:start].rstrip()), end, ""))
        text = self.text
        for start, end, new in sorted(edits, reverse=True):
            text = text[:start] + new + text[end:]
        return " ".join(text.split())


def _cores(text: str, spans: Sequence[Span]) -> Iterator[Span]:
    """Yield spans without the punctuation at their ends, in order, each once; none of a script without spaces."""
    for start, end in sorted(set(spans)):
        letters = [word for word in words_in(text[start:end]) if word.text.isalnum()]
        if letters and not unspaced(text[start:end]):
            yield start + letters[0].start, start + letters[-1].end


def _runs(text: str, spans: Sequence[Span]) -> list[Span]:
    """Return spans, those with nothing but white space or a short word between joined; the longest first."""
    runs: list[Span] = []
    for start, end in spans:
        if runs and len(text[runs[-1][1] : start].strip()) <= SHORT:
            runs[-1] = runs[-1][0], end
        else:
            runs.append((start, end))
    return sorted(runs, key=lambda run: run[0] - run[1])


def faults(draft: Draft, terms: TermList, source: str, text: str) -> int:
    """Return how much is wrong in a translation, by the free one: the less, the better.

    That is missing terms; words in whose place terms should stand; parts of terms, and runs of words, that stand there
    once more; and how many words there are fewer than in the free translation, or more but for `SLACK`.

    Args:
        draft: the free translation.
        terms: that were looked for.
        source: of both.
        text: the translation.
    """
    occurrences = terms.occurrences(draft.matches, text)
    missing = sum(occurrence is None for occurrence in occurrences)
    spans = [(one.start, one.end) for one in occurrences if one]
    there = Counter(word.text.casefold() for word in _alone(text, spans))
    replaced = Counter(draft.replaced)
    free = terms.occurrences(draft.matches, draft.text)
    kept = [(one.start, one.end) for one in free if one]
    expected = Counter(word.text.casefold() for word in _alone(draft.text, kept)) - replaced
    new, gone = there - expected, expected - there
    left = sum((new & replaced).values())
    asked = {
        word.text.casefold()
        for match in draft.matches
        for target in match.targets
        for word in words_in(target)
        if word.text.isalnum()
    }
    parts = sum(count for word, count in new.items() if _is_part(word, asked))
    more = new.total() - gone.total()
    difference = max(-more, more - SLACK, 0)
    return MISSING * missing + WRONG * (left + parts + bool(restarted(source, text))) + difference


def _alone(text: str, spans: Sequence[Span]) -> Iterator[Word]:
    """Yield the words of a text that are in none of some spans."""
    for word in words_in(text):
        if word.text.isalnum() and not any(start <= word.start < end for start, end in spans):
            yield word


def _is_part(word: str, asked: set[str]) -> bool:
    """Whether a word is one of those asked for, or seems to be the beginning of one."""
    if len(word) > SHORT and word in asked:
        return True
    beginning = word[:PREFIX]
    return any(one != word and one.startswith(beginning) for one in asked)
