"""Translations with the terms of their sources: made from a free translation, and assessed.

A model that is forced to write a word which it would not choose often writes its own word too, breaks off and
starts again, or forgets the rest. So the result of a constrained search competes with the free translation in which the
target of a term replaces the words that the attention links to it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

from bitext.words import capitalised, folded, unspaced, words_without_signs
from translucid.evaluation.quality_checks import restarted
from translucid.terminology.matching import Match, Occurrence, TermList

MISSING, WRONG = 10, 4
"""The weights of a missing term and of a wrong word, relative to one word too many or too few."""
SLACK = 1
"""Words that a translation may have more than the free one, as another verb needs a preposition."""
PREFIX = 3
"""Letters that a truncated word shares with the word of a term, at least, unless it is a shorter prefix of it."""
SHORT = 3
"""The length of words, in letters, that may be linked to a part of a term by chance, such as articles."""
_ASKING = frozenset("?!¿¡？！؟")
"""Punctuation whose position depends on the language."""

Span = tuple[int, int]


@dataclass(frozen=True)
class Draft:
    """A free translation that lacks some of the terms of its source."""

    text: str
    matches: Sequence[Match]
    """The terms in the source."""
    linked: Sequence[Sequence[Span]]
    """The words of the text that are linked to each match."""
    missing: Sequence[int]
    """The numbers of the matches that are missing."""

    @cached_property
    def spans(self) -> dict[int, list[Span]]:
        """The words that each missing match replaces, then others to delete; without matches that have none."""
        spans: dict[int, list[Span]] = {}
        used: set[Span] = set()
        for number in self.missing:
            unused = [span for span in _cores(self.text, self.linked[number]) if span not in used]
            if unused:
                spans[number] = _runs(self.text, unused)
                used.update(unused)
        return spans

    @property
    def replaced(self) -> list[str]:
        """The words, casefolded, that terms replace."""
        words: list[str] = []
        for start, end in chain.from_iterable(self.spans.values()):
            words += folded(words_without_signs(self.text[start:end]))
        return words

    def with_terms(self, targets: Sequence[str]) -> str | None:
        """Return the text with a target in the place of each missing match; None if one of them has no words."""
        edits: list[tuple[int, int, str]] = []
        for number, target in zip(self.missing, targets, strict=True):
            if number not in self.spans:
                return None
            main_span, *extra_spans = self.spans[number]
            original = self.text[slice(*main_span)]
            if original[:1].isupper() and not self.matches[number].exact:
                target = capitalised(target)
            edits.append((*main_span, target))
            # Short words stay: an article may be linked to the term by chance.
            for start, end in extra_spans:
                if end - start > SHORT:
                    edits.append((len(self.text[:start].rstrip()), end, ""))
        text = self.text
        # From the end, so that the offsets before an edit stay valid.
        for start, end, replacement in sorted(edits, reverse=True):
            text = text[:start] + replacement + text[end:]
        return " ".join(text.split())


def term_alone(source: str, matches: Sequence[Match]) -> str | None:
    """Return the translation of a source that consists of one term, such as a label; None for any other source.

    Punctuation and a capital at the beginning are those of the source. A question or exclamation is left to the model,
    and so is an inflected term, whose target may have to be inflected, too.
    """
    if len(matches) != 1:
        return None
    (match,) = matches
    before, after = source[: match.start], source[match.end :]
    same_form = any(term.source.casefold() == match.text.casefold() for term in match.terms)
    if not same_form or any(sign.isalnum() or sign in _ASKING for sign in before + after):
        return None
    target = match.targets[0]
    if match.text[:1].isupper() and not match.exact:
        target = capitalised(target)
    return f"{before}{target}{after}".strip()


def _cores(text: str, spans: Sequence[Span]) -> Iterator[Span]:
    """Yield the distinct spans in order, without punctuation at their ends; none in a script without spaces."""
    for start, end in sorted(set(spans)):
        letters = words_without_signs(text[start:end])
        if letters and not unspaced(text[start:end]):
            yield start + letters[0].start, start + letters[-1].end


def _runs(text: str, spans: Sequence[Span]) -> list[Span]:
    """Join spans with nothing but white space or a short word between them, and return the longest first."""
    runs: list[Span] = []
    for start, end in spans:
        if runs and len(text[runs[-1][1] : start].strip()) <= SHORT:
            runs[-1] = runs[-1][0], end
        else:
            runs.append((start, end))
    return sorted(runs, key=lambda run: run[0] - run[1])


def faults(draft: Draft, terms: TermList, source: str, text: str) -> int:
    """Return a penalty for the faults of a translation relative to the free one.

    It counts missing terms; words that terms should have replaced; repeated parts of terms, and repeated runs of words;
    and the number of words below that of the free translation, or more than `SLACK` above it.

    Args:
        draft: the free translation.
        terms: the term list.
        source: the source of both translations.
        text: the translation.
    """
    occurrences = terms.occurrences(draft.matches, text)
    words = Counter(_words_outside(text, occurrences))
    replaced = Counter(draft.replaced)
    draft_occurrences = terms.occurrences(draft.matches, draft.text)
    expected = Counter(_words_outside(draft.text, draft_occurrences)) - replaced
    added, missing = words - expected, expected - words
    unreplaced = sum((added & replaced).values())
    term_words: set[str] = set()
    for match in draft.matches:
        for target in match.targets:
            term_words.update(folded(words_without_signs(target)))
    term_parts = sum(count for word, count in added.items() if _is_part(word, term_words))
    surplus = added.total() - missing.total()
    difference = max(-surplus, surplus - SLACK, 0)
    wrong = unreplaced + term_parts + bool(restarted(source, text))
    return MISSING * occurrences.count(None) + WRONG * wrong + difference


def _words_outside(text: str, occurrences: Sequence[Occurrence | None]) -> list[str]:
    """Return the words of a text, casefolded, that belong to none of the occurrences of terms."""
    in_terms: set[int] = set()
    for occurrence in occurrences:
        if occurrence:
            in_terms.update(range(occurrence.start, occurrence.end))
    return folded(word for word in words_without_signs(text) if word.start not in in_terms)


def _is_part(word: str, term_words: set[str]) -> bool:
    """Whether a word is a word of a term, or seems to be a truncated one."""
    if len(word) > SHORT and word in term_words:
        return True
    prefix = word[:PREFIX]
    return any(term_word != word and term_word.startswith(prefix) for term_word in term_words)
