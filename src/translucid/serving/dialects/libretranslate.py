"""The API of LibreTranslate 1.9, which its clients can use unchanged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Annotated, Any, ClassVar, Literal, Self

from fastapi import Request
from fastapi.responses import JSONResponse, Response
from pydantic import Field, WithJsonSchema
from starlette.concurrency import run_in_threadpool

from bitext.documents.document import KINDS
from bitext.pair import Pair
from translucid.data.formality import may_be
from translucid.engines.length_limits import length_warnings
from translucid.kernels.machine import has_pytorch
from translucid.models.kinds import page_sections, tasks
from translucid.serving.catalog import AnyServed, ServedPivot, name_of
from translucid.serving.documents import DocumentJobs
from translucid.serving.edge.failures import ApiError
from translucid.serving.requests import (
    Call,
    Choice,
    DocumentFields,
    Fields,
    Flag,
    FormalityName,
    Handlers,
    RequestContext,
    RequestTask,
    Source,
    Texts,
    WholeNumber,
    at_most,
    methods_of_server,
)
from translucid.serving.texts import TextTranslation, detect, translate_from_any, translate_tagged, translate_texts

SUGGESTED = "suggested"
"""The origin that a translation memory stores with pairs that clients have suggested."""

_Translated = tuple[TextTranslation, str | None]
"""The translation of a text, and the pivot language if there is one."""


class TranslateFields(Fields):
    """A text or several to translate."""

    example: ClassVar = {"q": "I like soccer", "source": "en", "target": "es"}
    messages: ClassVar = {"format": "{value:.20} format is not supported"}

    q: Texts
    source: Source
    target: str
    format: Annotated[Literal["text", "html"], Choice] = "text"
    alternatives: Annotated[int, Field(ge=0), WholeNumber] = 0
    confidence: Flag = Field(
        False, description="also return the probability that a translation is good; null if unknown"
    )
    max_length: Annotated[int, Field(ge=0, le=1_000_000), WholeNumber] = Field(
        0, description="the most characters of each translation of plain text; 0 for any number"
    )
    session: str = Field(
        "",
        pattern=r"^[\w.-]{0,64}$",
        description="a name of your choice, for a text that is longer each time: what was translated before stays",
    )
    finish: Flag = Field(False, description="with session: whether the text is complete")
    formality: FormalityName = ""


class DetectFields(Fields):
    """A text whose language is to be detected."""

    example: ClassVar = {"q": "Me gusta el fútbol"}

    q: Annotated[Texts, WithJsonSchema({"type": "string"})]


class SuggestFields(Fields):
    """A text and a better translation."""

    example: ClassVar = {"q": "I like soccer", "s": "Me encanta el fútbol", "source": "en", "target": "es"}

    q: str
    s: str
    source: str
    target: str

    @classmethod
    def of(cls, values: dict[str, Any], context: RequestContext) -> Self:
        """Return the fields with these values, if the server takes suggestions."""
        if not context.all_memories:
            raise ApiError(403, "Suggestions are disabled on this server.")
        return super().of(values, context)


class KeyFields(Fields):
    """An API key to check, which is not counted as a request."""

    @classmethod
    def client_of(cls, request: Request, values: dict[str, Any], context: RequestContext) -> str:
        """Check the key."""
        context.rate_limits.announce(request, values)
        return ""


@dataclass(frozen=True)
class LibreTranslate(Handlers):
    """The handlers; `routing.py` binds them to their paths."""

    jobs: DocumentJobs

    @cached_property
    def _languages_json(self) -> bytes:
        """The answer of `languages`, cached because it is half a megabyte for 200 languages."""
        rows = []
        catalog = self.context.catalog
        for code in catalog.languages:
            row: dict[str, Any] = {"code": code, "name": name_of(code), "targets": catalog.targets(code)}
            if pivots := catalog.pivots_from(code):
                row["pivots"] = pivots
            rows.append(row)
        return bytes(JSONResponse(rows).body)

    async def translate(self, call: Call[TranslateFields]) -> JSONResponse:
        """Translate a text or a list of texts."""
        fields, task = call.fields, call.task
        texts, is_list = fields.q
        source = None if fields.source == "auto" else fields.source
        alternatives = at_most("alternatives", fields.alternatives, self.context.options.alternatives)
        if fields.session:
            return await self._grow(fields, task)
        if fields.max_length and fields.format == "html":
            raise ApiError(400, "Invalid request: max_length is for plain text")
        limit = fields.max_length or None

        async def translate(served: AnyServed, batch: list[str]) -> list[_Translated]:
            served = self.context.catalog.addressing(served, fields.formality or None)
            pivot = served.pivot if isinstance(served, ServedPivot) else None
            if fields.format == "html":  # without alternatives
                results = await translate_tagged(task, served, batch)
            else:
                results = await translate_texts(
                    task, served, batch, alternatives, with_confidence=fields.confidence, max_length=limit
                )
            return [(result, pivot) for result in results]

        def unchanged(text: str) -> _Translated:
            return TextTranslation([text]), None

        languages, results = await translate_from_any(task, texts, source, fields.target, translate, unchanged)
        translations, pivots = [text for text, _ in results], [pivot for _, pivot in results]
        answer: dict[str, Any] = {}
        if source is None:
            rows = [{"confidence": round(confidence), "language": code} for code, confidence in languages]
            answer["detectedLanguage"] = rows if is_list else rows[0]
        columns: dict[str, list[Any]] = {"translatedText": [text.versions[0] for text in translations]}
        if fields.confidence:
            columns["confidence"] = [text.confidence and round(text.confidence, 4) for text in translations]
        if limit:
            columns["tooLong"] = [bool(length_warnings(text.versions[0], limit)) for text in translations]
        if fields.formality:
            other_formality = []
            for (code, _), text, translation in zip(languages, texts, translations, strict=True):
                fits = may_be(fields.formality, (code, fields.target), text, translation.versions[0])
                other_formality.append(not fits)
            columns["otherFormality"] = other_formality
        if any(pivots):
            columns["pivot"] = pivots
        memory = self.context.memory_of(task.client)
        if memory:
            columns["origin"] = [text.origin for text in translations]
        if memory and memory.knn:
            columns["retrieved"] = [[word.record() for word in text.retrieved] for text in translations]
        if alternatives:
            columns["alternatives"] = [text.versions[1:] for text in translations]
        for name, values in columns.items():
            answer[name] = values if is_list else values[0]
        return JSONResponse(answer)

    async def _grow(self, fields: TranslateFields, task: RequestTask) -> JSONResponse:
        """Translate a text that is longer each time; what was translated before stays."""
        catalog = self.context.catalog
        source, target = catalog.usual_codes(fields.source, fields.target)
        further = fields.alternatives or fields.confidence or fields.max_length or fields.formality
        if source is None or fields.q.is_list or fields.format == "html" or further:
            raise ApiError(
                400,
                "Invalid request: session is for one plain text of a known language, without alternatives and limits",
            )
        session = self.context.live_sessions.growing(task.client, fields.session, catalog.find(source, target))
        text = await session.grow(task, fields.q.texts[0], finish=fields.finish)
        return JSONResponse({"translatedText": text})

    async def detect(self, call: Call[DetectFields]) -> JSONResponse:
        """Detect the language of a text."""
        texts = call.fields.q.texts
        self.context.catalog.need_translators()
        languages = await run_in_threadpool(detect, " ".join(texts), self.context.catalog.languages)
        return JSONResponse([{"confidence": round(confidence, 1), "language": code} for code, confidence in languages])

    async def translate_file(self, request: Request, call: Call[DocumentFields]) -> JSONResponse:
        """Translate a document (multipart: file, source, target), and answer when it is done.

        The translation is cancelled if the client disconnects.
        """
        fields, file = call.fields, call.fields.file
        client, name = call.task.client, file.filename or ""
        job = await run_in_threadpool(self.jobs.submit, client, name, file.file, fields.language, fields.target)
        await self.jobs.wait(request, job)
        return JSONResponse({"translatedFileUrl": str(request.url_for("download_file", key=job.id))})

    async def download_file(self, request: Request, key: str) -> Response:
        """Return a translated document, for some time after its translation."""
        return await self.jobs.answer(request, self.jobs.find(key))

    async def suggest(self, call: Call[SuggestFields]) -> JSONResponse:
        """Add a better translation (s) of a text (q) to the translation memory, if the server has one that grows."""
        fields, memory = call.fields, self.context.memory_of(call.task.client)
        if memory is None:
            raise ApiError(403, "Suggestions are disabled on this server.")
        pairs = suggested_pairs(fields.q, fields.s)
        await call.task.result(memory.add(fields.source, fields.target, pairs, SUGGESTED))
        return JSONResponse({"success": True})

    async def languages(self) -> Response:
        """List the languages with their target languages."""
        return Response(await run_in_threadpool(lambda: self._languages_json), media_type="application/json")

    async def health(self) -> JSONResponse:
        """Return that the server is running."""
        return JSONResponse({"status": "ok"})

    async def key(self, call: Call[KeyFields]) -> JSONResponse:
        """Return whether an API key is valid, or none is required; this does not count as a request.

        The headers state the remaining requests of the key.
        """
        return JSONResponse({"valid": True})

    async def settings(self, request: Request) -> JSONResponse:
        """Return the settings of the server for a page; the headers state the client's remaining requests."""
        if not self.context.options.api_keys:  # `/frontend/key` states the limits of keys
            self.context.rate_limits.announce(request, {})
        language = None
        if self.context.catalog.models:
            source, target = self.context.catalog.models[0].pair
            language = {"source": _language_record(source), "target": _language_record(target)}
        return JSONResponse(
            {
                "apiKeys": bool(self.context.options.api_keys),
                "charLimit": self.context.options.characters,
                "documentKinds": [{"name": kind.name, "endings": kind.endings} for kind in KINDS],
                "filesTranslation": True,
                "frontendTimeout": 500,
                "explanations": _explanations({}),
                **_further_explanations(),
                "keyRequired": bool(self.context.options.api_keys),
                "language": language,
                "lessons": self.context.lessons,
                "retrieval": any(memory.knn for memory in self.context.all_memories),
                "sections": _sections(),
                "suggestions": any(memory.grows for memory in self.context.all_memories),
                "supportedFilesFormat": list(chain.from_iterable(kind.endings for kind in KINDS)),
            }
        )


def suggested_pairs(text: str, better: str) -> list[Pair]:
    """Return the pairs for a translation memory: a text and its translation, line by line if their lines match.

    A memory stores texts without line breaks, so that it would return a translation of several lines as one line.
    """
    lines, better_lines = text.strip().splitlines(), better.strip().splitlines()
    if len(lines) != len(better_lines) or len(lines) < 2:
        return [Pair(text, better)]
    pairs = map(Pair, lines, better_lines)
    return [pair for pair in pairs if pair.source.strip() and pair.target.strip()]


def _language_record(code: str) -> dict[str, str]:
    return {"code": code, "name": name_of(code)}


def _sections() -> list[dict[str, str]]:
    """Return the sections of the page for translators that extensions add; they need PyTorch."""
    if not has_pytorch():
        return []
    return [{"name": one.name, "label": one.label, "module": one.module} for one in page_sections()]


def _explanations(further: Mapping[str, tuple[str, str]]) -> list[str]:
    """Return the methods that explain by other means than attention."""
    return [name for name in methods_of_server(further) if name not in ("attention", "random")]


def _further_explanations() -> dict[str, list[str]]:
    """Return the methods for models that do not translate, by the names of their fields."""
    described = [task.served.explanations for task in tasks() if task.served and task.served.explanations]
    return {name: _explanations(further) for name, further in described}
