"""The served models: translators by language pair, with example sentences; other models by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import chain, islice
from operator import attrgetter
from pathlib import Path
from typing import Any, Generic, TypeVar

from babel.core import get_global

from translucid.api.translator import Translator
from translucid.corpora.phrasebook import ENGLISH_BOOK
from translucid.data.readers.corpus import read_lines, read_pairs
from translucid.engines.choosing import EngineName
from translucid.ground.errors import UserError
from translucid.interop.run_resolution import resolve_run
from translucid.kernels.machine import require_pytorch
from translucid.models.kinds import Served, all_tasks, resolved, task_of
from translucid.runs.configuration import Configuration
from translucid.runs.run_folder import RunFolder
from translucid.serving.edge.failures import ApiError
from translucid.serving.language_pairs import (
    ANY,
    AnyServed,
    Codes,
    LanguagePairs,
    Languages,
    PivotPairs,
    begin_with,
    is_language,
    offer,
    pivot_pairs,
    usual_pairs,
)
from translucid.serving.queue.batcher import Batcher
from translucid.serving.server_options import ServerOptions
from translucid.terminology.glossary import Term

Model = TypeVar("Model")
Label = tuple[str | None, str | None]
"""The source and target language before a run folder on the command line, if any."""


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

    def served_others(self) -> Iterator[tuple[Served, list[NamedModel[Any]]]]:
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
        return _find_named(self.others.get(reads, []), name, served.does)

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
        target_code = self._usual_code(target, lambda pairs: pairs.targets)
        if source.lower() in ("", "auto"):
            return None, target_code
        return self._usual_code(source, lambda pairs: pairs.sources), target_code

    def _usual_code(self, code: str, side: Callable[[Languages], Codes]) -> str:
        for pairs in self:
            if usual_code := pairs.find(side(pairs), code):
                return usual_code
        raise ApiError(400, f"{code[:20]} is not supported")

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

    def close(self) -> None:
        """Finish the requests in all queues, and stop."""
        for pairs in self.models:
            pairs.batcher.close()


def _find_named(models: Sequence[NamedModel[Model]], name: str | None, does: str) -> NamedModel[Model]:
    """Return the model of a name, the first if none is given; `does` describes the models in messages."""
    for served in models:
        if name in (None, served.name):
            return served
    if name is None or not models:
        raise ApiError(400, f"No model that {does} is served here")
    raise ApiError(400, f"there is no model {name[:50]!r} that {does}")


def load(
    runs: Sequence[str], device: str, options: ServerOptions, engine: EngineName = "auto", terms: Sequence[Term] = ()
) -> Catalog:
    """Load run folders; `en-es=FOLDER` names the languages of a run that was trained without naming them.

    For a multilingual model, `en-es=FOLDER` serves this pair only, and `en-*=FOLDER` all languages into which it
    translates English; the source is necessary if the model does not say which language it reads. Translations between
    the languages of the first translator apply `terms`.

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
    """Return the languages and the folder of an argument such as `en-es=FOLDER` or `FOLDER`.

    Raises:
        UserError: the text before the folder does not name two languages.
    """
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
        examples = list(ENGLISH_BOOK) if configuration.preset == "demo" else []
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
