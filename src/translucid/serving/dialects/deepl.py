"""DeepL's API: translation of texts and documents, languages, usage, and the glossaries of its versions 2 and 3."""

from __future__ import annotations

import hmac
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

from cachetools import LRUCache
from fastapi import Request
from fastapi.responses import JSONResponse, Response, StreamingResponse
from starlette.concurrency import run_in_threadpool

from bitext.cancellation import between_steps
from bitext.documents.xml.xml_fragment import Elements
from translucid.data.document_context import Source
from translucid.serving.catalog import AnyServed, Codes, Languages, name_of
from translucid.serving.detection import translate_from_any
from translucid.serving.documents.document_job import Job
from translucid.serving.documents.document_jobs import DocumentJobs
from translucid.serving.edge.failures import ApiError, GoneError
from translucid.serving.edge.rate_limits import MAX_CLIENTS
from translucid.serving.glossaries import (
    DICTIONARIES,
    TOO_LARGE,
    Dictionary,
    Glossaries,
    Glossary,
    check_size,
    read_entries,
)
from translucid.serving.queue import as_server_errors, in_chunks
from translucid.serving.requests import Handlers, RequestTask, are_texts, as_list, text_field, texts_field
from translucid.serving.texts import (
    term_warnings,
    translate_html,
    translate_texts,
    translate_xml,
    with_terminology,
)

UNLIMITED = 10**12
"""The character limit in the answer of /v2/usage, whose clients expect one: there is no limit."""
REGIONS = {"en": ("en-GB", "en-US"), "pt": ("pt-BR", "pt-PT")}
"""The regions that DeepL requires of a target language; a model of the language accepts all."""
REFUSED = ("glossary_ids", "style_id", "translation_memory_id", "custom_instructions")
"""Unsupported fields that would change a translation, so that ignoring them would be wrong."""
FORMALITIES = ("default", "prefer_more", "prefer_less")
"""The formalities that DeepL ignores for languages without a choice of formality."""
_SPACE = re.compile(r"\s+")
MODELS = ("latency_optimized", "quality_optimized", "prefer_quality_optimized")
"""The values of `model_type`."""
_STATES = {"waiting": "queued", "translating": "translating", "done": "done", "failed": "error", "cancelled": "error"}


@dataclass(frozen=True)
class DeepL(Handlers):
    """The handlers; `routing.py` binds them to their paths."""

    character_counts: LRUCache[str, int] = field(default_factory=lambda: LRUCache(MAX_CLIENTS))
    """The translated characters of each client since the start of the server."""
    glossaries: Glossaries = field(default_factory=Glossaries)

    async def fields(self, request: Request) -> tuple[dict[str, Any], RequestTask]:
        """Read the fields of a request, and check its key and rate limit.

        Raises:
            ApiError: the request is invalid; 403 without a key where one is required, or with a wrong one.
        """
        self.need_key(request)
        return await self.context.fields(request)

    def need_key(self, request: Request) -> None:
        """Check that a request has a key, if keys are required.

        Raises:
            ApiError: 403, the key is missing; other APIs answer 401, and LibreTranslate's 400.
        """
        if self.context.options.api_keys and not request.headers.get("authorization"):
            raise ApiError(403, "Authorization: DeepL-Auth-Key is missing")

    async def translate(self, request: Request) -> JSONResponse:
        """Translate texts, with or without tags."""
        fields, task = await self.fields(request)
        texts, _ = texts_field(fields, self.context.options, "text")
        source, target = self.pair(fields)
        self.check(fields)
        split = one_of(fields, "split_sentences", "1", ("0", "1", "nonewlines"))
        model_type = one_of(fields, "model_type", "", ("", *MODELS))
        terms = self.terms(fields, task.client, source, target)
        context, warnings = text_field(fields, "context", ""), set[str]()

        async def translate(served: AnyServed, batch: list[str]) -> list[str]:
            served = await run_in_threadpool(with_terminology, served, terms)
            if context and not served.translator.context:
                warnings.add(f"context was not read: the run {served.name} was trained without data.context")
            translations = await self.translated(task, served, batch, split, fields)
            if terms:  # an exact match of the server's translation memory comes before the glossary
                warnings.update(await task.run(lambda: term_warnings(served, batch, translations)))
            return translations

        catalog = self.context.catalog
        codes, translations = await translate_from_any(catalog, texts, source, target, translate, str)
        self.character_counts[task.client] = self.character_counts.get(task.client, 0) + sum(map(len, texts))
        billed = flag(fields, "show_billed_characters", False)
        rows = []
        for text, code, translation in zip(texts, codes, translations, strict=True):
            row: dict[str, Any] = {"detected_source_language": code.upper(), "text": translation}
            if billed:
                row["billed_characters"] = len(text)
            if model_type:
                row["model_type_used"] = model_type.removeprefix("prefer_")
            rows.append(row)
        answer: dict[str, Any] = {"translations": rows}
        if warnings:
            answer["warning"] = "; ".join(sorted(warnings))
        return JSONResponse(answer)

    async def translated(
        self, task: RequestTask, served: AnyServed, texts: Sequence[str], split: str, fields: dict[str, Any]
    ) -> list[str]:
        """Translate texts of one language, as `tag_handling` and `split_sentences` say."""
        tag_handling, context = text_field(fields, "tag_handling", ""), text_field(fields, "context", "")
        if tag_handling == "html":
            results = await translate_html(task, served, texts, context)
            return [result.versions[0] for result in results]
        if tag_handling == "xml":
            elements = Elements(
                names_field(fields, "ignore_tags"),
                names_field(fields, "splitting_tags"),
                names_field(fields, "non_splitting_tags"),
                flag(fields, "outline_detection", True),
            )
            results = await translate_xml(task, served, texts, elements, context)
            return [result.versions[0] for result in results]
        if split == "0":
            task.count(served, texts)
            return await task.run(lambda: _translate_unsplit(served, texts, context))
        if split == "nonewlines":
            texts = [_SPACE.sub(_without_newlines, text) for text in texts]
        results = await translate_texts(task, served, texts, context=context)
        return [result.versions[0] for result in results]

    async def languages(self, request: Request) -> JSONResponse:
        """List source or (type=target) target languages."""
        fields, _ = await self.fields(request)
        target = one_of(fields, "type", "source", ("source", "target")) == "target"
        codes: set[str] = set()
        for pairs in self.context.catalog:
            if not target:
                codes.update(pairs.sources)
                continue
            for code in pairs.targets:
                codes.update(REGIONS.get(code, (code,)))
        rows = []
        for code in sorted(codes):
            row: dict[str, Any] = {"language": code.upper(), "name": name_of(code)}
            if target:
                row["supports_formality"] = False
            rows.append(row)
        return JSONResponse(rows)

    async def usage(self, request: Request) -> JSONResponse:
        """Return the number of characters that were translated for this client since the start of the server."""
        _, task = await self.fields(request)
        return JSONResponse(
            {"character_count": self.character_counts.get(task.client, 0), "character_limit": UNLIMITED}
        )

    def pair(self, fields: dict[str, Any]) -> tuple[str | None, str]:
        """Return the languages of a request by our codes; no source if it is to be detected.

        Raises:
            ApiError: 400, there is no translator for them.
        """
        catalog = self.context.catalog
        catalog.need_translators()
        target = self._code(fields, "target_lang", lambda pairs: pairs.targets)
        if not text_field(fields, "source_lang", ""):
            return None, target
        source = self._code(fields, "source_lang", lambda pairs: pairs.sources)
        if source != target:
            catalog.find(source, target)
        return source, target

    def terms(self, fields: dict[str, Any], client: str, source: str | None, target: str) -> Mapping[str, str]:
        """Return the entries of the glossary that a request names; none if it names no glossary.

        Raises:
            ApiError: 404, there is no such glossary; 400, it is for other languages, or the source is not named.
        """
        key = text_field(fields, "glossary_id", "")
        if not key:
            return {}
        glossary = self.glossaries.find(client, key)
        if source is None:
            raise ApiError(400, "Value for 'source_lang' is needed with 'glossary_id'.")
        dictionary = glossary.find(source, target)
        if dictionary is None:
            pairs = ", ".join(f"{dictionary.source} to {dictionary.target}" for dictionary in glossary.dictionaries)
            raise ApiError(400, f"The glossary is for {pairs or 'no languages'}.")
        return dictionary.entries

    def _code(self, fields: dict[str, Any], name: str, side: Callable[[Languages], Codes]) -> str:
        """Return our code of the language in a field.

        Raises:
            ApiError: 400, no translator has the language on this side.
        """
        requested = text_field(fields, name, "")
        for pairs in self.context.catalog:
            if code := pairs.find(side(pairs), requested):
                return code
        raise ApiError(400, f"Value for '{name}' not supported.")

    def check(self, fields: dict[str, Any]) -> None:
        """Refuse requests for features that this server does not have.

        Raises:
            ApiError: 400, a field is not supported.
        """
        for name in REFUSED:
            if fields.get(name):
                raise ApiError(400, f"'{name}' is not supported by this server")
        formality = text_field(fields, "formality", "default")
        if formality in ("more", "less"):  # DeepL's answer for languages without a choice of formality
            raise ApiError(400, "'formality' is not supported for given 'target_lang'.")
        if formality not in FORMALITIES:
            raise ApiError(400, "Value for 'formality' not supported.")
        if text_field(fields, "tag_handling", "") not in ("", "xml", "html"):
            raise ApiError(400, "Value for 'tag_handling' not supported.")
        flag(fields, "preserve_formatting", False)  # it may be true or false: formatting is always preserved


@dataclass(frozen=True)
class DeepLDocuments:
    """The handlers; `routing.py` binds them to their paths."""

    deepl: DeepL
    jobs: DocumentJobs

    async def upload(self, request: Request) -> JSONResponse:
        """Accept a document for translation in the background."""
        self.deepl.need_key(request)
        fields, file, client = await self.deepl.context.upload(request, "Invalid file data.")
        source, target = self.deepl.pair(fields)
        self.deepl.check(fields)
        name = text_field(fields, "filename", "") or file.filename or ""
        output_format = text_field(fields, "output_format", "").lower()
        if output_format and not name.lower().endswith(f".{output_format}"):
            raise ApiError(400, "Value for 'output_format' not supported.")
        terms = self.deepl.terms(fields, client, source, target)
        job = await run_in_threadpool(self.jobs.submit, client, name, file.file, source, target, None, terms)
        return JSONResponse({"document_id": job.id, "document_key": job.key})

    async def status(self, request: Request, document_id: str) -> JSONResponse:
        """Return the progress of a document."""
        job = await self._job(request, document_id)
        answer: dict[str, Any] = {"document_id": job.id, "status": _STATES[job.state]}
        if job.state == "translating":
            answer["seconds_remaining"] = math.ceil(job.seconds_left or 1)
        elif job.state == "done":
            answer |= {"seconds_remaining": 0, "billed_characters": job.characters}
        elif job.error:
            answer |= {"error_message": job.error, "message": job.error}
        return JSONResponse(answer)

    async def result(self, request: Request, document_id: str) -> StreamingResponse:
        """Return the translated document, any number of times until it is deleted."""
        return await self.jobs.answer(request, await self._job(request, document_id))

    async def _job(self, request: Request, document_id: str) -> Job:
        """Return a document if the request has its key, which is a second secret besides the id."""
        fields, _ = await self.deepl.fields(request)
        job = self.jobs.find(document_id)
        # In constant time, and with the same error as for a document that does not exist.
        if not hmac.compare_digest(text_field(fields, "document_key").encode(), job.key.encode()):
            raise GoneError
        return job


def one_of(fields: dict[str, Any], name: str, default: str, values: Sequence[str]) -> str:
    """Return a field that has one of these values; in JSON, `0` and `1` may also be numbers or booleans.

    Raises:
        ApiError: 400, the field has another value.
    """
    value = fields.get(name, default)
    if isinstance(value, bool | int):
        value = str(int(value))
    if value not in values:
        raise ApiError(400, f"Value for '{name}' not supported.")
    return str(value)


def flag(fields: dict[str, Any], name: str, default: bool) -> bool:
    """Return a boolean field: JSON's own, `0`, `1`, `true` or `false`.

    Raises:
        ApiError: 400, the field has another value.
    """
    value = str(fields.get(name, default)).lower()
    values = {"0": False, "1": True, "false": False, "true": True}
    if value not in values:
        raise ApiError(400, f"Value for '{name}' not supported.")
    return values[value]


def names_field(fields: dict[str, Any], name: str) -> frozenset[str]:
    """Return the names in a field, which is a list or separated by commas.

    Raises:
        ApiError: 400, the field is neither a text nor a list of texts.
    """
    texts = as_list(fields.get(name) or [])
    if not are_texts(texts):
        raise ApiError(400, f"Value for '{name}' not supported.")
    return frozenset(filter(None, map(str.strip, ",".join(texts).split(","))))


def _without_newlines(space: re.Match[str]) -> str:
    """Return a space in place of white space with a line break, other white space as it is."""
    return " " if "\n" in space[0] else space[0]


def _translate_unsplit(served: AnyServed, texts: Sequence[str], context: str) -> list[str]:
    """Translate each text as one sentence, after the context if the run has document context."""
    results: list[str] = []
    for chunk in in_chunks(texts, len):
        between_steps()
        before = (context,) if context and served.translator.context else ()
        with as_server_errors():
            translations = served.translator.stream([Source(text, before) for text in chunk], split=False)
            results += [translation.text for translation in translations]
    return results


TSV = "text/tab-separated-values"
NAME = 200
"""The maximum number of characters in a glossary's name."""


@dataclass(frozen=True)
class _AllGlossaries:
    """The handlers of both versions."""

    deepl: DeepL

    async def delete(self, request: Request, glossary_id: str) -> Response:
        """Delete a glossary."""
        _, task = await self.deepl.fields(request)
        self.deepl.glossaries.delete(task.client, glossary_id)
        return Response(status_code=204)


class DeepLGlossaries(_AllGlossaries):
    """The handlers of version 2; `routing.py` binds them to their paths."""

    async def pairs(self, request: Request) -> JSONResponse:
        """List the language pairs for glossaries."""
        await self.deepl.fields(request)
        pairs: set[tuple[str, str]] = set()
        for served in self.deepl.context.catalog.models:
            for source, target in product(served.sources, served.targets):
                if source != target:
                    pairs.add((source.lower(), target.lower()))
        rows = [{"source_lang": source, "target_lang": target} for source, target in sorted(pairs)]
        return JSONResponse({"supported_languages": rows})

    async def create(self, request: Request) -> JSONResponse:
        """Create a glossary."""
        fields, task = await self.deepl.fields(request)
        glossary = Glossary(task.client, _name_field(fields), (_dictionary_of(self.deepl, fields),))
        self.deepl.glossaries.add(glossary)
        return JSONResponse(glossary.monolingual_information, 201)

    async def list_all(self, request: Request) -> JSONResponse:
        """List the glossaries of this client."""
        _, task = await self.deepl.fields(request)
        rows = []
        for glossary in self.deepl.glossaries.of(task.client):
            if len(glossary.dictionaries) == 1:  # this version of the API can't describe others
                rows.append(glossary.monolingual_information)
        return JSONResponse({"glossaries": rows})

    async def describe(self, request: Request, glossary_id: str) -> JSONResponse:
        """Describe a glossary."""
        return JSONResponse((await self._find(request, glossary_id)).monolingual_information)

    async def entries(self, request: Request, glossary_id: str) -> Response:
        """Return the entries of a glossary, a term and its translation a line."""
        glossary = await self._find(request, glossary_id)
        return Response(glossary.dictionaries[0].tsv, media_type=TSV)

    async def _find(self, request: Request, glossary_id: str) -> Glossary:
        _, task = await self.deepl.fields(request)
        glossary = self.deepl.glossaries.find(task.client, glossary_id)
        if len(glossary.dictionaries) != 1:
            raise ApiError(400, "The glossary is of several pairs of languages; ask for it under /v3/glossaries.")
        return glossary


class DeepLMultilingualGlossaries(_AllGlossaries):
    """The handlers of version 3, whose glossaries can be edited; `routing.py` binds them to their paths."""

    async def create(self, request: Request) -> JSONResponse:
        """Create a glossary of one dictionary or several."""
        fields, task = await self.deepl.fields(request)
        name, dictionaries = _name_field(fields), self._dictionaries(fields)
        if not dictionaries:
            raise ApiError(400, "Invalid request: missing dictionaries parameter")
        glossary = Glossary(task.client, name, ())
        for dictionary in dictionaries:
            if glossary.find(dictionary.source, dictionary.target):
                raise ApiError(400, "Invalid request: two of the dictionaries are for the same languages")
            glossary = glossary.with_dictionary(dictionary)
        check_size(glossary)
        self.deepl.glossaries.add(glossary)
        return JSONResponse(glossary.information, 201)

    async def list_all(self, request: Request) -> JSONResponse:
        """List the glossaries of this client."""
        _, task = await self.deepl.fields(request)
        glossaries = self.deepl.glossaries.of(task.client)
        return JSONResponse({"glossaries": [glossary.information for glossary in glossaries]})

    async def describe(self, request: Request, glossary_id: str) -> JSONResponse:
        """Describe a glossary."""
        _, task = await self.deepl.fields(request)
        return JSONResponse(self.deepl.glossaries.find(task.client, glossary_id).information)

    async def edit(self, request: Request, glossary_id: str) -> JSONResponse:
        """Rename a glossary, or add entries to its dictionaries."""
        fields, task = await self.deepl.fields(request)
        name = None
        if fields.get("name") is not None:
            name = _name_field(fields)
        dictionaries = self._dictionaries(fields)

        def edited(glossary: Glossary) -> Glossary:
            for dictionary in dictionaries:
                if existing := glossary.find(dictionary.source, dictionary.target):
                    dictionary = replace(dictionary, entries={**existing.entries, **dictionary.entries})
                glossary = glossary.with_dictionary(dictionary)
            if name:
                glossary = replace(glossary, name=name)
            return glossary

        return JSONResponse(self.deepl.glossaries.change(task.client, glossary_id, edited).information)

    async def entries(self, request: Request, glossary_id: str) -> JSONResponse:
        """Return the entries for two languages."""
        fields, task = await self.deepl.fields(request)
        dictionary = _dictionary(self.deepl.glossaries.find(task.client, glossary_id), fields)
        row = dictionary.information
        del row["entry_count"]
        return JSONResponse({"dictionaries": [{**row, "entries": dictionary.tsv, "entries_format": "tsv"}]})

    async def replace(self, request: Request, glossary_id: str) -> JSONResponse:
        """Add a dictionary, or replace the one for the same languages."""
        fields, task = await self.deepl.fields(request)
        dictionary = _dictionary_of(self.deepl, fields)
        self.deepl.glossaries.change(task.client, glossary_id, lambda glossary: glossary.with_dictionary(dictionary))
        return JSONResponse(dictionary.information)

    async def delete_dictionary(self, request: Request, glossary_id: str) -> Response:
        """Delete the dictionary for two languages."""
        fields, task = await self.deepl.fields(request)

        def shortened(glossary: Glossary) -> Glossary:
            dictionary = _dictionary(glossary, fields)
            return glossary.without_dictionary(dictionary.source, dictionary.target)

        self.deepl.glossaries.change(task.client, glossary_id, shortened)
        return Response(status_code=204)

    def _dictionaries(self, fields: dict[str, Any]) -> list[Dictionary]:
        """Return the dictionaries in the fields of a request.

        Raises:
            ApiError: 400, a field is missing or invalid, or there are too many dictionaries.
        """
        records = fields.get("dictionaries") or []
        if not isinstance(records, list) or not all(isinstance(record, dict) for record in records):
            raise ApiError(400, "Invalid request: dictionaries is not a list of objects")
        if len(records) > DICTIONARIES:  # comparing the languages of each with all others takes time
            raise ApiError(400, TOO_LARGE)
        return [_dictionary_of(self.deepl, record) for record in records]


def _name_field(fields: dict[str, Any]) -> str:
    """Return the name of a glossary in a request.

    Raises:
        ApiError: 400, the name is missing or too long.
    """
    name = text_field(fields, "name")
    if not name or len(name) > NAME:
        raise ApiError(400, f"Invalid request: name has between 1 and {NAME} characters")
    return name


def _dictionary_of(deepl: DeepL, fields: dict[str, Any]) -> Dictionary:
    """Return the dictionary in the fields of a request.

    Raises:
        ApiError: 400, a field is missing or invalid.
    """
    source, target = deepl.pair({**fields, "source_lang": text_field(fields, "source_lang")})
    if source and not deepl.context.catalog.is_direct(source, target):
        raise ApiError(400, f"No model translates {source} to {target} directly, as a glossary requires.")
    entries = read_entries(text_field(fields, "entries"), text_field(fields, "entries_format"))
    return Dictionary(source or "", target, entries)


def _dictionary(glossary: Glossary, fields: dict[str, Any]) -> Dictionary:
    """Return the dictionary for the languages in the fields of a request.

    Raises:
        ApiError: 400, the languages are missing; 404, there is no such dictionary.
    """
    dictionary = glossary.find(text_field(fields, "source_lang"), text_field(fields, "target_lang"))
    if dictionary is None:
        raise ApiError(404, "The glossary has no dictionary for these languages")
    return dictionary
