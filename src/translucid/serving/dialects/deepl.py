"""DeepL's API: translation of texts and documents, languages, usage, and the glossaries of its versions 2 and 3."""

from __future__ import annotations

import hmac
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product
from typing import Annotated, Any, ClassVar, Literal

from cachetools import LRUCache
from fastapi import Request
from fastapi.responses import JSONResponse, Response, StreamingResponse
from pydantic import AfterValidator, BeforeValidator, Field, PlainValidator, ValidationInfo, model_validator
from starlette.concurrency import run_in_threadpool

from bitext.documents.document import RetrievedWord
from bitext.documents.xml.xml_fragment import Elements
from translucid.data.document_context import Source
from translucid.ground.special import Formality
from translucid.serving.catalog import AnyServed, name_of
from translucid.serving.dialects.deepl_glossaries import (
    DICTIONARIES,
    TOO_LARGE,
    Dictionary,
    Glossaries,
    Glossary,
    check_size,
    read_entries,
)
from translucid.serving.documents import DocumentJobs, Job
from translucid.serving.edge.failures import ApiError, GoneError
from translucid.serving.edge.rate_limits import MAX_CLIENTS
from translucid.serving.queue import translate
from translucid.serving.requests import (
    Call,
    Choice,
    Fields,
    Handlers,
    RequestContext,
    RequestTask,
    Texts,
    UploadFields,
    are_texts,
    as_list,
    refused,
)
from translucid.serving.texts import (
    TextTranslation,
    request_warnings,
    retrieved_words_of,
    translate_from_any,
    translate_tagged,
    translate_texts,
    with_terminology,
)

UNSUPPORTED = "Value for '{}' not supported."
"""DeepL's message about a field with a wrong value."""
UNLIMITED = 10**12
"""The character limit in the answer of /v2/usage, whose clients expect one: there is no limit."""
REGIONS = {"en": ("en-GB", "en-US"), "pt": ("pt-BR", "pt-PT")}
"""The regions that DeepL requires of a target language; a model of the language accepts all."""
REFUSED = ("glossary_ids", "style_id", "translation_memory_id", "custom_instructions")
"""Unsupported fields that would change a translation, so that ignoring them would be wrong."""
ADDRESSES: dict[str, Formality] = {"more": "formal", "less": "informal"}
"""DeepL's values of `formality` that require a form of address; they may have the prefix `prefer_`."""
XML_FIELDS = ("ignore_tags", "splitting_tags", "non_splitting_tags", "outline_detection")
"""The fields that are read for XML only."""
_SPACE = re.compile(r"\s+")
_STATES = {"waiting": "queued", "translating": "translating", "done": "done", "failed": "error", "cancelled": "error"}


def _as_text(value: Any) -> Any:
    """Return the text of a number or a boolean: in JSON, `0` and `1` may be both."""
    return str(int(value)) if isinstance(value, bool | int) else value


def _flag(value: Any, info: ValidationInfo) -> bool:
    values = {"0": False, "1": True, "false": False, "true": True}
    text = str(value).lower()
    if text not in values:
        raise refused(UNSUPPORTED.format(info.field_name))
    return values[text]


def _names(value: Any, info: ValidationInfo) -> frozenset[str]:
    """Return the names in a field, which is a list or separated by commas."""
    texts = as_list(value or [])
    if not are_texts(texts):
        raise refused(UNSUPPORTED.format(info.field_name))
    return frozenset(filter(None, map(str.strip, ",".join(texts).split(","))))


DeepLFlag = Annotated[bool, PlainValidator(_flag, json_schema_input_type=bool)]
"""A boolean: JSON's own, `0`, `1`, `true` or `false`."""
Names = Annotated[frozenset[str], PlainValidator(_names, json_schema_input_type=list[str])]
"""Names of elements."""


class DeepLFields(Fields):
    """A request with a key."""

    @classmethod
    def admit(cls, request: Request, context: RequestContext) -> None:
        """Check that a request has a key, if keys are required.

        Raises:
            ApiError: 403, the key is missing; other APIs answer 401, and LibreTranslate's 400.
        """
        if context.options.api_keys and not request.headers.get("authorization"):
            raise ApiError(403, "Authorization: DeepL-Auth-Key is missing")


class PairFields(DeepLFields):
    """The languages of a request."""

    messages: ClassVar = {"target_lang": UNSUPPORTED.format("target_lang")}

    target_lang: str = Field(description="a language code, such as ES or EN-GB")
    source_lang: str = Field("", description="a language code; detected if not given")


class _TranslationFields(PairFields):
    """How to translate."""

    messages: ClassVar = {
        name: UNSUPPORTED.format(name)
        for name in ("target_lang", "formality", "tag_handling", "split_sentences", "model_type")
    }
    with_null: ClassVar = (
        "split_sentences",
        "model_type",
        "preserve_formatting",
        "show_billed_characters",
        *XML_FIELDS,
    )

    formality: Annotated[Literal["default", "more", "less", "prefer_more", "prefer_less"], Choice] = Field(
        "default", description="more and less are errors without a choice of formality, which the others ignore"
    )
    tag_handling: Annotated[Literal["", "html", "xml"], Choice] = ""
    preserve_formatting: DeepLFlag = Field(False, description="formatting is always preserved")
    glossary_id: str = ""

    @property
    def address(self) -> Formality | None:
        """The form of address that is required or preferred, if any."""
        return ADDRESSES.get(self.formality.removeprefix("prefer_"))

    @model_validator(mode="before")
    @classmethod
    def _refuse(cls, values: dict[str, Any]) -> dict[str, Any]:
        for name in REFUSED:
            if values.get(name):
                raise refused(f"'{name}' is not supported by this server")
        return values


class _TextFields(DeepLFields):
    text: Texts


class TranslateFields(_TranslationFields, _TextFields):
    """Texts to translate, with or without tags."""

    example: ClassVar = {"text": ["I like soccer"], "target_lang": "ES"}

    split_sentences: Annotated[Literal["0", "1", "nonewlines"], BeforeValidator(_as_text)] = "1"
    model_type: Annotated[
        Literal["", "latency_optimized", "quality_optimized", "prefer_quality_optimized"], BeforeValidator(_as_text)
    ] = ""
    context: str = Field("", description="the text before, for runs with document context")
    ignore_tags: Names = Field(frozenset(), description="elements that are not translated")
    splitting_tags: Names = Field(frozenset(), description="elements that separate sentences")
    non_splitting_tags: Names = Field(frozenset(), description="elements that do not separate sentences")
    outline_detection: DeepLFlag = Field(
        True, description="whether the position of text decides which elements separate sentences"
    )
    show_billed_characters: DeepLFlag = False
    show_retrieved: DeepLFlag = Field(
        False, description="also list the words that entries of the memory decided, as /translate does"
    )

    @property
    def elements(self) -> Elements | None:
        """The roles of the elements of XML; None for other texts."""
        if self.tag_handling != "xml":
            return None
        return Elements(self.ignore_tags, self.splitting_tags, self.non_splitting_tags, self.outline_detection)

    @model_validator(mode="before")
    @classmethod
    def _for_xml(cls, values: dict[str, Any]) -> dict[str, Any]:
        if values.get("tag_handling") == "xml":
            return values
        return {name: value for name, value in values.items() if name not in XML_FIELDS}


class LanguagesFields(DeepLFields):
    """The languages to list."""

    messages: ClassVar = {"type": UNSUPPORTED.format("type")}

    type: Annotated[Literal["source", "target"], BeforeValidator(_as_text)] = "source"


class UploadDocumentFields(_TranslationFields, UploadFields):
    """A document to translate."""

    messages: ClassVar = {**_TranslationFields.messages, "file": "Invalid file data."}

    filename: str = Field("", description="the name of the file, if the form does not contain it")
    output_format: str = Field("", description="the ending of the name; it can't be another one")


class DocumentKeyFields(DeepLFields):
    """The second secret of a document."""

    example: ClassVar = {"document_key": "0123456789ABCDEF"}

    document_key: str


NAME = 200
"""The maximum number of characters in a glossary's name."""


def _glossary_name(value: str) -> str:
    if not 0 < len(value) <= NAME:
        raise refused(f"Invalid request: name has between 1 and {NAME} characters")
    return value


def _dictionaries(value: Any) -> list[Any]:
    records = value or []
    if not isinstance(records, list) or not all(isinstance(record, dict) for record in records):
        raise refused("Invalid request: dictionaries is not a list of objects")
    if len(records) > DICTIONARIES:  # comparing the languages of each with all others takes time
        raise refused(TOO_LARGE)
    return records


GlossaryName = Annotated[str, AfterValidator(_glossary_name)]


class _NameFields(DeepLFields):
    name: GlossaryName


class LanguagesOfDictionary(DeepLFields):
    """The languages of a dictionary, both of which are named."""

    source_lang: str
    target_lang: str


class DictionaryFields(LanguagesOfDictionary):
    """A dictionary."""

    example: ClassVar = {
        "source_lang": "en",
        "target_lang": "es",
        "entries": "soccer\tfútbol",
        "entries_format": "tsv",
    }
    messages: ClassVar = PairFields.messages

    entries: str = Field(description="a term and its translation on each line")
    entries_format: str = Field(json_schema_extra={"enum": ["tsv", "csv"]})


Dictionaries = Annotated[list[DictionaryFields], BeforeValidator(_dictionaries)]


class GlossaryFields(DictionaryFields, _NameFields):
    """A glossary of one dictionary."""

    example: ClassVar = {"name": "sports", **DictionaryFields.example, "entries": "soccer\tbalompié"}


class EditedGlossaryFields(DeepLFields):
    """A new name for a glossary, or dictionaries to add."""

    example: ClassVar = {"name": "ball games"}
    messages: ClassVar = DictionaryFields.messages

    name: GlossaryName | None = None
    dictionaries: Dictionaries = Field(default_factory=list)


class MultilingualGlossaryFields(EditedGlossaryFields):
    """A glossary of several dictionaries."""

    example: ClassVar = {
        "name": "sports",
        "dictionaries": [{**DictionaryFields.example, "entries": "soccer\tbalompié"}],
    }

    name: GlossaryName
    dictionaries: Dictionaries


@dataclass(frozen=True)
class DeepL(Handlers):
    """The handlers; `routing.py` binds them to their paths."""

    character_counts: LRUCache[str, int] = field(default_factory=lambda: LRUCache(MAX_CLIENTS))
    """The translated characters of each client since the start of the server."""
    glossaries: Glossaries = field(default_factory=Glossaries)

    async def translate(self, call: Call[TranslateFields]) -> JSONResponse:
        """Translate texts, with or without tags."""
        fields, task, texts = call.fields, call.task, call.fields.text.texts
        source, target = self.pair(fields)
        self.check_formality(fields, source, target)
        terms = self.terms(fields, task.client, source, target)
        context, warnings = fields.context, set[str]()

        async def translate_batch(served: AnyServed, batch: list[str]) -> list[TextTranslation]:
            if served.translator.has_formality:
                served = self.context.catalog.addressing(served, fields.address)
            served = await run_in_threadpool(with_terminology, served, terms)
            if context and not served.translator.context:
                warnings.add(f"context was not read: the run {served.name} was trained without data.context")
            translations = await self.translated(task, served, batch, fields)
            if terms or fields.address:  # an exact match of the server's memory comes before the glossary
                outputs = [translation.versions[0] for translation in translations]
                warnings.update(await task.run(lambda: request_warnings(served, batch, outputs)))
            return translations

        def unchanged(text: str) -> TextTranslation:
            return TextTranslation([text])

        languages, translations = await translate_from_any(task, texts, source, target, translate_batch, unchanged)
        self.character_counts[task.client] = self.character_counts.get(task.client, 0) + sum(map(len, texts))
        rows = []
        for text, (code, _), translation in zip(texts, languages, translations, strict=True):
            row: dict[str, Any] = {"detected_source_language": code.upper(), "text": translation.versions[0]}
            if fields.show_billed_characters:
                row["billed_characters"] = len(text)
            if fields.model_type:
                row["model_type_used"] = fields.model_type.removeprefix("prefer_")
            if fields.show_retrieved:
                row["retrieved"] = [word.record() for word in translation.retrieved]
            rows.append(row)
        answer: dict[str, Any] = {"translations": rows}
        if warnings:
            answer["warning"] = "; ".join(sorted(warnings))
        return JSONResponse(answer)

    async def translated(
        self, task: RequestTask, served: AnyServed, texts: Sequence[str], fields: TranslateFields
    ) -> list[TextTranslation]:
        """Translate texts of one language, as `tag_handling` and `split_sentences` say."""
        context = fields.context
        if fields.tag_handling:
            return await translate_tagged(task, served, texts, fields.elements, context)
        if fields.split_sentences == "0":
            task.count(served, texts)
            before = (context,) if context and served.translator.context else ()
            sources = [Source(text, before) for text in texts]
            translations = await task.run(lambda: translate(served.translator, sources, split=False))
            retrieved: list[tuple[RetrievedWord, ...]] = [()] * len(texts)
            if served.retrieves:
                retrieved = await task.run(lambda: list(map(retrieved_words_of, translations)))
            return [
                TextTranslation([translation.text], retrieved=words)
                for translation, words in zip(translations, retrieved, strict=True)
            ]
        if fields.split_sentences == "nonewlines":
            texts = [_SPACE.sub(_without_newlines, text) for text in texts]
        return await translate_texts(task, served, texts, context=context)

    async def languages(self, call: Call[LanguagesFields]) -> JSONResponse:
        """List source or (type=target) target languages."""
        target = call.fields.type == "target"
        codes, with_formality = set[str](), set[str]()
        for pairs in self.context.catalog:
            if not target:
                codes.update(pairs.sources)
                continue
            for code in pairs.targets:
                codes.update(REGIONS.get(code, (code,)))
                if code in pairs.formality_targets:
                    with_formality.update(REGIONS.get(code, (code,)))
        rows = []
        for code in sorted(codes):
            row: dict[str, Any] = {"language": code.upper(), "name": name_of(code)}
            if target:
                row["supports_formality"] = code in with_formality
            rows.append(row)
        return JSONResponse(rows)

    async def usage(self, call: Call[DeepLFields]) -> JSONResponse:
        """Return the number of characters that were translated for this client since the start of the server."""
        count = self.character_counts.get(call.task.client, 0)
        return JSONResponse({"character_count": count, "character_limit": UNLIMITED})

    def pair(self, fields: PairFields | LanguagesOfDictionary) -> tuple[str | None, str]:
        """Return the languages of a request by our codes; no source if it is to be detected.

        Raises:
            ApiError: 400, there is no translator for them.
        """
        catalog = self.context.catalog
        catalog.need_translators()
        target = catalog.usual_code(fields.target_lang, lambda pairs: pairs.targets, UNSUPPORTED.format("target_lang"))
        if not fields.source_lang:
            return None, target
        source = catalog.usual_code(fields.source_lang, lambda pairs: pairs.sources, UNSUPPORTED.format("source_lang"))
        if source != target:
            catalog.find(source, target)
        return source, target

    def has_formality(self, source: str | None, target: str) -> bool:
        """Return whether a translator into a language has a choice of formality, that of the source if it is known."""
        catalog = self.context.catalog
        if source in (None, target):
            return any(target in pairs.formality_targets for pairs in catalog)
        return catalog.find(source, target).translator.has_formality

    def check_formality(self, fields: _TranslationFields, source: str | None, target: str) -> None:
        """Check that a required formality can be chosen.

        Raises:
            ApiError: 400, it can't.
        """
        if fields.formality in ADDRESSES and not self.has_formality(source, target):
            raise ApiError(400, "'formality' is not supported for given 'target_lang'.")

    def terms(self, fields: _TranslationFields, client: str, source: str | None, target: str) -> Mapping[str, str]:
        """Return the entries of the glossary that a request names; none if it names no glossary.

        Raises:
            ApiError: 404, there is no such glossary; 400, it is for other languages, or the source is not named.
        """
        if not fields.glossary_id:
            return {}
        glossary = self.glossaries.find(client, fields.glossary_id)
        if source is None:
            raise ApiError(400, "Value for 'source_lang' is needed with 'glossary_id'.")
        dictionary = glossary.find(source, target)
        if dictionary is None:
            pairs = ", ".join(f"{dictionary.source} to {dictionary.target}" for dictionary in glossary.dictionaries)
            raise ApiError(400, f"The glossary is for {pairs or 'no languages'}.")
        return dictionary.entries


@dataclass(frozen=True)
class DeepLDocuments:
    """The handlers; `routing.py` binds them to their paths."""

    deepl: DeepL
    jobs: DocumentJobs

    async def upload(self, call: Call[UploadDocumentFields]) -> JSONResponse:
        """Accept a document for translation in the background."""
        fields, client = call.fields, call.task.client
        source, target = self.deepl.pair(fields)
        name, output_format = fields.filename or fields.file.filename or "", fields.output_format.lower()
        if output_format and not name.lower().endswith(f".{output_format}"):
            raise ApiError(400, UNSUPPORTED.format("output_format"))
        self.deepl.check_formality(fields, source, target)
        terms, content = self.deepl.terms(fields, client, source, target), fields.file.file
        address = fields.address if self.deepl.has_formality(source, target) else None
        submit = partial(self.jobs.submit, terms=terms, formality=address)
        job = await run_in_threadpool(submit, client, name, content, source, target)
        return JSONResponse({"document_id": job.id, "document_key": job.key})

    async def status(self, call: Call[DocumentKeyFields], document_id: str) -> JSONResponse:
        """Return the progress of a document."""
        job = self._job(call, document_id)
        answer: dict[str, Any] = {"document_id": job.id, "status": _STATES[job.state]}
        if job.state == "translating":
            answer["seconds_remaining"] = math.ceil(job.seconds_left or 1)
        elif job.state == "done":
            answer |= {"seconds_remaining": 0, "billed_characters": job.characters}
        elif job.error:
            answer |= {"error_message": job.error, "message": job.error}
        return JSONResponse(answer)

    async def result(self, request: Request, call: Call[DocumentKeyFields], document_id: str) -> StreamingResponse:
        """Return the translated document, any number of times until it is deleted."""
        return await self.jobs.answer(request, self._job(call, document_id))

    def _job(self, call: Call[DocumentKeyFields], document_id: str) -> Job:
        """Return a document if the request has its key, which is a second secret besides the id."""
        job = self.jobs.find(document_id)
        # In constant time, and with the same error as for a document that does not exist.
        if not hmac.compare_digest(call.fields.document_key.encode(), job.key.encode()):
            raise GoneError
        return job


def _without_newlines(space: re.Match[str]) -> str:
    """Return a space in place of white space with a line break, other white space as it is."""
    return " " if "\n" in space[0] else space[0]


@dataclass(frozen=True)
class _AllGlossaries:
    """The handlers of both versions."""

    deepl: DeepL

    async def delete(self, call: Call[DeepLFields], glossary_id: str) -> Response:
        """Delete a glossary."""
        self.deepl.glossaries.delete(call.task.client, glossary_id)
        return Response(status_code=204)


class DeepLGlossaries(_AllGlossaries):
    """The handlers of version 2; `routing.py` binds them to their paths."""

    async def pairs(self, call: Call[DeepLFields]) -> JSONResponse:
        """List the language pairs for glossaries."""
        pairs: set[tuple[str, str]] = set()
        for served in self.deepl.context.catalog.models:
            for source, target in product(served.sources, served.targets):
                if source != target:
                    pairs.add((source.lower(), target.lower()))
        rows = [{"source_lang": source, "target_lang": target} for source, target in sorted(pairs)]
        return JSONResponse({"supported_languages": rows})

    async def create(self, call: Call[GlossaryFields]) -> JSONResponse:
        """Create a glossary."""
        glossary = Glossary(call.task.client, call.fields.name, (_dictionary_of(self.deepl, call.fields),))
        self.deepl.glossaries.add(glossary)
        return JSONResponse(glossary.monolingual_information, 201)

    async def list_all(self, call: Call[DeepLFields]) -> JSONResponse:
        """List the glossaries of this client."""
        rows = []
        for glossary in self.deepl.glossaries.of(call.task.client):
            if len(glossary.dictionaries) == 1:  # this version of the API can't describe others
                rows.append(glossary.monolingual_information)
        return JSONResponse({"glossaries": rows})

    async def describe(self, call: Call[DeepLFields], glossary_id: str) -> JSONResponse:
        """Describe a glossary."""
        return JSONResponse(self._find(call.task.client, glossary_id).monolingual_information)

    async def entries(self, call: Call[DeepLFields], glossary_id: str) -> Response:
        """Return the entries of a glossary, a term and its translation a line."""
        (dictionary,) = self._find(call.task.client, glossary_id).dictionaries
        return Response(dictionary.tsv, media_type="text/tab-separated-values")

    def _find(self, client: str, glossary_id: str) -> Glossary:
        glossary = self.deepl.glossaries.find(client, glossary_id)
        if len(glossary.dictionaries) != 1:
            raise ApiError(400, "The glossary is of several pairs of languages; ask for it under /v3/glossaries.")
        return glossary


class DeepLMultilingualGlossaries(_AllGlossaries):
    """The handlers of version 3, whose glossaries can be edited; `routing.py` binds them to their paths."""

    async def create(self, call: Call[MultilingualGlossaryFields]) -> JSONResponse:
        """Create a glossary of one dictionary or several."""
        dictionaries = self._dictionaries(call.fields)
        if not dictionaries:
            raise ApiError(400, "Invalid request: missing dictionaries parameter")
        glossary = Glossary(call.task.client, call.fields.name, ())
        for dictionary in dictionaries:
            if glossary.find(dictionary.source, dictionary.target):
                raise ApiError(400, "Invalid request: two of the dictionaries are for the same languages")
            glossary = glossary.with_dictionary(dictionary)
        check_size(glossary)
        self.deepl.glossaries.add(glossary)
        return JSONResponse(glossary.information, 201)

    async def list_all(self, call: Call[DeepLFields]) -> JSONResponse:
        """List the glossaries of this client."""
        glossaries = self.deepl.glossaries.of(call.task.client)
        return JSONResponse({"glossaries": [glossary.information for glossary in glossaries]})

    async def describe(self, call: Call[DeepLFields], glossary_id: str) -> JSONResponse:
        """Describe a glossary."""
        return JSONResponse(self.deepl.glossaries.find(call.task.client, glossary_id).information)

    async def edit(self, call: Call[EditedGlossaryFields], glossary_id: str) -> JSONResponse:
        """Rename a glossary, or add entries to its dictionaries."""
        name, dictionaries = call.fields.name, self._dictionaries(call.fields)

        def edited(glossary: Glossary) -> Glossary:
            for dictionary in dictionaries:
                if existing := glossary.find(dictionary.source, dictionary.target):
                    dictionary = replace(dictionary, entries={**existing.entries, **dictionary.entries})
                glossary = glossary.with_dictionary(dictionary)
            if name:
                glossary = replace(glossary, name=name)
            return glossary

        return JSONResponse(self.deepl.glossaries.change(call.task.client, glossary_id, edited).information)

    async def entries(self, call: Call[LanguagesOfDictionary], glossary_id: str) -> JSONResponse:
        """Return the entries for two languages."""
        dictionary = _dictionary(self.deepl.glossaries.find(call.task.client, glossary_id), call.fields)
        row = dictionary.information
        del row["entry_count"]
        return JSONResponse({"dictionaries": [{**row, "entries": dictionary.tsv, "entries_format": "tsv"}]})

    async def replace(self, call: Call[DictionaryFields], glossary_id: str) -> JSONResponse:
        """Add a dictionary, or replace the one for the same languages."""
        dictionary, client = _dictionary_of(self.deepl, call.fields), call.task.client
        self.deepl.glossaries.change(client, glossary_id, lambda glossary: glossary.with_dictionary(dictionary))
        return JSONResponse(dictionary.information)

    async def delete_dictionary(self, call: Call[LanguagesOfDictionary], glossary_id: str) -> Response:
        """Delete the dictionary for two languages."""

        def shortened(glossary: Glossary) -> Glossary:
            dictionary = _dictionary(glossary, call.fields)
            return glossary.without_dictionary(dictionary.source, dictionary.target)

        self.deepl.glossaries.change(call.task.client, glossary_id, shortened)
        return Response(status_code=204)

    def _dictionaries(self, fields: EditedGlossaryFields) -> list[Dictionary]:
        return [_dictionary_of(self.deepl, dictionary) for dictionary in fields.dictionaries]


def _dictionary_of(deepl: DeepL, fields: DictionaryFields) -> Dictionary:
    """Return the dictionary in the fields of a request."""
    source, target = deepl.pair(fields)
    if source and not deepl.context.catalog.is_direct(source, target):
        raise ApiError(400, f"No model translates {source} to {target} directly, as a glossary requires.")
    entries = read_entries(fields.entries, fields.entries_format)
    return Dictionary(source or "", target, entries)


def _dictionary(glossary: Glossary, fields: LanguagesOfDictionary) -> Dictionary:
    """Return the dictionary for the languages in the fields of a request, if there is one."""
    dictionary = glossary.find(fields.source_lang, fields.target_lang)
    if dictionary is None:
        raise ApiError(404, "The glossary has no dictionary for these languages")
    return dictionary
