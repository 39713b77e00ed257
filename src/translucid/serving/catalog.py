"""The served models: translators by language pair, one or many with the same weights; other models by name."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import chain, islice, product
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

from babel import Locale, UnknownLocaleError
from babel.core import get_global
from cachetools import LRUCache

from bitext.languages import find_code, usual_code
from bitext.memory.translation_memory import Recall
from translucid.api.pivot_translator import PivotTranslator
from translucid.api.translator import Translator
from translucid.data.formality import rules_of
from translucid.data.readers.corpus import read_lines, read_pairs
from translucid.engines.choosing import EngineName
from translucid.ground.errors import UserError
from translucid.ground.special import Formality
from translucid.interop.run_resolution import resolve_run
from translucid.kernels.machine import require_pytorch
from translucid.models.kinds import Served as ServedTask
from translucid.models.kinds import all_tasks, resolved, task_of
from translucid.runs.configuration import Configuration
from translucid.runs.presets import DEMO_TEXTS
from translucid.runs.run_folder import RunFolder
from translucid.serving.edge.failures import ApiError
from translucid.serving.queue import Batcher
from translucid.serving.server_options import ServerOptions
from translucid.terminology.glossary import Term, read_terms

if TYPE_CHECKING:
    from translucid.serving.memory import ServerMemory

PAIRS = 64
"""The most recently used language pairs whose translators are cached for each model; each takes some kilobytes."""
ANY = "*"
"""All languages of a multilingual model, in a label."""
ENGLISH = "en"
"""The pivot language if two models share several."""

EXAMPLES_FILE = "examples.txt"
"""A file of examples in a run folder, one a line."""
MOST_EXAMPLES = 6
"""The maximum number of examples of a translator."""
LONGEST_EXAMPLE = 120
"""The maximum number of characters in an example."""
LARGEST_FILE = 2**26
"""The maximum size in bytes of a file that is read."""
PAIRS_READ = 300
"""The pairs of a corpus from which examples are chosen."""
WORDS_OF_EXAMPLES = (5, 7, 9, 11)
"""The numbers of words of the examples that are chosen, so that they differ in length."""

Model = TypeVar("Model")
Label = tuple[str | None, str | None]
"""The source and target language before a run folder on the command line, if any."""
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
    memory: ServerMemory | None = None
    """The translation memory of a request's client, if it is of these languages (`RequestTask.with_memory`)."""

    @property
    def retrieves(self) -> bool:
        """Whether the translator retrieves from the memory in the decoder."""
        return self.translator.retrieval is not None

    @property
    def recall(self) -> Recall | None:
        """The matches of the memory, those with the formality of the translator if it has one."""
        return self.memory.recall_with(self.translator.formality) if self.memory else None


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
    memory: ServerMemory | None = None
    """As in `Served`; neither model translates between its languages, so that they retrieve nothing."""
    retrieves = False

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
    def recall(self) -> Recall | None:
        """As in `Served`."""
        return self.memory.recall_with(self.translator.formality) if self.memory else None

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

    @property
    def formality_targets(self) -> list[str]:
        """The target languages in which the model has learned to address the reader formally or informally."""
        if not self.translator.tokenizer.has_formality:
            return []
        is_multilingual = bool(self.translator.configuration.data.tokenizer.languages)
        return [code for code in self.targets if not is_multilingual or rules_of(code)]

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
    def formality_targets(self) -> list[str]:
        """As in `LanguagePairs`, of the second model."""
        return [code for code in self.targets if code in self.second.formality_targets]

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


def name_of(code: str) -> str:
    """Return the English name of a language: `es` is Spanish."""
    try:
        return Locale.parse(code, sep="-").get_display_name("en") or code
    except (UnknownLocaleError, ValueError):
        return code


def is_language(code: str) -> bool:
    """Return whether a code is a language code in its usual form: `en`, `pt-BR`, `zh-Hans`."""
    form = re.fullmatch(r"([a-z]{2,3})(-[A-Z][a-z]{3})?(-[A-Z]{2}|-[0-9]{3})?", code)
    return form is not None and form[1] in Locale("en").languages


@dataclass(frozen=True)
class NamedModel(Generic[Model]):
    """A model that does not translate, with its name."""

    name: str
    """The name on the page, which no other model has."""
    model: Model


@dataclass(eq=False)
class Catalog:
    """All models; the first of a language pair, or of another kind, answers unless a request names another one."""

    models: list[LanguagePairs] = field(default_factory=list)
    """The translators."""
    others: dict[str, list[NamedModel[Any]]] = field(default_factory=dict)
    """The models that do something else, by what they read."""
    _addressing: LRUCache[tuple[object, Formality], Any] = field(default_factory=lambda: LRUCache(2 * PAIRS))
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __iter__(self) -> Iterator[LanguagePairs | PivotPairs]:
        """Iterate over the translators, those through a pivot language last."""
        return chain(self.models, self.pivots)

    @cached_property
    def pivots(self) -> list[PivotPairs]:
        """The translators through a pivot language, for language pairs that no model has."""
        return pivot_pairs(self.models)

    def need_translators(self) -> None:
        """Check that there is a translator.

        Raises:
            ApiError: 400, there are only other models.
        """
        if not self.models:
            paths = ", ".join(next(iter(served.routes)).split()[1] for served, _ in self.served_others())
            raise ApiError(400, f"No translator is served here, only other models ({paths})")

    def served_others(self) -> Iterator[tuple[ServedTask, list[NamedModel[Any]]]]:
        """Yield the tasks other than translation that are served, with their models."""
        for task in all_tasks():
            if task.served and task.reads in self.others:
                yield task.served, self.others[task.reads]

    def other(self, reads: str, name: str | None = None) -> NamedModel[Any]:
        """Return a model that reads something other than sentences, the first one if none is named.

        Raises:
            ApiError: 400, there is none.
        """
        served = task_of(reads).served
        assert served is not None
        models = self.others.get(reads, [])
        for model in models:
            if name in (None, model.name):
                return model
        if name is None or not models:
            raise ApiError(400, f"No model that {served.does} is served here")
        raise ApiError(400, f"there is no model {name[:50]!r} that {served.does}")

    @property
    def languages(self) -> list[str]:
        """All source and target languages."""
        codes: set[str] = set()
        for pairs in self:
            codes.update(pairs.sources, pairs.targets)
        return sorted(codes)

    def targets(self, source: str) -> list[str]:
        """Return the target languages of a source, which is itself among them, as in LibreTranslate."""
        codes = {source}
        for pairs in self:
            if source in pairs.sources:
                codes.update(pairs.targets)
        return sorted(codes)

    def pivots_from(self, source: str) -> dict[str, str]:
        """Return the target languages that are reached through a pivot language, each with this one."""
        pivots: dict[str, str] = {}
        for pairs in self.pivots:
            for target in pairs.targets:
                if pairs.find_pair(source, target) and not self.is_direct(source, target):
                    pivots.setdefault(target, pairs.pivot)
        return pivots

    def is_direct(self, source: str, target: str) -> bool:
        """Return whether a model was trained on a language pair, so that no pivot language is needed."""
        return any(pairs.is_trained_on(source, target) for pairs in self.models)

    def sources(self, target: str) -> list[str]:
        """Return the source languages of a target; the first is the default where the source is not known."""
        codes: dict[str, None] = {}
        for pairs in self:
            if pairs.find(pairs.targets, target):
                codes |= dict.fromkeys(pairs.sources)
        return list(codes)

    def candidates(self, target: str) -> list[str]:
        """Return the possible languages of a text that is translated to a target: its sources, and itself.

        Raises:
            ApiError: 400, there are none.
        """
        self.need_translators()
        sources = self.sources(target)
        if not sources:
            raise ApiError(400, f"{target[:20]} is not supported")
        return [*dict.fromkeys([*sources, target])]

    def usual_codes(self, source: str, target: str) -> tuple[str | None, str]:
        """Return our codes of two languages; no source if it is `auto` or empty, so that it has to be detected.

        Raises:
            ApiError: 400, no translator has one of the languages on its side.
        """
        self.need_translators()
        target_code = self.usual_code(target, lambda pairs: pairs.targets, f"{target[:20]} is not supported")
        if source.lower() in ("", "auto"):
            return None, target_code
        return self.usual_code(source, lambda pairs: pairs.sources, f"{source[:20]} is not supported"), target_code

    def usual_code(self, code: str, side: Callable[[Languages], Codes], refusal: str) -> str:
        """Return our code of a language that a translator has on a side, `sources` or `targets`.

        Raises:
            ApiError: 400, no translator has it there; `refusal` is the message.
        """
        for pairs in self:
            if usual_code := pairs.find(side(pairs), code):
                return usual_code
        raise ApiError(400, refusal)

    def find(self, source: str, target: str, name: str | None = None) -> AnyServed:
        """Return a translator of a language pair.

        Models that were trained on the pair come first, then those through a pivot language, then zero-shot ones.

        Raises:
            ApiError: 400, there is none.
        """
        self.need_translators()
        trained = [pairs for pairs in self.models if pairs.is_trained_on(source, target)]
        ranked: list[LanguagePairs | PivotPairs] = [*trained, *self.pivots, *self.models]
        for pairs in ranked:
            if name in (None, pairs.name) and (served := pairs.between(source, target)):
                return served
        for code in (source, target):
            if not any(pairs.has(code) for pairs in self):
                raise ApiError(400, f"{code[:20]} is not supported")
        if name is not None:
            raise ApiError(400, f"there is no model {name[:50]!r} for {source} to {target}")
        raise ApiError(400, f"{target} is not available as a target language from {source}")

    def addressing(self, served: AnyServed, formality: Formality | None) -> AnyServed:
        """Return a translator that addresses the reader so, the same one for all requests, so that they share batches.

        Raises:
            ApiError: 400, its model has not learned that.
        """
        if formality is None:
            return served
        if not served.translator.has_formality:
            raise ApiError(400, f"{served.name} has no choice of formality for {served.target}")
        key = served.translator, formality
        with self._lock:
            if key not in self._addressing:
                self._addressing[key] = served.translator.with_formality(formality)
            return replace(served, translator=self._addressing[key])

    def close(self) -> None:
        """Finish the requests in all queues, and stop."""
        for pairs in self.models:
            pairs.batcher.close()


def load(
    runs: Sequence[str],
    device: str,
    options: ServerOptions,
    engine: EngineName = "auto",
    terms: Sequence[Term] | Path = (),
) -> Catalog:
    """Load run folders; `en-es=FOLDER` names the languages of a run that was trained without naming them.

    For a multilingual model, `en-es=FOLDER` serves this pair only, and `en-*=FOLDER` all languages into which it
    translates English; the source is necessary if the model does not say which language it reads. Translations between
    the languages of the first translator apply `terms`, which may be a file.

    Raises:
        UserError: a folder is no run folder, a label does not name two languages, or the languages of a run are not
            known.
    """
    catalog = Catalog()
    names: set[str] = set()
    labeled = [_languages_and_folder(argument) for argument in runs]  # a wrong label is reported before any loading
    for languages, folder in labeled:
        name = _unused(folder.rstrip("/").rsplit("/", 1)[-1] or "model", names)
        names.add(name)
        run = RunFolder(resolve_run(folder))
        configuration = run.configuration()
        reads = configuration.model.reads
        if reads != "text" and languages[0]:
            raise UserError("does not go from one language to another", file=folder, fix=f"Write {folder} alone.")
        if reads != "text":
            require_pytorch(f"serving {folder}, which does not translate,")
            served = task_of(reads).served
            if served is None:
                configuration.refuse_other_input("text", run.path)
            else:
                model = resolved(served.model).load(run.path, device=device)
                catalog.others.setdefault(reads, []).append(NamedModel(name, model))
            continue
        # A translator: the weights are loaded once for all its language pairs.
        sources, targets = offer(configuration, *languages, folder)
        source, target = begin_with(sources, targets)
        translator = Translator.open(run, configuration.between(sources[source], targets[target]), device, engine)
        examples: list[str] = []
        if sources[source] in (None, configuration.data.languages[0]):  # the language of the examples
            examples = examples_of(run.path, configuration)
        batcher = Batcher(options.queue, options.batch)
        trained_pairs = usual_pairs(configuration, sources, targets)
        pairs = LanguagePairs(name, sources, targets, translator, batcher, examples, trained_pairs=trained_pairs)
        if not catalog.models or pairs.pair == catalog.models[0].pair:
            if isinstance(terms, Path):
                terms = read_terms(terms, translator.languages)
            pairs = replace(pairs, terms=terms)
        catalog.models.append(pairs)
    return catalog


def _unused(name: str, names: set[str]) -> str:
    """Return the name if no model has it yet, else the name with a number from 2 on."""
    unused, number = name, 1
    while unused in names:
        number += 1
        unused = f"{name} {number}"
    return unused


def _languages_and_folder(argument: str) -> tuple[Label, str]:
    """Return the languages and the folder of an argument such as `en-es=FOLDER` or `FOLDER`."""
    label, equals, folder = argument.partition("=")
    if not equals or Path(argument).exists():  # the path of a folder may contain `=`
        return (None, None), argument
    pair = _languages(label)
    if pair is not None and folder:
        return pair, folder
    aliases = get_global("language_aliases")  # such as eng for en
    suggestion = "-".join(aliases.get(part, part) for part in label.split("-"))
    example = suggestion if _languages(suggestion) else "en-es"
    what = "names no run folder" if pair else f"{label!r} does not name two languages"
    fix = f"Write {example}={folder or 'FOLDER'}, with the codes of the source and the target language."
    raise UserError(what, file=argument, fix=fix)


def _languages(label: str) -> tuple[str, str] | None:
    """Return the two languages in a label such as `en-es` or `pt-BR-zh-Hans`, if it names two."""
    parts = label.split("-")
    for i in range(1, len(parts)):  # a code may contain hyphens itself
        source, target = "-".join(parts[:i]), "-".join(parts[i:])
        if _is_code(source) and _is_code(target):
            return source, target
    return None


def _is_code(code: str) -> bool:
    return code == ANY or is_language(code)


def examples_of(run: Path, configuration: Configuration) -> list[str]:
    """Return examples in the source language; none if the run folder has none.

    They are those of `examples.txt`, or some of the validation pairs if these lie in the folder, as those of the demo
    do. Files elsewhere are never read, because the users of the page may have no right to read them.

    Args:
        run: the run folder.
        configuration: the configuration of the run.
    """
    try:
        if examples_file := _inside(run, EXAMPLES_FILE):
            return _fitting(read_lines(examples_file))[:MOST_EXAMPLES]
        examples = list(DEMO_TEXTS) if configuration.preset == "demo" else []
        files = filter(None, map(partial(_inside, run), configuration.data.valid))
        source_of = attrgetter("target" if configuration.data.reverse else "source")
        texts = map(source_of, islice(read_pairs(*files), PAIRS_READ))
        return [*examples, *_varied(texts)][:MOST_EXAMPLES]
    except UserError:  # a translator with damaged examples is served without them
        return []


def _inside(run: Path, name: str) -> Path | None:
    """Return the file in the run folder that a path of the configuration names, even if the folder was moved.

    The path may be absolute, or relative to another folder: its longest ending that exists in the run folder counts.
    There is no such file if it is a link to a file elsewhere.
    """
    parts = Path("run", name).parts
    if ".." in parts:
        return None
    for start in range(1, len(parts)):
        file = run.joinpath(*parts[start:])
        if file.is_file():
            is_inside = file.resolve().is_relative_to(run.resolve()) and file.stat().st_size <= LARGEST_FILE
            return file if is_inside else None
    return None


def _fitting(texts: Iterable[str]) -> list[str]:
    """Return the texts that are neither empty nor too long, without white space around them."""
    return [text for text in map(str.strip, texts) if 0 < len(text) <= LONGEST_EXAMPLE]


def _varied(texts: Iterable[str]) -> list[str]:
    """Return the first text with each of the numbers of words in `WORDS_OF_EXAMPLES`."""
    by_length: dict[int, str] = {}
    for text in _fitting(texts):
        by_length.setdefault(len(text.split()), text)
    return list(filter(None, map(by_length.get, WORDS_OF_EXAMPLES)))
