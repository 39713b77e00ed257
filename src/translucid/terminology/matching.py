"""Matches of terms in sources, and occurrences of their targets in translations."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Literal

from translucid.data.languages import Languages
from translucid.data.non_translatable import kept_parts
from translucid.data.words import capitalised, folded, places, words_in
from translucid.terminology.lemmas import Lemmas
from translucid.terminology.links import Links, TermLink, with_term_links
from translucid.terminology.term import Term, read_terms, terms_of

Outcome = Literal["used", "inflected", "missing"]


@dataclass(frozen=True)
class Match:
    """A term in a source."""

    terms: tuple[Term, ...]
    """The terms with this source; any of their targets satisfies the match, and the first is preferred."""
    start: int
    """The start of the term in the source."""
    end: int
    text: str
    """The term in the form in which the source has it."""

    @property
    def targets(self) -> tuple[str, ...]:
        """The targets, of which the translation must have one."""
        targets = dict[str, None]()
        for term in self.terms:
            targets[self.text if term.kept else term.target] = None
        return tuple(targets)

    @property
    def exact(self) -> bool:
        """Whether capitals matter in the translation."""
        return any(term.kept or term.case for term in self.terms)

    @property
    def inflects(self) -> bool:
        """Whether other forms of the target satisfy the match."""
        return any(term.inflects for term in self.terms)


@dataclass(frozen=True)
class TermUse:
    """The outcome of a term in a translation."""

    source: str
    """The term in the form in which the source has it."""
    target: str
    """The preferred target."""
    outcome: Outcome

    def __str__(self) -> str:
        """Return the term with its target."""
        return f"{self.source} ({self.target})"


@dataclass(frozen=True)
class Occurrence:
    """The target of a term in a translation."""

    start: int
    """The start of the target in the translation."""
    end: int
    inflected: bool
    """Whether it is another form of the target."""


class TermList:
    """Terms that are matched with a text in one pass."""

    def __init__(self, terms: Iterable[Term], source: Lemmas | None = None, target: Lemmas | None = None) -> None:
        """Index the terms.

        Args:
            terms: the terms.
            source: if given, other forms of source words match too: each word has the same dictionary form.
            target: if given, other forms of the target are distinguished from a missing term.
        """
        self.source, self.target = source, target
        self.count = 0
        self._exact: dict[tuple[str, ...], list[Term]] = defaultdict(list)
        self._forms: dict[tuple[str, ...], list[Term]] = defaultdict(list)
        lengths: dict[str, set[int]] = defaultdict(set)
        for term in terms:
            self.count += 1
            words = tuple(folded(words_in(term.source)))
            self._exact[words].append(term)
            lengths[words[0]].add(len(words))
            if source and term.inflects:
                forms = tuple(map(source.of, words))
                self._forms[forms].append(term)
                lengths[forms[0]].add(len(forms))
        # The numbers of words of the terms that begin with a word.
        self._lengths = lengths

    @cached_property
    def other_forms(self) -> dict[str, list[str]]:
        """The other forms of inflecting targets of one word, by dictionary form; empty without both dictionaries."""
        if not (self.source and self.target):
            return {}
        terms = chain.from_iterable(self._exact.values())
        return self.target.forms(term.target for term in terms if term.inflects and term.target.isalpha())

    def forms_of(self, target: str) -> list[str]:
        """Return the other forms of a target that the dictionary lists."""
        if not self.target or not target.isalpha() or not self.other_forms:
            return []
        return [form for form in self.other_forms.get(self.target.of(target), ()) if form != target.casefold()]

    def matches(self, text: str) -> list[Match]:
        """Return the terms in a text from left to right, at each place the longest; matches do not overlap."""
        words = words_in(text)
        plain = forms = folded(words)
        if self.source:
            forms = list(map(self.source.of, plain))
        matches, at = [], 0
        while at < len(words):
            sizes = {*self._lengths.get(plain[at], ()), *self._lengths.get(forms[at], ())}
            for size in sorted(sizes, reverse=True):
                end = at + size
                if end > len(words):
                    continue
                span = text[words[at].start : words[end - 1].end]
                if terms := self._terms_of(span, tuple(plain[at:end]), tuple(forms[at:end])):
                    matches.append(Match(terms, words[at].start, words[end - 1].end, span))
                    at = end
                    break
            else:
                at += 1
        return matches

    def _terms_of(self, text: str, plain: tuple[str, ...], forms: tuple[str, ...]) -> tuple[Term, ...]:
        """Return the terms of a text; those with the same words if there are any, else those with the same forms."""
        for candidates in (self._exact.get(plain, ()), self._forms.get(forms, ())):
            if terms := tuple(term for term in candidates if not term.case or term.source == text):
                return terms
        return ()

    def uses(self, matches: Sequence[Match], translation: str) -> list[TermUse]:
        """Return the outcome of each match; each word of the translation counts for one match only."""
        uses = []
        for match, occurrence in zip(matches, self.occurrences(matches, translation), strict=True):
            outcome: Outcome = "missing"
            if occurrence:
                outcome = "inflected" if occurrence.inflected else "used"
            uses.append(TermUse(match.text, match.targets[0], outcome))
        return uses

    def occurrences(self, matches: Sequence[Match], translation: str) -> list[Occurrence | None]:
        """Return the occurrence of each match in a translation, or None; occurrences do not overlap."""
        occurrences: list[Occurrence | None] = [None] * len(matches)
        if not matches:
            return occurrences
        positions = words_in(translation)
        words = [word.text for word in positions]
        plain = list(map(str.casefold, words))
        # First all targets as they are: another form of one term may be the target of another.
        for inflected in (False, True):
            for i, match in enumerate(matches):
                if occurrences[i] or (inflected and not (self.target and match.inflects)):
                    continue
                if span := self._place(match, words, plain, inflected):
                    first, end = span
                    occurrences[i] = Occurrence(positions[first].start, positions[end - 1].end, inflected)
                    words[first:end] = plain[first:end] = [""] * (end - first)
        return occurrences

    def with_links(self, links: Links, source: str, target: str) -> list[tuple[int, int, float]]:
        """Return the word links of a text and its translation, with the links of these terms in their place."""
        of_terms = []
        matches = terms_in(self, source)
        for match, there in zip(matches, self.occurrences(matches, target), strict=True):
            if there:
                of_terms.append(TermLink((match.start, match.end), (there.start, there.end)))
        return with_term_links(links, source, target, of_terms) if of_terms else list(links)

    def _place(
        self, match: Match, words: Sequence[str], plain: Sequence[str], inflected: bool
    ) -> tuple[int, int] | None:
        """Return the indices of the first word and after the last word of a match's target in a translation."""
        for target in match.targets:
            wanted = [word.text for word in words_in(target)]
            if match.exact:
                starts = places(wanted, words)
                if wanted and not starts:  # A sentence may begin with it.
                    starts = places([capitalised(wanted[0]), *wanted[1:]], words)
            elif inflected:
                starts = self._forms_at(wanted, plain)
            else:
                starts = places(list(map(str.casefold, wanted)), plain)
            if starts:
                return starts[0], starts[0] + len(wanted)
        return None

    def _forms_at(self, wanted: Sequence[str], plain: Sequence[str]) -> list[int]:
        """Return the indices at which a translation has forms of all wanted words."""
        assert self.target
        starts = []
        for at in range(len(plain) - len(wanted) + 1):
            pairs = zip(wanted, plain[at:], strict=False)
            if all(word and self.target.same(target, word) for target, word in pairs):
                starts.append(at)
        return starts


def terms_in(terms: TermList, text: str) -> list[Match]:
    """Return the terms in a text, except those in placeholders, tags and addresses."""
    matches = terms.matches(text)
    if matches:  # Most texts have none.
        for _, start, end in kept_parts(text):
            matches = [match for match in matches if end <= match.start or match.end <= start]
    return matches


def term_list(
    terms: str | Path | TermList | Iterable[Term | Iterable[str]],
    languages: Languages,
    inflect: bool,
    *,
    read_by_model: bool = False,
) -> TermList:
    """Return a term list for terms in any of these forms.

    Args:
        terms: a file; or terms, each a `Term` or its fields as in the lines of a file.
        languages: the source and the target language.
        inflect: whether other forms of the words match too.
        read_by_model: whether the model reads the terms in the source, and so may write other forms.

    Raises:
        UserError: a term is invalid, or a language has no dictionary.
    """
    if isinstance(terms, TermList):
        return terms
    if isinstance(terms, str | Path):
        terms = read_terms(Path(terms))
    plain: list[Term] = []
    for term in terms:
        if isinstance(term, Term):
            plain.append(term)
        else:
            plain += terms_of([term])
    source, target = languages
    return TermList(plain, Lemmas(source) if inflect else None, Lemmas(target) if inflect or read_by_model else None)
