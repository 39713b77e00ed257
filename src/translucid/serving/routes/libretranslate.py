"""The API of LibreTranslate 1.9, which its clients can use unchanged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from babel import Locale, UnknownLocaleError
from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response
from starlette.concurrency import run_in_threadpool

from translucid.data.readers.corpus import Pair
from translucid.documents.kinds import KINDS
from translucid.inspection.explain import methods_here
from translucid.serving import schemas
from translucid.serving.edge.failures import ApiError
from translucid.serving.edge.incoming import flag_field, number_field, read_fields, text_field, texts_field
from translucid.serving.queue.request_context import RequestContext
from translucid.serving.queue.request_task import RequestTask
from translucid.serving.routes.detection import detect, detect_sources
from translucid.serving.routes.document_jobs import DocumentJobs
from translucid.serving.tagged import translate_html
from translucid.serving.texts import TextTranslation, translate_texts

SUGGESTED = "suggested"
"""What a memory notes of pairs that clients have suggested."""


@dataclass(frozen=True)
class LibreTranslate:
    """The handlers; `routes` binds them to their paths."""

    context: RequestContext
    jobs: DocumentJobs

    @cached_property
    def _listed(self) -> bytes:
        """The answer of `languages`, which is half a megabyte for 200 of them."""
        catalogue = self.context.catalogue
        rows = [
            {"code": code, "name": name_of(code), "targets": catalogue.targets(code)} for code in catalogue.languages
        ]
        return bytes(JSONResponse(rows).body)

    def routes(self) -> APIRouter:
        """Return the routes."""
        routes = APIRouter(tags=["translation"], responses=schemas.ERRORS)
        routes.post("/translate", openapi_extra=schemas.TRANSLATE)(self.translate)
        routes.post("/detect", openapi_extra=schemas.DETECT)(self.detect)
        routes.post("/translate_file", openapi_extra=schemas.FILE)(self.translate_file)
        routes.get("/download_file/{key}", name="download_file")(self.download_file)
        routes.get("/languages")(self.languages)
        routes.get("/health")(self.health)
        routes.get("/frontend/settings")(self.settings)
        routes.post("/frontend/key", openapi_extra=schemas.KEY)(self.key)
        routes.post("/suggest", openapi_extra=schemas.SUGGEST)(self.suggest)
        return routes

    async def translate(self, request: Request) -> JSONResponse:
        """Translate a text or a list of texts."""
        fields, task = await self.context.fields(request)
        texts, many = texts_field(fields, self.context.options)
        source, target = text_field(fields, "source"), text_field(fields, "target")
        kind = text_field(fields, "format", "text")
        if kind not in ("text", "html"):
            raise ApiError(400, f"{kind[:20]} format is not supported")
        wanted = number_field(fields, "alternatives", 0, self.context.options.alternatives)
        answer: dict[str, Any] = {}
        codes = [source] * len(texts)
        if source == "auto":
            found = await run_in_threadpool(detect_sources, texts, self.context.catalogue.candidates(target))
            codes = [code for code, _ in found]
            details = [{"confidence": round(confidence), "language": code} for code, confidence in found]
            answer["detectedLanguage"] = details if many else details[0] if details else None
        sure = flag_field(fields, "confidence")
        results = [TextTranslation([])] * len(texts)
        for code in dict.fromkeys(codes):
            ours = [i for i, one in enumerate(codes) if one == code]
            given = [texts[i] for i in ours], code, target, kind, wanted
            for i, one in zip(ours, await self._answered(request, task, *given, sure=sure), strict=True):
                results[i] = one
        told: dict[str, list[Any]] = {"translatedText": [one.versions[0] for one in results]}
        if sure:
            told["confidence"] = [one.confidence and round(one.confidence, 4) for one in results]
        if self.context.memory:
            told["origin"] = [one.origin for one in results]
        if wanted:
            told["alternatives"] = [one.versions[1:] for one in results]
        answer |= told if many else {name: one for name, (one,) in told.items()}
        return JSONResponse(answer)

    async def _answered(
        self,
        request: Request,
        task: RequestTask,
        texts: Sequence[str],
        source: str,
        target: str,
        kind: str,
        wanted: int,
        *,
        sure: bool,
    ) -> list[TextTranslation]:
        """Return the translation of each text, and alternatives; of plain text also how sure it is, if asked."""
        if source == target and source in self.context.catalogue.languages:
            return [TextTranslation([text]) for text in texts]
        served = self.context.catalogue.find(source, target)
        if kind == "html":
            return [
                TextTranslation([text]) for text in await translate_html(self.context, task, request, served, texts)
            ]
        return await translate_texts(self.context, task, request, served, texts, wanted, sure=sure)

    async def detect(self, request: Request) -> JSONResponse:
        """Say which language a text is in."""
        fields, _ = await self.context.fields(request)
        texts, _ = texts_field(fields, self.context.options)
        self.context.catalogue.need_translators()
        found = await run_in_threadpool(detect, " ".join(texts), self.context.catalogue.languages)
        return JSONResponse([{"confidence": round(confidence, 1), "language": code} for code, confidence in found])

    async def translate_file(self, request: Request) -> JSONResponse:
        """Translate a document (multipart: file, source, target); answers when it is done.

        A client that leaves cancels it.
        """
        fields, file, client = await self.context.upload(request)
        if file is None:
            raise ApiError(400, "Invalid request: missing file parameter")
        source, target = text_field(fields, "source"), text_field(fields, "target")
        own = None if source == "auto" else source
        job = await run_in_threadpool(self.jobs.submit, client, file.filename or "", file.file, own, target)
        await self.jobs.wait(request, job)
        return JSONResponse({"translatedFileUrl": str(request.url_for("download_file", key=job.id))})

    async def download_file(self, request: Request, key: str) -> Response:
        """Return a translated file, for some time after its translation."""
        return await self.jobs.answer(request, self.jobs.find(key))

    async def suggest(self, request: Request) -> JSONResponse:
        """Take a better translation (s) of a text (q) into the translation memory, if the server has one that grows."""
        fields, task = await self.context.fields(request)
        if self.context.memory is None:
            raise ApiError(403, "Suggestions are disabled on this server.")
        pairs = suggested_pairs(text_field(fields, "q"), text_field(fields, "s"))
        languages = text_field(fields, "source"), text_field(fields, "target")
        await task.result(request, self.context.memory.add(*languages, pairs, SUGGESTED))
        return JSONResponse({"success": True})

    async def languages(self) -> Response:
        """List languages, and what each can be translated to."""
        return Response(await run_in_threadpool(lambda: self._listed), media_type="application/json")

    async def health(self) -> JSONResponse:
        """Say that the server lives."""
        return JSONResponse({"status": "ok"})

    async def key(self, request: Request) -> JSONResponse:
        """Say whether an API key is known, or none is needed; no request is counted for it."""
        fields = await read_fields(request, self.context.bodies, self.context.options)
        self.context.guard.key(request, fields)
        return JSONResponse({"valid": True})

    async def settings(self) -> JSONResponse:
        """Return what a page needs to know."""
        first = next(iter(self.context.catalogue), None)
        return JSONResponse(
            {
                "apiKeys": bool(self.context.options.api_keys),
                "charLimit": self.context.options.characters,
                "filesTranslation": True,
                "frontendTimeout": 500,
                "explanations": _explanations(images=False),
                "imageExplanations": _explanations(images=True),
                "keyRequired": bool(self.context.options.api_keys),
                "language": first
                and {
                    "source": {"code": first.pair[0], "name": name_of(first.pair[0])},
                    "target": {"code": first.pair[1], "name": name_of(first.pair[1])},
                },
                "lessons": self.context.lessons,
                "suggestions": bool(self.context.memory and self.context.memory.grows),
                "supportedFilesFormat": [ending for kind in KINDS for ending in kind.endings],
            }
        )


def suggested_pairs(text: str, better: str) -> list[Pair]:
    """Return what a memory gets of a text and a better translation: line by line where both have as many lines.

    A memory keeps texts without their line breaks, so that a translation of several lines would come back as one.
    """
    lines, others = text.strip().splitlines(), better.strip().splitlines()
    if len(lines) != len(others) or len(lines) < 2:
        return [Pair(text, better)]
    pairs = [Pair(*pair) for pair in zip(lines, others, strict=True)]
    return [pair for pair in pairs if pair.source.strip() and pair.target.strip()]


def name_of(code: str) -> str:
    """Return the English name of a language: `es` is Spanish."""
    try:
        return Locale.parse(code, sep="-").get_display_name("en") or code
    except (UnknownLocaleError, ValueError):
        return code


def _explanations(*, images: bool) -> list[str]:
    return [name for name in methods_here(images=images) if name not in ("attention", "random")]
