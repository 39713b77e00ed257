"""The part of DeepL's API (version 2) that translates texts, lists languages and counts."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cachetools import LRUCache
from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse
from starlette.concurrency import run_in_threadpool

from translucid.documents.xml.xml_fragment import Elements, XmlFragment
from translucid.ground.cancellation import between_steps
from translucid.ground.errors import UserError
from translucid.serving import schemas
from translucid.serving.edge.failures import ApiError, no_request_to_blame
from translucid.serving.edge.incoming import text_field, texts_field
from translucid.serving.edge.rate_limits import REMEMBERED
from translucid.serving.language_pairs import Codes, LanguagePairs, Served
from translucid.serving.queue.batcher import in_chunks
from translucid.serving.queue.request_context import RequestContext
from translucid.serving.queue.request_task import RequestTask
from translucid.serving.routes.detection import detect_sources
from translucid.serving.routes.glossaries import Glossaries
from translucid.serving.routes.libretranslate import name_of
from translucid.serving.tagged import translate_html, translate_tagged
from translucid.serving.texts import translate_texts, with_terminology

UNLIMITED = 10**12
"""Characters that /v2/usage says may be translated: there is no limit."""
REGIONS = {"en": ("en-GB", "en-US"), "pt": ("pt-BR", "pt-PT")}
"""Regions that clients have to name, as DeepL wants it of a target; a model of the language takes any."""
REFUSED = ("glossary_ids", "style_id", "translation_memory_id", "custom_instructions")
"""What would change a translation and is not there: better refused than passed over."""
FORMALITIES = ("default", "prefer_more", "prefer_less")
"""Those that leave a translation as it is where formality can't be chosen."""
_SPACE = re.compile(r"\s+")
MODELS = ("latency_optimized", "quality_optimized", "prefer_quality_optimized")


@dataclass(frozen=True)
class DeepL:
    """The handlers; `routes` binds them to their paths."""

    context: RequestContext
    counted: LRUCache[str, int] = field(default_factory=lambda: LRUCache(REMEMBERED))
    """Characters by client, since the server began."""
    glossaries: Glossaries = field(default_factory=Glossaries)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def routes(self) -> APIRouter:
        """Return the routes."""
        routes = APIRouter(prefix="/v2", tags=["DeepL's API"], responses=schemas.DEEPL_ERRORS)
        routes.post("/translate", openapi_extra=schemas.DEEPL_TRANSLATE)(self.translate)
        routes.get("/languages", openapi_extra=schemas.DEEPL_LANGUAGES)(self.languages)
        routes.get("/usage")(self.usage)
        return routes

    async def fields(self, request: Request) -> tuple[dict[str, Any], RequestTask]:
        """Read a request, and let it in.

        Raises:
            ApiError: it can't be read; 403 without a key where one is needed, or with a wrong one.
        """
        self.need_key(request)
        return await self.context.fields(request)

    def need_key(self, request: Request) -> None:
        """Refuse a request without a key where one is needed.

        Raises:
            ApiError: 403.
        """
        if self.context.options.api_keys and not request.headers.get("authorization"):
            raise ApiError(403, "Authorization: DeepL-Auth-Key is missing")

    def count(self, client: str, characters: int) -> None:
        """Count what was translated for a client."""
        with self._lock:
            self.counted[client] = self.counted.get(client, 0) + characters

    async def translate(self, request: Request) -> JSONResponse:
        """Translate texts, with or without tags in them."""
        fields, task = await self.fields(request)
        texts, _ = texts_field(fields, self.context.options, "text")
        source, target = self.pair(fields)
        self.check(fields)
        split, tags = (
            one_of(fields, "split_sentences", "1", ("0", "1", "nonewlines")),
            text_field(fields, "tag_handling", ""),
        )
        kind = one_of(fields, "model_type", "", ("", *MODELS))
        sources = [(source or "", 0.0)] * len(texts)
        if source is None:
            sources = await run_in_threadpool(detect_sources, texts, self.context.catalogue.candidates(target))
        terms = self.terms(fields, task.client, source, target)
        done: dict[int, str] = {}
        for code in dict.fromkeys(code for code, _ in sources):
            ours = [i for i, (one, _) in enumerate(sources) if one == code]
            given = [texts[i] for i in ours]
            if code != target or code not in self.context.catalogue.languages:
                served = await run_in_threadpool(with_terminology, self.context.catalogue.find(code, target), terms)
                given = await self._translated(request, task, served, given, split, tags, fields)
            done.update(zip(ours, given, strict=True))
        self.count(task.client, sum(map(len, texts)))
        billed = flag(fields, "show_billed_characters", False)
        rows = []
        for i, (code, _) in enumerate(sources):
            row: dict[str, Any] = {"detected_source_language": code.upper(), "text": done[i]}
            if billed:
                row["billed_characters"] = len(texts[i])
            if kind:
                row["model_type_used"] = kind.removeprefix("prefer_")
            rows.append(row)
        return JSONResponse({"translations": rows})

    async def _translated(
        self,
        request: Request,
        task: RequestTask,
        served: Served,
        texts: Sequence[str],
        split: str,
        tags: str,
        fields: dict[str, Any],
    ) -> list[str]:
        if tags == "html":
            return await translate_html(self.context, task, request, served, texts)
        if tags == "xml":
            elements = Elements(
                names_field(fields, "ignore_tags"),
                names_field(fields, "splitting_tags"),
                names_field(fields, "non_splitting_tags"),
                flag(fields, "outline_detection", True),
            )
            return await translate_tagged(
                self.context, task, request, served, texts, lambda text: _fragment(text, elements)
            )
        if split == "0":
            work = self.context.worker_pool.submit(task, lambda: _whole(served, texts))
            return await task.result(request, work)
        if split == "nonewlines":
            texts = [_SPACE.sub(_without_newlines, text) for text in texts]
        return [one.versions[0] for one in await translate_texts(self.context, task, request, served, texts)]

    async def languages(self, request: Request) -> JSONResponse:
        """List languages to translate from, or (type=target) to."""
        fields, _ = await self.fields(request)
        if one_of(fields, "type", "source", ("source", "target")) == "source":
            codes = dict.fromkeys(code for one in self.context.catalogue for code in one.sources)
            return JSONResponse([{"language": code.upper(), "name": name_of(code)} for code in sorted(codes)])
        codes = dict.fromkeys(
            variant for one in self.context.catalogue for code in one.targets for variant in REGIONS.get(code, (code,))
        )
        rows = [
            {"language": code.upper(), "name": name_of(code), "supports_formality": False} for code in sorted(codes)
        ]
        return JSONResponse(rows)

    async def usage(self, request: Request) -> JSONResponse:
        """Return how many characters were translated for this client since the server began."""
        _, task = await self.fields(request)
        return JSONResponse({"character_count": self.counted.get(task.client, 0), "character_limit": UNLIMITED})

    def pair(self, fields: dict[str, Any]) -> tuple[str | None, str]:
        """Return the languages of a request by our codes; no source if it is to be found out.

        Raises:
            ApiError: 400, they can't be translated.
        """
        catalogue = self.context.catalogue
        catalogue.need_translators()
        target = self._code(text_field(fields, "target_lang", ""), lambda offered: offered.targets)
        if target is None:
            raise ApiError(400, "Value for 'target_lang' not supported.")
        given = text_field(fields, "source_lang", "")
        if not given:
            return None, target
        source = self._code(given, lambda offered: offered.sources)
        if source is None:
            raise ApiError(400, "Value for 'source_lang' not supported.")
        if source != target:
            catalogue.find(source, target)
        return source, target

    def terms(self, fields: dict[str, Any], client: str, source: str | None, target: str) -> Mapping[str, str]:
        """Return the entries of the glossary that a request names; none if it names none.

        Raises:
            ApiError: 404, there is none; 400, it is of other languages, or the source language is not said.
        """
        key = text_field(fields, "glossary_id", "")
        if not key:
            return {}
        glossary = self.glossaries.find(client, key)
        if source is None:
            raise ApiError(400, "Value for 'source_lang' is needed with 'glossary_id'.")
        dictionary = glossary.find(source, target)
        if dictionary is None:
            pairs = ", ".join(f"{one.source} to {one.target}" for one in glossary.dictionaries) or "no languages"
            raise ApiError(400, f"The glossary is for {pairs}.")
        return dictionary.entries

    def _code(self, given: str, side: Callable[[LanguagePairs], Codes]) -> str | None:
        found = (offered.find(side(offered), given) for offered in self.context.catalogue)
        return next((code for code in found if code), None) if given else None

    def check(self, fields: dict[str, Any]) -> None:
        """Refuse what is asked for and not there.

        Raises:
            ApiError: 400.
        """
        for name in REFUSED:
            if fields.get(name):
                raise ApiError(400, f"'{name}' is not supported by this server")
        formality = text_field(fields, "formality", "default")
        if formality in ("more", "less"):
            raise ApiError(400, "'formality' is not supported for given 'target_lang'.")
        if formality not in FORMALITIES:
            raise ApiError(400, "Value for 'formality' not supported.")
        if text_field(fields, "tag_handling", "") not in ("", "xml", "html"):
            raise ApiError(400, "Value for 'tag_handling' not supported.")
        flag(fields, "preserve_formatting", False)  # nothing is ever changed of it


def one_of(fields: dict[str, Any], name: str, default: str, values: Sequence[str]) -> str:
    """Return a field that has one of some values.

    Raises:
        ApiError: 400, it has another.
    """
    value = fields.get(name, default)
    value = str(int(value)) if isinstance(value, bool | int) else value
    if value not in values:
        raise ApiError(400, f"Value for '{name}' not supported.")
    return str(value)


def flag(fields: dict[str, Any], name: str, default: bool) -> bool:
    """Return a field that is yes or no: JSON's own, `0`, `1`, `true` or `false`.

    Raises:
        ApiError: 400, it is something else.
    """
    value = fields.get(name, default)
    known = {"0": False, "1": True, "false": False, "true": True}
    if str(value).lower() not in known:
        raise ApiError(400, f"Value for '{name}' not supported.")
    return known[str(value).lower()]


def names_field(fields: dict[str, Any], name: str) -> frozenset[str]:
    """Return names that come as a list or between commas.

    Raises:
        ApiError: 400, they are something else.
    """
    value = fields.get(name) or []
    values = value if isinstance(value, list) else [value]
    if not all(isinstance(one, str) for one in values):
        raise ApiError(400, f"Value for '{name}' not supported.")
    return frozenset(part.strip() for one in values for part in one.split(",") if part.strip())


def _fragment(text: str, elements: Elements) -> XmlFragment:
    try:
        return XmlFragment(text, elements)
    except UserError as error:
        raise ApiError(400, f"Tag handling parsing failed, please check input: {error}") from error


def _without_newlines(space: re.Match[str]) -> str:
    return " " if "\n" in space[0] else space[0]


def _whole(served: Served, texts: Sequence[str]) -> list[str]:
    """Translate each text as one sentence."""
    done: list[str] = []
    for part in in_chunks(texts, len):
        between_steps()
        with no_request_to_blame():
            done += [found.text for found in served.translator.stream(part, split=False)]
    return done
