"""Between which languages a translator is offered: a model of one pair, or of many, with the same weights for all."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from babel import Locale
from cachetools import LRUCache

from translucid.api.translator import Translator
from translucid.data.languages import find_code, usual_code
from translucid.ground.errors import UserError
from translucid.runs.configuration import Configuration
from translucid.serving.queue.batcher import Batcher
from translucid.terminology.term import Term

PAIRS = 64
"""Pairs of languages of a model that are kept ready, those asked for last; each has some kilobytes."""
ANY = "*"
"""Stands in a label for all languages of a model that has many."""

Codes = Mapping[str, str | None]
"""Languages by usual code, each with the model's own code; none of a model that has one pair."""


@dataclass(frozen=True)
class Served:
    """One translator between two languages, with the queue of its model."""

    name: str
    """Of the model, as shown on the page."""
    source: str
    """Usual code."""
    target: str
    translator: Translator
    batcher: Batcher


@dataclass(frozen=True)
class LanguagePairs:
    """A model with the languages that it is offered between."""

    name: str
    """As shown on the page; unique."""
    sources: Codes
    """The first is meant where nothing else is known."""
    targets: Codes
    translator: Translator
    """Between two of them."""
    batcher: Batcher
    examples: Sequence[str] = ()
    """Sentences to try it with, in the first source language."""
    terms: Sequence[Term] = ()
    """That translations keep to, between the languages of `pair`."""
    _ready: LRUCache[tuple[str, str], Served] = field(default_factory=lambda: LRUCache(PAIRS))
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def sides(self) -> tuple[Codes, Codes]:
        """Sources and targets."""
        return self.sources, self.targets

    @property
    def pair(self) -> tuple[str, str]:
        """A pair of languages to begin with."""
        return begin_with(self.sources, self.targets)

    def find(self, side: Codes, code: str) -> str | None:
        """Return the usual code of a language on one of `sides` that is meant by a code, if there is one."""
        if code in side:
            return code
        usual = {own or code: code for code, own in side.items()}
        found = find_code(code, usual)
        return usual[found] if found else None

    def between(self, source: str, target: str) -> Served | None:
        """Return a translator from one language to another, if it is offered."""
        codes = self.find(self.sources, source), self.find(self.targets, target)
        if codes[0] is None or codes[1] is None or (codes[0] == codes[1] and len(self.targets) > 1):
            return None
        pair = codes[0], codes[1]
        with self._lock:
            if pair not in self._ready:
                translator = self.translator.between(self.sources[pair[0]], self.targets[pair[1]])
                if self.terms and pair == self.pair:
                    translator = translator.with_terms(self.terms)
                self._ready[pair] = Served(self.name, *pair, translator, self.batcher)
            return self._ready[pair]


def offer(configuration: Configuration, source: str | None, target: str | None, folder: str) -> tuple[Codes, Codes]:
    """Return the languages that a run's model is offered between, sources and targets, those to begin with first.

    Args:
        configuration: of the run.
        source: the one that a label names, if any; `ANY` for all.
        target: likewise.
        folder: of the run, for messages.

    Raises:
        UserError: the run does not say which they are, or the model does not have them.
    """
    tokenizer = configuration.data.tokenizer
    own = configuration.data.languages
    if not tokenizer.languages:
        known = [named if named not in (None, ANY) else code for named, code in zip((source, target), own, strict=True)]
        if not known[0] or not known[1]:
            what, fix = "does not say which languages it translates", f"Write en-es={folder} (with its codes)."
            raise UserError(what, file=folder, fix=fix)
        return {known[0]: None}, {known[1]: None}
    every = _by_usual_code(tokenizer.languages)
    targets = _chosen(every, target, own[1], folder)
    if tokenizer.told == "each on its own side":
        return _chosen(every, source, own[0], folder), targets
    read = source if source not in (None, ANY) else own[0]
    if not read:
        fix = f"Write 'en-*={folder}' (with its code)."
        raise UserError("does not say which language it reads", file=folder, fix=fix)
    return {usual_code(read) or read: read}, targets


def begin_with(sources: Codes, targets: Codes) -> tuple[str, str]:
    """Return the first source and the first other target, by usual code."""
    source = next(iter(sources))
    return source, next((code for code in targets if code != source), source)


def _by_usual_code(languages: Iterable[str]) -> dict[str, str]:
    """Return a model's own codes by the usual ones, or by themselves: those without, and the second of two alike."""
    found: dict[str, str] = {}
    for own in sorted(languages):
        code = usual_code(own)
        found[code if code and code not in found else own] = own
    return dict(sorted(found.items()))


def _chosen(every: dict[str, str], named: str | None, own: str | None, folder: str) -> Codes:
    """Return what a label names, or all, the run's own language first, or else English."""
    if named not in (None, ANY):
        found = find_code(named or "", every.values())
        if not found:
            some = ", ".join([*every][:20]) + ", …" * (len(every) > 20)
            raise UserError(f"has no language {named!r}", file=folder, fix=f"It has {some}.")
        return {code: one for code, one in every.items() if one == found}
    first = [code for code, one in every.items() if one == own] or [code for code in every if code == "en"]
    return {code: every[code] for code in [*first, *(code for code in every if code not in first)]}


def is_language(code: str) -> bool:
    """Whether a code is one of a language, written as usual: `en`, `pt-BR`, `zh-Hans`."""
    form = re.fullmatch(r"([a-z]{2,3})(-[A-Z][a-z]{3})?(-[A-Z]{2}|-[0-9]{3})?", code)
    return form is not None and form[1] in Locale("en").languages
