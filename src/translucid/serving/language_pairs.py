"""The language pairs of a translator: one pair, or many with the same weights."""

from __future__ import annotations

import re
import threading
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import TypeAlias

from babel import Locale
from cachetools import LRUCache

from bitext.languages import find_code, usual_code
from translucid.api.pivot_translator import PivotTranslator
from translucid.api.translator import Translator
from translucid.ground.errors import UserError
from translucid.runs.configuration import Configuration
from translucid.serving.queue.batcher import Batcher
from translucid.terminology.glossary import Term

PAIRS = 64
"""The most recently used language pairs whose translators are cached for each model; each takes some kilobytes."""
ANY = "*"
"""All languages of a multilingual model, in a label."""
ENGLISH = "en"
"""The pivot language if two models share several."""

Codes = Mapping[str, str | None]
"""Languages by their usual code, each with the model's own code, which is None for a model of one pair."""


@dataclass(frozen=True)
class Served:
    """A translator between two languages, with the queue of its model."""

    name: str
    """The name of the model on the page."""
    source: str
    """The usual code."""
    target: str
    """The usual code."""
    translator: Translator
    batcher: Batcher


@dataclass(frozen=True)
class ServedPivot:
    """A translator through a pivot language."""

    first: Served
    """The step into the pivot language."""
    second: Served
    """The step from the pivot language."""
    name: str
    """The name of both models on the page."""
    translator: PivotTranslator

    @property
    def source(self) -> str:
        """The usual code."""
        return self.first.source

    @property
    def target(self) -> str:
        """The usual code."""
        return self.second.target

    @property
    def pivot(self) -> str:
        """The usual code of the pivot language."""
        return self.first.target

    @property
    def batcher(self) -> Batcher:
        """The queue: that of the second model."""
        return self.second.batcher


AnyServed: TypeAlias = Served | ServedPivot


@dataclass(frozen=True)
class Languages:
    """The source and target languages that are offered under a name."""

    name: str
    """The name on the page, which no other model has."""
    sources: Codes
    """The source languages; the first is the default."""
    targets: Codes

    @property
    def sides(self) -> tuple[Codes, Codes]:
        """The source and the target languages."""
        return self.sources, self.targets

    @property
    def pair(self) -> tuple[str, str]:
        """The default language pair."""
        return begin_with(self.sources, self.targets)

    def find(self, side: Codes, code: str) -> str | None:
        """Return the usual code of a language among `sources` or `targets` to which a code refers, if there is one."""
        if code in side:
            return code
        usual = {model_code or code: code for code, model_code in side.items()}
        model_code = find_code(code, usual)
        return usual[model_code] if model_code else None

    def has(self, code: str) -> bool:
        """Return whether a code refers to a source or a target language."""
        return any(self.find(side, code) is not None for side in self.sides)

    def find_pair(self, source: str, target: str) -> tuple[str, str] | None:
        """Return the usual codes of two languages, if there is this pair."""
        source_code, target_code = self.find(self.sources, source), self.find(self.targets, target)
        # A model of one pair may have the same language on both sides; others don't translate a language to itself.
        if source_code is None or target_code is None or (source_code == target_code and len(self.targets) > 1):
            return None
        return source_code, target_code


@dataclass(frozen=True)
class LanguagePairs(Languages):
    """A model with its source and target languages."""

    translator: Translator
    """A translator between two of the languages."""
    batcher: Batcher
    examples: Sequence[str] = ()
    """Example sentences in the first source language."""
    terms: Sequence[Term] = ()
    """The terms for translations between the languages of `pair`."""
    trained_pairs: Collection[tuple[str, str]] = ()
    """The pairs that the model was trained on, by usual code; empty if it was trained on all that it offers."""
    _translators: LRUCache[tuple[str, str], Served] = field(default_factory=lambda: LRUCache(PAIRS))
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def is_trained_on(self, source: str, target: str) -> bool:
        """Return whether the model has the pair and was trained on it."""
        pair = self.find_pair(source, target)
        return pair is not None and (not self.trained_pairs or pair in self.trained_pairs)

    def between(self, source: str, target: str) -> Served | None:
        """Return a translator from one language to another, if the model has the pair."""
        pair = self.find_pair(source, target)
        if pair is None:
            return None
        with self._lock:
            if pair not in self._translators:
                translator = self.translator.between(self.sources[pair[0]], self.targets[pair[1]])
                if self.terms and pair == self.pair:
                    translator = translator.with_terms(self.terms)
                self._translators[pair] = Served(self.name, *pair, translator, self.batcher)
            return self._translators[pair]


@dataclass(frozen=True)
class PivotPairs(Languages):
    """The language pairs that two models offer together, through a pivot language."""

    first: LanguagePairs
    """The model that translates into the pivot language."""
    second: LanguagePairs
    """The model that translates from the pivot language."""
    pivot: str
    """The usual code of the pivot language."""
    _translators: LRUCache[tuple[str, str], ServedPivot] = field(default_factory=lambda: LRUCache(PAIRS))
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def examples(self) -> Sequence[str]:
        """Example sentences in the first source language."""
        return self.first.examples if self.pair[0] == self.first.pair[0] else ()

    def between(self, source: str, target: str) -> ServedPivot | None:
        """Return a translator from one language to another, if there is the pair."""
        pair = self.find_pair(source, target)
        if pair is None:
            return None
        first, second = self.first.between(pair[0], self.pivot), self.second.between(self.pivot, pair[1])
        if first is None or second is None:
            return None
        # One object for all requests, as those of one translator share batches.
        with self._lock:
            if pair not in self._translators:
                translator = PivotTranslator(first.translator, second.translator)
                self._translators[pair] = ServedPivot(first, second, self.name, translator)
            return self._translators[pair]


def pivot_pairs(models: Sequence[LanguagePairs]) -> list[PivotPairs]:
    """Return the language pairs that no model was trained on, but that two models translate in two trained steps.

    Pairs of the first models come first.

    Both models may be the same, a multilingual one.
    """
    pivots: list[PivotPairs] = []
    for first, second in product(models, models):
        shared = [code for code in first.targets if second.find(second.sources, code)]
        if not shared:
            continue
        pivot = ENGLISH if ENGLISH in shared else shared[0]
        sources: dict[str, str | None] = {}
        targets: dict[str, str | None] = {}
        for source, target in product(first.sources, second.targets):
            is_direct = any(pairs.is_trained_on(source, target) for pairs in models)
            is_new = not is_direct and not any(pairs.find_pair(source, target) for pairs in pivots)
            are_trained = first.is_trained_on(source, pivot) and second.is_trained_on(pivot, target)
            if is_new and are_trained and source != target and pivot not in (source, target):
                sources[source], targets[target] = first.sources[source], second.targets[target]
        if sources:
            pivots.append(PivotPairs(f"{first.name} + {second.name}", sources, targets, first, second, pivot))
    return pivots


def offer(configuration: Configuration, source: str | None, target: str | None, folder: str) -> tuple[Codes, Codes]:
    """Return the source and target languages of a run's model, the default ones first.

    Args:
        configuration: the configuration of the run.
        source: the source language in the label of the run, if any; `ANY` for all.
        target: the target language in the label, if any; `ANY` for all.
        folder: the run folder, for messages.

    Raises:
        UserError: the run does not name its languages, or the model does not have those of the label.
    """
    tokenizer = configuration.data.tokenizer
    source = None if source == ANY else source
    target = None if target == ANY else target
    run_source, run_target = configuration.data.languages
    if not tokenizer.languages:
        source, target = source or run_source, target or run_target
        if not source or not target:
            what, fix = "does not say which languages it translates", f"Write en-es={folder} (with its codes)."
            raise UserError(what, file=folder, fix=fix)
        return {source: None}, {target: None}
    codes = _by_usual_code(tokenizer.languages)
    learned_targets = _by_usual_code(configuration.data.learned_directions.target_languages) or codes
    targets = _select_languages(learned_targets, target, run_target, folder)
    if tokenizer.marks_sources:
        return _select_languages(codes, source, run_source, folder), targets
    if sources := configuration.data.learned_directions.sources:
        # All sources with all targets: also pairs that no training file has.
        return _select_languages(_by_usual_code(sources), source, run_source, folder), targets
    source = source or run_source
    if not source:
        fix = f"Write 'en-*={folder}' (with its code)."
        raise UserError("does not say which language it reads", file=folder, fix=fix)
    return {usual_code(source) or source: source}, targets


def usual_pairs(configuration: Configuration, sources: Codes, targets: Codes) -> set[tuple[str, str]]:
    """Return the offered pairs, by usual code, that a multilingual run was trained on; none for other models.

    Args:
        configuration: the configuration of the run.
        sources: the source languages that are offered.
        targets: the target languages that are offered.
    """
    learned = configuration.data.learned_directions
    return {(s, t) for s, t in product(sources, targets) if (sources[s], targets[t]) in learned}


def begin_with(sources: Codes, targets: Codes) -> tuple[str, str]:
    """Return the first source and the first other target, by usual code."""
    source = next(iter(sources))
    return source, next((code for code in targets if code != source), source)


def _by_usual_code(languages: Iterable[str]) -> dict[str, str]:
    """Return a model's own codes by their usual codes; codes without a usual one, or with one in use, by themselves."""
    by_code: dict[str, str] = {}
    for model_code in sorted(languages):
        code = usual_code(model_code)
        if not code or code in by_code:
            code = model_code
        by_code[code] = model_code
    return dict(sorted(by_code.items()))


def _select_languages(codes: dict[str, str], requested: str | None, run_language: str | None, folder: str) -> Codes:
    """Return the language of a label; without one all languages, that of the run first, or else English."""
    if requested is not None:
        model_language = find_code(requested, codes.values())
        if not model_language:
            examples = ", ".join([*codes][:20]) + ", …" * (len(codes) > 20)
            raise UserError(f"has no language {requested!r}", file=folder, fix=f"It has {examples}.")
        return {code: model_code for code, model_code in codes.items() if model_code == model_language}
    default = next((code for code, model_code in codes.items() if model_code == run_language), "en")
    # `sorted` keeps the order of all others: False comes before True.
    return dict(sorted(codes.items(), key=lambda item: item[0] != default))


def is_language(code: str) -> bool:
    """Return whether a code is a language code in its usual form: `en`, `pt-BR`, `zh-Hans`."""
    form = re.fullmatch(r"([a-z]{2,3})(-[A-Z][a-z]{3})?(-[A-Z]{2}|-[0-9]{3})?", code)
    return form is not None and form[1] in Locale("en").languages
