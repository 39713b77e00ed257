"""How a sentence addresses its reader, found by rules: *tú* or *usted*, *du* or *Sie*, *tu* or *vous*.

The rules are in `formality.toml`. A sentence with signs of one form of address gets its label; one with signs of both,
or only with signs that may mean something else, gets none. The source may decide what such a sign means: *Limpia* is
informal as a translation of *Clean*, and means *she cleans* otherwise. The labels teach a model its control tokens
(Sennrich et al. 2016, "Controlling politeness", section 3), and select matches of a memory.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from copy import copy
from functools import lru_cache
from importlib.resources import files
from random import Random
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

from bitext.languages import Languages, same_language
from bitext.pair import Pair
from translucid.ground.special import FORMALITY, Formality

Address: TypeAlias = Literal["formal", "informal", "unclear", "none"]
"""How a sentence addresses its reader: `unclear` if perhaps, or in both ways; `none` if it has no sign of it."""
FORMALITIES: tuple[Formality, ...] = get_args(Formality)
NEUTRAL_SHARE = 0.2
"""The part of `data.formality` for sentences that address nobody. They get a random token, so that the model learns to
translate such a sentence as if there were none."""
LONGEST = 1000
"""The number of characters that the rules read; a sentence has fewer, and some patterns take quadratic time."""
_TABLE = files("translucid.data") / "formality.toml"
_START = r"(?:^|(?<=[.!?:…;] )|(?<=[.!?…]['\"»”“] )|(?<=[\"„“«‹¿¡(])|(?<=(?<!\w)'))(?:[\"„“«‹'¿¡(–—-] ?){0,3}"
"""A pattern of the start of a sentence within a text, with its opening signs."""
_POLITE = r"(?:(?:por favor|entonces|bueno|bitte|ach|also|na|nun|allez|alors|please),? )?"
"""A pattern of what may precede an imperative."""
_VOWELS = dict(zip("aeiou", ("[aá]", "[eé]", "[ií]", "[oó]", "[uú]"), strict=True))


class Signs(NamedTuple):
    """The patterns of both forms of address, of which a text may have signs."""

    formal: re.Pattern[str]
    informal: re.Pattern[str]

    def of(self, text: str) -> tuple[bool, bool]:
        """Return whether a text has formal signs, and whether it has informal ones."""
        return bool(self.formal.search(text)), bool(self.informal.search(text))


class Rules(NamedTuple):
    """The rules of a language."""

    signs: Signs
    unclear: re.Pattern[str]
    kinds: Mapping[str, tuple[re.Pattern[str], re.Pattern[str]]]
    """The kinds of sources, such as requests: a pattern of each, and one of what such a source does not have."""
    by_kind: Mapping[str, Signs]
    """Signs that count only in translations of sources of a kind."""

    def address(self, text: str, source_kinds: Iterable[str] = ()) -> Address:
        """Return how a sentence addresses its reader, given the kinds of its source."""
        text = _normal(text)
        found = [self.signs.of(text)]
        found += [self.by_kind[kind].of(text) for kind in source_kinds if kind in self.by_kind]
        is_formal, is_informal = map(any, zip(*found, strict=True))
        if is_formal != is_informal:
            return "formal" if is_formal else "informal"
        patterns = [self.unclear, *(has for has, _ in self.kinds.values())]
        return "unclear" if is_formal or any(pattern.search(text) for pattern in patterns) else "none"

    def kinds_of(self, text: str) -> list[str]:
        """Return the kinds of a source."""
        text = _normal(text)
        return [kind for kind, (has, lacks) in self.kinds.items() if has.search(text) and not lacks.search(text)]


def address_of(text: str, language: str | None, source: str = "", source_language: str | None = None) -> Address:
    """Return how a sentence in a language addresses its reader; `unclear` for a language without rules.

    With a `source`, of which it is a translation, signs count that only the source makes clear.

    >>> [address_of(text, "es") for text in ("¿Dónde vives?", "¿Dónde vive usted?", "¿Dónde está su casa?", "Llueve.")]
    ['informal', 'formal', 'unclear', 'none']
    >>> address_of("Limpia la casa.", "es", "Clean the house.", "en")
    'informal'
    """
    rules = rules_of(language)
    if not rules:
        return "unclear"
    source_rules = rules_of(source_language)
    return rules.address(text, source_rules.kinds_of(source) if source and source_rules else ())


def address_loss(formality: Formality, languages: Languages, source: str, text: str) -> int:
    """Return 2 if a translation has the other formality, 1 if it addresses nobody, and otherwise 0."""
    address = address_of(text, languages[1], source, languages[0])
    if address == "none":
        return 1
    return 0 if address in (formality, "unclear") else 2


def may_be(formality: Formality | None, languages: Languages, source: str, text: str) -> bool:
    """Return whether a translation has no sign of the other formality; without a formality, any text may be."""
    return formality is None or address_loss(formality, languages, source, text) < 2


def formality_warnings(formality: Formality | None, languages: Languages, source: str, text: str) -> list[str]:
    """Return a warning if a translation has signs of the other formality, and none of the requested one.

    >>> formality_warnings("formal", ("en", "es"), "Where do you live?", "¿Dónde vives?")
    ['form of address: informal, not formal']
    """
    if may_be(formality, languages, source, text):
        return []
    return [f"form of address: {address_of(text, languages[1], source, languages[0])}, not {formality}"]


@lru_cache(64)
def rules_of(language: str | None) -> Rules | None:
    """Return the rules of a language, if there are any."""
    for code, table in _tables().items():
        if language and same_language(code, language):
            affixes = table.get("before", ""), table.get("enclitics", "")
            kinds = {}
            for kind, signs in table.get("kinds", {}).items():
                kinds[kind] = _pattern(signs, affixes), re.compile(signs["lacks"], re.IGNORECASE)
            by_kind = {kind: _signs(forms, affixes) for kind, forms in table.get("if", {}).items()}
            return Rules(_signs(table), _pattern(table.get("unclear", {})), kinds, by_kind)
    return None


def languages_with_rules() -> list[str]:
    """Return the codes of the languages whose forms of address have rules."""
    return sorted(code for code, signs in _tables().items() if "formal" in signs)


@lru_cache(1)
def _tables() -> dict[str, Any]:
    return tomllib.loads(_TABLE.read_text(encoding="utf-8"))


def _signs(forms: Mapping[str, Any], affixes: tuple[str, str] = ("", "")) -> Signs:
    return Signs(*(_pattern(forms.get(form, {}), affixes) for form in Signs._fields))


def _pattern(signs: Mapping[str, Any], affixes: tuple[str, str] = ("", "")) -> re.Pattern[str]:
    """Return the pattern of all signs of a form of address; imperatives have optional affixes, given as patterns."""
    words = [*_words(signs.get("words", "")), *signs.get("patterns", ())]
    start = [*_words(signs.get("start", "")), *signs.get("start-patterns", ())]
    if imperatives := [*map(_without_accents, _words(signs.get("imperatives", "")))]:
        start.append(f"{affixes[0]}(?:{'|'.join(imperatives)}){affixes[1]}")
    inside = _words(signs.get("inside", ""))
    parts = [rf"(?i:{'|'.join(words)})"] if words else []
    parts += signs.get("exact", ())
    if start:
        parts.append(rf"(?i:{_START}{_POLITE}(?:{'|'.join(start)}))")
    if inside:  # a word or a comma precedes
        parts.append(rf"(?<=[\w,] )(?:{'|'.join(inside)})")
    if not parts:
        parts.append("(?!)")  # matches nothing
    return re.compile(rf"(?<!\w)(?:{'|'.join(parts)})(?!\w)")


def _words(text: str) -> list[str]:
    """Return patterns of words; a hyphen may stand for a space."""
    return [re.escape(word).replace(r"\-", "[- ]") for word in text.split()]


def _without_accents(word: str) -> str:
    """Return a pattern in which vowels may have accents: those of imperatives move, as in `llama` and `llámalo`."""
    return "".join(_VOWELS.get(letter, letter) for letter in word)


def _normal(text: str) -> str:
    return " ".join(text[:LONGEST].replace("’", "'").split())


class Labels:
    """Labels of training pairs, and the control tokens that the model reads."""

    def __init__(self, share: float, seed: int, languages: Languages) -> None:
        """Label pairs.

        Args:
            share: the share of the labeled pairs with a token.
            seed: with the text of a pair, determines whether it gets one; the order of the pairs does not matter.
            languages: the codes of the languages of source and target.
        """
        self.share, self.seed, self.languages = share, seed, languages

    def address(self, pair: Pair) -> Address:
        """Return how a target addresses its reader: as the corpus says, or else by the rules.

        It is `none` only if the source has no sign of an address either, if there are rules for its language.
        """
        for formality in FORMALITIES:
            if pair.formality == formality:
                return formality
        source, target = self.languages
        address = address_of(pair.target, target, pair.source, source)
        if address == "none" and rules_of(source) and address_of(pair.source, source) != "none":
            return "unclear"
        return address

    def with_tokens(self, pairs: Iterable[Pair]) -> Iterator[Pair]:
        """Yield pairs, of which some have a control token."""
        for pair in pairs:
            address = self.address(pair) if pair.source else "unclear"
            draw = Random(f"formality {self.seed} {pair.source}\t{pair.target}")
            chance = draw.random()
            if address == "none" and chance < self.share * NEUTRAL_SHARE:
                address = draw.choice(FORMALITIES)
            elif address not in FORMALITIES or chance >= self.share:
                yield pair
                continue
            marked = copy(pair)
            marked.control = FORMALITY["formal" if address == "formal" else "informal"]
            yield marked
