"""The models that are served: translators by language pair, others by name."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

from babel import Locale
from babel.core import get_global

from translucid.engines.choosing import EngineName
from translucid.generator import Generator
from translucid.ground.errors import UserError
from translucid.runs.run_folder import RunFolder
from translucid.serving.batcher import Batcher
from translucid.serving.failures import ApiError
from translucid.serving.server_options import ServerOptions
from translucid.text_classifier import TextClassifier
from translucid.translator import Translator

if TYPE_CHECKING:
    from translucid.captioner import Captioner


@dataclass(frozen=True)
class Served:
    """One translator with its queue."""

    name: str
    """As shown on the page; unique."""
    source: str
    """Language code."""
    target: str
    translator: Translator
    batcher: Batcher


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
        models: Sequence[Served],
        captioners: Sequence[Named[Captioner]] = (),
        classifiers: Sequence[Named[TextClassifier]] = (),
        generators: Sequence[Named[Generator]] = (),
    ) -> None:
        """At least one of all."""
        self.models, self.captioners = list(models), list(captioners)
        self.classifiers, self.generators = list(classifiers), list(generators)

    def __iter__(self) -> Iterator[Served]:
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
        """Return a model of language; errors as of `captioner`."""
        return _named(self.generators, name, "goes on with a text")

    @property
    def languages(self) -> list[str]:
        """Every language that something can be translated from or to."""
        return sorted({code for served in self.models for code in (served.source, served.target)})

    def targets(self, source: str) -> list[str]:
        """The languages that a language can be translated to; itself is one, as with LibreTranslate."""
        return sorted({source, *(served.target for served in self.models if served.source == source)})

    def find(self, source: str, target: str, name: str | None = None) -> Served:
        """Return a model of a language pair.

        Raises:
            ApiError: 400, there is none.
        """
        self.need_translators()
        for code in (source, target):
            if code not in self.languages:
                raise ApiError(400, f"{code[:20]} is not supported")
        for served in self.models:
            if (served.source, served.target) == (source, target) and name in (None, served.name):
                return served
        if name is not None:
            raise ApiError(400, f"there is no model {name[:50]!r} for {source} to {target}")
        raise ApiError(400, f"{target} is not available as a target language from {source}")

    def close(self) -> None:
        """Finish what was taken, and stop."""
        for served in self.models:
            served.batcher.close()


def _named(models: Sequence[Named[Model]], name: str | None, does: str) -> Named[Model]:
    for served in models:
        if name in (None, served.name):
            return served
    if name is None or not models:
        raise ApiError(400, f"No model that {does} is served here")
    raise ApiError(400, f"there is no model {name[:50]!r} that {does}")


def load(runs: Sequence[str], device: str, options: ServerOptions, engine: EngineName = "auto") -> Catalogue:
    """Load run folders; `en-es=FOLDER` says the languages of one that was trained without naming them.

    Raises:
        UserError: one is no run folder, a label is not two languages, or the languages of one are not known.
    """
    models: list[Served] = []
    captioners: list[Named[Captioner]] = []
    classifiers: list[Named[TextClassifier]] = []
    generators: list[Named[Generator]] = []
    labelled = [_labelled(given) for given in runs]
    for (source, target), folder in labelled:
        taken = {served.name for kind in (models, captioners, classifiers, generators) for served in kind}
        name = folder.rstrip("/").rsplit("/", 1)[-1] or "model"
        unique = next(n for n in (name, *(f"{name} {i}" for i in range(2, len(runs) + 2))) if n not in taken)
        run = RunFolder(Path(folder))
        configuration = run.configuration()
        reads = configuration.model.reads
        if reads != "text" and source:
            raise UserError("does not go from one language to another", file=folder, fix=f"Write {folder} alone.")
        if reads == "images":
            from translucid.captioner import Captioner  # needs Pillow

            captioners.append(Named(unique, Captioner.open(run, configuration, device)))
            continue
        if reads == "texts with labels":
            classifiers.append(Named(unique, TextClassifier.load(folder, device=device)))
            continue
        if reads == "running text":
            generators.append(Named(unique, Generator.open(run, configuration, device)))
            continue
        translator = Translator.open(run, configuration, device, engine)
        of_source, of_target = configuration.data.languages
        source, target = source or of_source, target or of_target
        if not source or not target:
            raise UserError(
                "does not say which languages it translates", file=folder, fix=f"Write en-es={folder} (with its codes)."
            )
        models.append(Served(unique, source, target, translator, Batcher(translator, options.queue, options.batch)))
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
    return next((way for way in ways if all(map(is_language, way))), None)


def is_language(code: str) -> bool:
    """Whether a code is one of a language, written as usual: `en`, `pt-BR`, `zh-Hans`."""
    form = re.fullmatch(r"([a-z]{2,3})(-[A-Z][a-z]{3})?(-[A-Z]{2}|-[0-9]{3})?", code)
    return form is not None and form[1] in Locale("en").languages
