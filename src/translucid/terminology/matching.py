"""Matches of terms in sources, also of other forms of their words, and occurrences of their targets in translations.

When a constraint makes a model write a term, its attention is often on other words: so the translation of a term is
linked to the term, and to nothing else.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import chain, product
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

from bitext.languages import Languages, short_code
from bitext.protected_spans import kept_parts
from bitext.words import LINKED_WORD, capitalized, folded, words_in, words_without_signs
from translucid.ground.errors import UserError, missing_package
from translucid.terminology.glossary import Term, in_domain, read_terms, sense_groups, terms_of


class Lemmas:
    """The dictionary forms of one language."""

    def __init__(self, language: str | None) -> None:
        """Open the dictionary of a language; the first look-up loads it.

        Args:
            language: the language code, such as `es` or `pt-BR`.

        Raises:
            UserError: simplemma is not installed, or has no dictionary of the language.
        """
        try:
            import simplemma
            from simplemma.strategies.dictionaries.dictionary_factory import SUPPORTED_LANGUAGES
        except ImportError as error:
            raise missing_package("telling the forms of a word", "simplemma", "terms") from error
        code, what = None, "the run names no language"
        if language:
            code, what = short_code(language), f"there is no dictionary of the language {language}"
        if code not in SUPPORTED_LANGUAGES:
            raise UserError(f"{what}, so the forms of a word can't be recognized", fix="Ask for terms as they stand.")
        self.language = code
        self._lemmatize = cache(lambda word: simplemma.lemmatize(word, lang=code))

    def of(self, word: str) -> str:
        """Return the dictionary form of a word, in lower case.

        >>> Lemmas("es").of("Casas")
        'casa'
        """
        return str(self._lemmatize(word.casefold())).casefold()

    def forms(self, words: Iterable[str]) -> dict[str, list[str]]:
        """Return the other forms of words that the dictionary lists, by dictionary form, in one pass over it."""
        from simplemma.strategies.dictionaries.dictionary_factory import DefaultDictionaryFactory

        lemmas = set(map(self.of, words))
        forms: dict[str, list[str]] = {}
        if not lemmas:
            return forms
        for form, lemma in DefaultDictionaryFactory().get_dictionary(self.language).items():
            lemma = str(lemma).casefold()
            if lemma in lemmas and form.isalpha() and form.islower():
                forms.setdefault(lemma, []).append(form)
        return forms

    def same_word(self, word: str, other: str) -> bool:
        """Whether two words are forms of the same word."""
        word, other = word.casefold(), other.casefold()
        return word == other or bool({word, self.of(word)} & {other, self.of(other)})


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


Outcome = Literal["used", "inflected", "missing"]


class OtherSense(NamedTuple):
    """A sense of a term that was not chosen."""

    target: str
    similarity: float


class ChosenSense(NamedTuple):
    """Why a sense of a term was chosen."""

    why: Literal["example", "first", "person"]
    """Its example was the most similar to the sentence, it is the first in the list, or a person has chosen it."""
    domain: str = ""
    example: str = ""
    similarity: float | None = None
    """The cosine of the sentence and the example."""
    others: tuple[OtherSense, ...] = ()

    def record(self) -> dict[str, Any]:
        """Return plain values."""
        return {**self._asdict(), "others": [other._asdict() for other in self.others]}


Choose: TypeAlias = Callable[[Sequence[Sequence["Term"]], str, Span], tuple[int, ChosenSense]]
"""Returns the number of the sense of the term at a span of a text, given the terms of each sense, and why."""


def first_sense(senses: Sequence[Sequence[Term]], text: str, span: Span) -> tuple[int, ChosenSense]:
    """Choose the first sense in the list."""
    return 0, ChosenSense("first", senses[0][0].domain)


@dataclass(frozen=True)
class Match:
    """A term in a source."""

    terms: tuple[Term, ...]
    """The terms with this source; any of their targets satisfies the match; the first one is preferred."""
    start: int
    """The start of the term in the source."""
    end: int
    text: str
    """The term as it is written in the source."""
    sense: ChosenSense | None = None
    """Why these terms were chosen, if others with the same source have another sense."""
    senses: tuple[tuple[Term, ...], ...] = ()
    """The terms of each sense, if there are several."""

    @property
    def targets(self) -> tuple[str, ...]:
        """The targets, one of which the translation must contain."""
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
    """The term as it is written in the source."""
    target: str
    """The preferred target."""
    outcome: Outcome
    sense: ChosenSense | None = None
    """Why this target was chosen, if the term has several senses."""

    def record(self) -> dict[str, Any]:
        """Return plain values."""
        fields = {"source": self.source, "target": self.target, "outcome": self.outcome}
        return {**fields, "sense": self.sense.record()} if self.sense else fields

    def __str__(self) -> str:
        return f"{self.source} ({self.target})"

    @property
    def warning(self) -> str:
        """The warning of a translation that lacks the term."""
        return f"term not used: {self}"


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
            source: if given, other forms of source words match too, if they have the same dictionary form.
            target: if given, other forms of the target are distinguished from a missing term.
        """
        self.source, self.target = source, target
        self.choose: Choose = first_sense
        self.has_conditions = False
        """Whether terms have domains or examples, so that there may be several senses."""
        self.count = 0
        self._exact: dict[tuple[str, ...], list[Term]] = defaultdict(list)
        self._forms: dict[tuple[str, ...], list[Term]] = defaultdict(list)
        lengths: dict[str, set[int]] = defaultdict(set)
        for term in terms:
            self.count += 1
            self.has_conditions = self.has_conditions or bool(term.domain or term.example)
            words = tuple(folded(words_in(term.source)))
            self._exact[words].append(term)
            lengths[words[0]].add(len(words))
            if source and term.inflects:
                forms = tuple(map(source.of, words))
                self._forms[forms].append(term)
                lengths[forms[0]].add(len(forms))
        # The numbers of words of the terms that begin with a word.
        self._lengths = lengths

    def choosing(self, choose: Choose) -> TermList:
        """Return the same list with another way to choose among the senses of a term."""
        chosen = copy(self)
        chosen.choose = choose
        return chosen

    def with_senses(self, targets: Mapping[str, str]) -> TermList:
        """Return the same list with senses that a person has chosen: a target by the term as it is in the text."""

        def choose(senses: Sequence[Sequence[Term]], text: str, span: Span) -> tuple[int, ChosenSense]:
            wanted = targets.get(text[slice(*span)])
            for number, sense in enumerate(senses):
                if any(term.target == wanted for term in sense):
                    return number, ChosenSense("person", sense[0].domain)
            return self.choose(senses, text, span)

        return self.choosing(choose)

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
        """Return the terms in a text from left to right, the longest at each position; matches do not overlap."""
        words = words_in(text)
        plain = forms = folded(words)
        if self.source:
            forms = list(map(self.source.of, plain))
        matches, index = [], 0
        while index < len(words):
            sizes = {*self._lengths.get(plain[index], ()), *self._lengths.get(forms[index], ())}
            for size in sorted(sizes, reverse=True):
                end = index + size
                if end > len(words):
                    continue
                span = text[words[index].start : words[end - 1].end]
                if terms := self._terms_of(span, tuple(plain[index:end]), tuple(forms[index:end])):
                    matches.append(self._match(terms, text, words[index].start, words[end - 1].end))
                    index = end
                    break
            else:
                index += 1
        return matches

    def _match(self, terms: tuple[Term, ...], text: str, start: int, end: int) -> Match:
        """Return a match of terms with the same source, of one sense."""
        if self.has_conditions and len(terms) > 1 and any(term.domain or term.example for term in terms):
            groups = sense_groups(terms)
            if len(groups) > 1:
                number, sense = self.choose(groups, text, (start, end))
                return Match(tuple(groups[number]), start, end, text[start:end], sense, tuple(map(tuple, groups)))
        return Match(terms, start, end, text[start:end])

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
            uses.append(TermUse(match.text, match.targets[0], outcome, match.sense))
        return uses

    def occurrences(self, matches: Sequence[Match], translation: str) -> list[Occurrence | None]:
        """Return the occurrence of each match in a translation, or None; occurrences do not overlap."""
        occurrences: list[Occurrence | None] = [None] * len(matches)
        if not matches:
            return occurrences
        positions = words_in(translation)
        words = _WordIndex([word.text for word in positions])
        plain = _WordIndex([word.text.casefold() for word in positions])
        # All unchanged targets come first: another form of one term may be the target of another term.
        for inflected in (False, True):
            for i, match in enumerate(matches):
                if occurrences[i] or (inflected and not (self.target and match.inflects)):
                    continue
                if span := self._target_span(match, words, plain, inflected):
                    start, end = span
                    occurrences[i] = Occurrence(positions[start].start, positions[end - 1].end, inflected)
                    words.clear(start, end)
                    plain.clear(start, end)
        return occurrences

    def _target_span(
        self, match: Match, words: _WordIndex, plain: _WordIndex, inflected: bool
    ) -> tuple[int, int] | None:
        """Return the word indices of the start and the end of a match's target in a translation, if it has one."""
        for target in match.targets:
            target_words = [word.text for word in words_in(target)]
            if not target_words:
                continue
            if match.exact:
                start = words.find(target_words)
                if start is None:  # A sentence may begin with it.
                    start = words.find([capitalized(target_words[0]), *target_words[1:]])
            elif inflected:
                start = self._form_in(plain.words, target_words)
            else:
                start = plain.find(list(map(str.casefold, target_words)))
            if start is not None:
                return start, start + len(target_words)
        return None

    def _form_in(self, words: Sequence[str], target_words: Sequence[str]) -> int | None:
        """Return the first index at which forms of all target words follow each other in a translation."""
        assert self.target
        for start in range(len(words) - len(target_words) + 1):
            pairs = zip(target_words, words[start : start + len(target_words)], strict=True)
            if all(word and self.target.same_word(target, word) for target, word in pairs):
                return start
        return None


class _WordIndex:
    """The words of a translation, which are searched for many terms."""

    def __init__(self, words: list[str]) -> None:
        self.words = words
        self._indices: dict[str, list[int]] = defaultdict(list)
        for index, word in enumerate(words):
            self._indices[word].append(index)

    def find(self, sequence: list[str]) -> int | None:
        """Return the first index at which these words follow each other."""
        counts = [len(self._indices.get(word, ())) for word in sequence]
        rarest = counts.index(min(counts))
        for index in self._indices.get(sequence[rarest], ()):
            start = index - rarest
            if start >= 0 and self.words[start : start + len(sequence)] == sequence:
                return start
        return None

    def clear(self, start: int, end: int) -> None:
        """Remove words that are found, so that no other term finds them."""
        self.words[start:end] = [""] * (end - start)


def terms_in(terms: TermList | None, text: str) -> list[Match]:
    """Return the terms in a text, except those in placeholders, tags and addresses."""
    matches = terms.matches(text) if terms else []
    if matches:  # Most texts have none.
        for _, start, end in kept_parts(text):
            matches = [match for match in matches if end <= match.start or match.end <= start]
    return matches


def missing_terms(terms: TermList | None, source: str, target: str) -> list[str]:
    """Return a warning for each term of a text that a translation from elsewhere, such as a memory, lacks."""
    uses = terms.uses(terms_in(terms, source), target) if terms else []
    return [use.warning for use in uses if use.outcome == "missing"]


def linked_terms(terms: TermList | None, links: Links, source: str, target: str) -> list[tuple[int, int, float]]:
    """Return the word links of a text and its translation, with the links of terms instead of the model's."""
    term_links = []
    matches = terms_in(terms, source)
    if terms and matches:
        for match, occurrence in zip(matches, terms.occurrences(matches, target), strict=True):
            if occurrence:
                term_links.append(TermLink((match.start, match.end), (occurrence.start, occurrence.end)))
    return with_term_links(links, source, target, term_links) if term_links else list(links)


def term_list(
    terms: str | Path | TermList | Iterable[Term | Iterable[str]],
    languages: Languages,
    inflect: bool,
    *,
    read_by_model: bool = False,
    domain: str | None = None,
) -> TermList:
    """Return a term list for terms in any of these forms.

    Args:
        terms: a file; or terms, each a `Term` or its fields as in the lines of a file.
        languages: the source and the target language.
        inflect: whether other forms of the words match too.
        read_by_model: whether the model reads the terms in the source, and so may write other forms.
        domain: if given, terms of other subject fields are left out; see `glossary.in_domain`.

    Raises:
        UserError: a term is invalid, a language has no dictionary, or no term is of the domain.
    """
    if isinstance(terms, TermList):
        return terms
    if isinstance(terms, str | Path):
        terms = read_terms(Path(terms), languages)
    parsed: list[Term] = []
    for term in terms:
        if isinstance(term, Term):
            parsed.append(term)
        else:
            parsed += terms_of([term])
    if domain:
        parsed = in_domain(parsed, domain)
    source, target = languages
    return TermList(parsed, Lemmas(source) if inflect else None, Lemmas(target) if inflect or read_by_model else None)
