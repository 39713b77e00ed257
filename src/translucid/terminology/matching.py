"""Terms found in sources, and looked for in translations."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

from translucid.data.languages import Languages
from translucid.data.non_translatable import kept_parts
from translucid.data.words import Word, places, words_in
from translucid.terminology.lemmas import Lemmas
from translucid.terminology.term import Term, read_terms, terms_of

Outcome = Literal["used", "inflected", "missing"]


@dataclass(frozen=True)
class Match:
    """A term that stands in a source."""

    terms: tuple[Term, ...]
    """Those that have this source; any of their targets will do, and the first is the preferred one."""
    start: int
    """Of its first character."""
    end: int
    """Of the first character behind it."""
    text: str
    """As it stands there."""

    @property
    def targets(self) -> tuple[str, ...]:
        """What is to stand in the translation, one of them."""
        return tuple(dict.fromkeys(self.text if term.kept else term.target for term in self.terms))

    @property
    def exact(self) -> bool:
        """Whether capitals matter in the translation."""
        return any(term.kept or term.case for term in self.terms)

    @property
    def inflects(self) -> bool:
        """Whether another form of the target will do."""
        return any(term.inflects for term in self.terms)


@dataclass(frozen=True)
class TermUse:
    """What became of a term in a translation."""

    source: str
    """As it stands in the source."""
    target: str
    """What was asked for."""
    outcome: Outcome

    def __str__(self) -> str:
        """Say which term it is."""
        return f"{self.source} ({self.target})"


@dataclass(frozen=True)
class Occurrence:
    """A term that stands in a translation."""

    start: int
    """Of its first character."""
    end: int
    """Of the first character behind it."""
    inflected: bool
    """Whether it is another form of what was asked for."""


class TermList:
    """Terms that can be found in a text of any length in one go."""

    def __init__(self, terms: Iterable[Term], source: Lemmas | None = None, target: Lemmas | None = None) -> None:
        """Put terms in order.

        Args:
            terms: any number.
            source: if given, other forms of source words are found too, with the same dictionary form word by word.
            target: if given, other forms of the target are told apart from a term that is missing.
        """
        self.source, self.target = source, target
        self.count = 0
        self._exact: dict[tuple[str, ...], list[Term]] = defaultdict(list)
        self._forms: dict[tuple[str, ...], list[Term]] = defaultdict(list)
        lengths: dict[str, set[int]] = defaultdict(set)
        for term in terms:
            self.count += 1
            words = tuple(word.text.casefold() for word in words_in(term.source))
            self._exact[words].append(term)
            lengths[words[0]].add(len(words))
            if source and term.inflects:
                forms = tuple(map(source.of, words))
                self._forms[forms].append(term)
                lengths[forms[0]].add(len(forms))
        self._lengths = {first: sorted(sizes, reverse=True) for first, sizes in lengths.items()}
        """By the first word of terms, in how many words they come, the longest first."""

    @cached_property
    def other_forms(self) -> dict[str, list[str]]:
        """By dictionary form, forms of targets of one word that inflect, if other forms are wanted on both sides."""
        if not (self.source and self.target):
            return {}
        every = (term for terms in self._exact.values() for term in terms)
        return self.target.forms(term.target for term in every if term.inflects and term.target.isalpha())

    def forms_of(self, target: str) -> list[str]:
        """Return other forms of a target, none if there are none or they are not wanted."""
        if not self.target or not target.isalpha() or not self.other_forms:
            return []
        return [form for form in self.other_forms.get(self.target.of(target), ()) if form != target.casefold()]

    def matches(self, text: str) -> list[Match]:
        """Return the terms in a text, from left to right: at each place the longest one, and none within another."""
        words = words_in(text)
        plain = [word.text.casefold() for word in words]
        forms = [self.source.of(word) for word in plain] if self.source else plain
        found, at = [], 0
        while at < len(words):
            sizes = {*self._lengths.get(plain[at], ()), *self._lengths.get(forms[at], ())}
            for size in sorted(sizes, reverse=True):
                if terms := self._there(
                    text, words[at : at + size], plain[at : at + size], forms[at : at + size], size
                ):
                    start, end = words[at].start, words[at + size - 1].end
                    found.append(Match(terms, start, end, text[start:end]))
                    at += size
                    break
            else:
                at += 1
        return found

    def _there(
        self, text: str, words: Sequence[Word], plain: Sequence[str], forms: Sequence[str], size: int
    ) -> tuple[Term, ...]:
        if len(words) < size:
            return ()
        whole = text[words[0].start : words[-1].end]
        for candidates in (self._exact.get(tuple(plain), ()), self._forms.get(tuple(forms), ())):
            if fit := tuple(term for term in candidates if not term.case or term.source == whole):
                return fit
        return ()

    def uses(self, matches: Sequence[Match], translation: str) -> list[TermUse]:
        """Return what became of each match; each place of the translation counts for one of them."""
        found = []
        for match, occurrence in zip(matches, self.occurrences(matches, translation), strict=True):
            outcome: Outcome = "missing"
            if occurrence:
                outcome = "inflected" if occurrence.inflected else "used"
            found.append(TermUse(match.text, match.targets[0], outcome))
        return found

    def occurrences(self, matches: Sequence[Match], translation: str) -> list[Occurrence | None]:
        """Return where each match stands in a translation, if it does; no two of them in the same place."""
        if not matches:
            return []
        every = words_in(translation)
        words = [word.text for word in every]
        plain = [word.casefold() for word in words]
        found: dict[int, Occurrence] = {}
        for inflected in (False, True):
            for i, match in enumerate(matches):
                if i in found or (inflected and not (self.target and match.inflects)):
                    continue
                if at := self._place(match, words, plain, inflected):
                    found[i] = Occurrence(every[at[0]].start, every[at[1] - 1].end, inflected)
                    for place in range(*at):
                        words[place] = plain[place] = ""
        return [found.get(i) for i in range(len(matches))]

    def _place(
        self, match: Match, words: Sequence[str], plain: Sequence[str], inflected: bool
    ) -> tuple[int, int] | None:
        for target in match.targets:
            asked = [word.text for word in words_in(target)]
            if match.exact:
                ways = [asked, [_capital(asked[0]), *asked[1:]]] if asked else []
                found = [at for way in ways for at in places(way, words)]
            elif inflected:
                found = self._forms_at(asked, plain)
            else:
                found = places([word.casefold() for word in asked], plain)
            if found:
                return found[0], found[0] + len(asked)
        return None

    def _forms_at(self, asked: Sequence[str], plain: Sequence[str]) -> list[int]:
        assert self.target
        size = len(asked)
        return [
            at
            for at in range(len(plain) - size + 1)
            if all(there and self.target.same(one, there) for one, there in zip(asked, plain[at:], strict=False))
        ]


def terms_in(terms: TermList, text: str) -> list[Match]:
    """Return the terms in a text, but for those in placeholders, tags and addresses."""
    matches = terms.matches(text)
    if not matches:
        return []
    kept = [(first, after) for _, first, after in kept_parts(text)]
    return [match for match in matches if not any(first < match.end and match.start < after for first, after in kept)]


def term_list(
    terms: str | Path | TermList | Iterable[Term | Iterable[str]],
    languages: Languages,
    inflect: bool,
    *,
    told: bool = False,
) -> TermList:
    """Return terms that are given in any way.

    Args:
        terms: a file, or they, each a `Term` or fields as in the lines of a file.
        languages: of the translation.
        inflect: whether other forms of their words are these terms too.
        told: whether a model is told of them that may write another form.

    Raises:
        UserError: there is something wrong with them, or no dictionary of a language.
    """
    if isinstance(terms, TermList):
        return terms
    given = read_terms(Path(terms)) if isinstance(terms, str | Path) else list(terms)
    plain = [term if isinstance(term, Term) else terms_of([term])[0] for term in given]
    source, target = languages
    return TermList(plain, Lemmas(source) if inflect else None, Lemmas(target) if inflect or told else None)


def _capital(word: str) -> str:
    return word[:1].upper() + word[1:]
