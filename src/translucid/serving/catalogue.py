"""The models that are served, by language pair."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from babel import Locale
from babel.core import get_global

from translucid.engines.choosing import EngineName
from translucid.ground.errors import UserError
from translucid.serving.batcher import Batcher
from translucid.serving.failures import ApiError
from translucid.serving.server_options import ServerOptions
from translucid.translator import Translator


@dataclass(frozen=True)
class Served:
    """One model with its queue."""

    name: str
    """As shown on the page; unique."""
    source: str
    """Language code."""
    target: str
    translator: Translator
    batcher: Batcher


class Catalogue:
    """All models; the first one of a language pair answers unless another is named."""

    def __init__(self, models: Sequence[Served]) -> None:
        """At least one."""
        self.models = list(models)

    def __iter__(self) -> Iterator[Served]:
        return iter(self.models)

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


def load(runs: Sequence[str], device: str, options: ServerOptions, engine: EngineName = "auto") -> Catalogue:
    """Load run folders; `en-es=FOLDER` says the languages of one that was trained without naming them.

    Raises:
        UserError: one is no run folder, a label is not two languages, or the languages of one are not known.
    """
    models: list[Served] = []
    labelled = [_labelled(given) for given in runs]
    for (source, target), folder in labelled:
        translator = Translator.load(folder, device, engine)
        data = translator.configuration.data
        source, target = source or data.source_language, target or data.target_language
        if not source or not target:
            raise UserError(
                "does not say which languages it translates", file=folder, fix=f"Write en-es={folder} (with its codes)."
            )
        name = folder.rstrip("/").rsplit("/", 1)[-1] or "model"
        taken = {served.name for served in models}
        unique = next(n for n in (name, *(f"{name} {i}" for i in range(2, len(runs) + 2))) if n not in taken)
        models.append(Served(unique, source, target, translator, Batcher(translator, options.queue, options.batch)))
    return Catalogue(models)


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
