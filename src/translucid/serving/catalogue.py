"""The models that are served: translators by language pair, others by name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

from babel.core import get_global

from translucid.api.generator import Generator
from translucid.api.text_classifier import TextClassifier
from translucid.api.translator import Translator
from translucid.engines.choosing import EngineName
from translucid.ground.errors import UserError
from translucid.interop.run_resolution import resolve_run
from translucid.runs.run_folder import RunFolder
from translucid.serving.edge.failures import ApiError
from translucid.serving.language_pairs import ANY, LanguagePairs, Served, begin_with, is_language, offer
from translucid.serving.queue.batcher import Batcher
from translucid.serving.routes.examples import examples_of
from translucid.serving.server_options import ServerOptions
from translucid.terminology.term import Term

if TYPE_CHECKING:
    from translucid.api.captioner import Captioner


Model = TypeVar("Model")


@dataclass(frozen=True)
class Named(Generic[Model]):
    """One model that does not translate."""

    name: str
    """As shown on the page; no other model has it."""
    model: Model


class Catalogue:
    """All models; the first one of a language pair, or of those of another kind, answers unless another is named."""

    def __init__(
        self,
        models: Sequence[LanguagePairs],
        captioners: Sequence[Named[Captioner]] = (),
        classifiers: Sequence[Named[TextClassifier]] = (),
        generators: Sequence[Named[Generator]] = (),
    ) -> None:
        """At least one of all."""
        self.models, self.captioners = list(models), list(captioners)
        self.classifiers, self.generators = list(classifiers), list(generators)

    def __iter__(self) -> Iterator[LanguagePairs]:
        """The translators."""
        return iter(self.models)

    def need_translators(self) -> None:
        """Check that anything can be translated.

        Raises:
            ApiError: 400, there are only models that write about images.
        """
        if not self.models:
            ways = {"/caption": self.captioners, "/classify": self.classifiers, "/generate": self.generators}
            there = ", ".join(path for path, models in ways.items() if models)
            raise ApiError(400, f"No translator is served here, only other models ({there})")

    def captioner(self, name: str | None = None) -> Named[Captioner]:
        """Return a model that writes about images.

        Raises:
            ApiError: 400, there is none.
        """
        return _named(self.captioners, name, "writes about images")

    def classifier(self, name: str | None = None) -> Named[TextClassifier]:
        """Return a model that says what a text is; errors as of `captioner`."""
        return _named(self.classifiers, name, "says what a text is")

    def generator(self, name: str | None = None) -> Named[Generator]:
        """Return a language model; errors as of `captioner`."""
        return _named(self.generators, name, "goes on with a text")

    @property
    def languages(self) -> list[str]:
        """Every language that something can be translated from or to."""
        return sorted({code for offered in self.models for code in (*offered.sources, *offered.targets)})

    def targets(self, source: str) -> list[str]:
        """The languages that a language can be translated to; itself is one, as with LibreTranslate."""
        return sorted({source}.union(*(offered.targets for offered in self.models if source in offered.sources)))

    def sources(self, target: str) -> list[str]:
        """The languages that can be translated to a language, the first of which is meant where nothing is known."""
        offers = [offered for offered in self.models if offered.find(offered.targets, target)]
        return [*dict.fromkeys(source for offered in offers for source in offered.sources)]

    def candidates(self, target: str) -> list[str]:
        """Return the languages that a text to be translated to a language may be in: its sources, and itself.

        Raises:
            ApiError: 400, there are none.
        """
        self.need_translators()
        sources = self.sources(target)
        if not sources:
            raise ApiError(400, f"{target[:20]} is not supported")
        return [*dict.fromkeys([*sources, target])]

    def find(self, source: str, target: str, name: str | None = None) -> Served:
        """Return a model of a language pair.

        Raises:
            ApiError: 400, there is none.
        """
        self.need_translators()
        for offered in self.models:
            if name in (None, offered.name) and (served := offered.between(source, target)):
                return served
        for code in (source, target):
            if not any(offered.find(side, code) for offered in self.models for side in offered.sides):
                raise ApiError(400, f"{code[:20]} is not supported")
        if name is not None:
            raise ApiError(400, f"there is no model {name[:50]!r} for {source} to {target}")
        raise ApiError(400, f"{target} is not available as a target language from {source}")

    def close(self) -> None:
        """Finish what was taken, and stop."""
        for offered in self.models:
            offered.batcher.close()


def _named(models: Sequence[Named[Model]], name: str | None, does: str) -> Named[Model]:
    for served in models:
        if name in (None, served.name):
            return served
    if name is None or not models:
        raise ApiError(400, f"No model that {does} is served here")
    raise ApiError(400, f"there is no model {name[:50]!r} that {does}")


def load(
    runs: Sequence[str],
    device: str,
    options: ServerOptions,
    engine: EngineName = "auto",
    terms: Sequence[Term] = (),
) -> Catalogue:
    """Load run folders; `en-es=FOLDER` says the languages of one that was trained without naming them.

    Of a model of many languages, `en-es=FOLDER` offers this pair alone, `en-*=FOLDER` all that it translates English
    to; where it does not say which language it reads, that is needed. Translations between the languages of the first
    translator keep to `terms`.

    Raises:
        UserError: one is no run folder, a label is not two languages, or the languages of one are not known.
    """
    models: list[LanguagePairs] = []
    captioners: list[Named[Captioner]] = []
    classifiers: list[Named[TextClassifier]] = []
    generators: list[Named[Generator]] = []
    labelled = [_labelled(given) for given in runs]
    for (source, target), folder in labelled:
        taken = {served.name for kind in (models, captioners, classifiers, generators) for served in kind}
        name = folder.rstrip("/").rsplit("/", 1)[-1] or "model"
        unique = next(n for n in (name, *(f"{name} {i}" for i in range(2, len(runs) + 2))) if n not in taken)
        run = RunFolder(resolve_run(folder))
        configuration = run.configuration()
        reads = configuration.model.reads
        if reads != "text" and source:
            raise UserError("does not go from one language to another", file=folder, fix=f"Write {folder} alone.")
        if reads == "images":
            from translucid.api.captioner import Captioner  # needs Pillow

            captioners.append(Named(unique, Captioner.open(run, configuration, device)))
            continue
        if reads == "texts with labels":
            classifiers.append(Named(unique, TextClassifier.load(run.path, device=device)))
            continue
        if reads == "running text":
            generators.append(Named(unique, Generator.open(run, configuration, device)))
            continue
        sources, targets = offer(configuration, source, target, folder)
        first, second = begin_with(sources, targets)
        translator = Translator.open(run, configuration.between(sources[first], targets[second]), device, engine)
        batcher = Batcher(options.queue, options.batch)
        theirs = sources[first] in (None, configuration.data.languages[0])  # else they would be in another language
        examples = examples_of(run.path, configuration) if theirs else []
        offered = LanguagePairs(unique, sources, targets, translator, batcher, examples)
        if not models or offered.pair == models[0].pair:
            offered = replace(offered, terms=terms)
        models.append(offered)
    return Catalogue(models, captioners, classifiers, generators)


def _labelled(given: str) -> tuple[tuple[str | None, str | None], str]:
    """Return the languages that `en-es=FOLDER` names, and the folder.

    Raises:
        UserError: what stands before the folder is not two languages.
    """
    label, equals, folder = given.partition("=")
    if not equals or Path(given).exists():
        return (None, None), given
    pair = _languages(label)
    if pair is None or not folder:
        known = get_global("language_aliases")  # such as eng of en
        short = "-".join(known.get(part, part) for part in label.split("-"))
        example = short if _languages(short) else "en-es"
        fix = f"Write {example}={folder or 'FOLDER'}, with the codes of the source and the target language."
        what = f"{label!r} does not name two languages" if pair is None else "names no run folder"
        raise UserError(what, file=given, fix=fix)
    return pair, folder


def _languages(label: str) -> tuple[str, str] | None:
    """Return the two languages that a label such as `en-es` or `pt-BR-zh-Hans` names, if it does."""
    parts = label.split("-")
    ways = (("-".join(parts[:i]), "-".join(parts[i:])) for i in range(1, len(parts)))
    return next((way for way in ways if all(code == ANY or is_language(code) for code in way)), None)
