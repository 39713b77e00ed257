"""The document routes of DeepL's API: upload, status, result."""

from __future__ import annotations

import hmac
import math
from dataclasses import dataclass
from typing import Any

from fastapi import Request
from fastapi.responses import JSONResponse, StreamingResponse
from starlette.concurrency import run_in_threadpool

from translucid.serving.edge.failures import ApiError, GoneError
from translucid.serving.edge.incoming import text_field
from translucid.serving.routes.deepl import DeepL
from translucid.serving.routes.document_jobs import DocumentJobs, Job

_STATES = {"waiting": "queued", "translating": "translating", "done": "done", "failed": "error", "cancelled": "error"}


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
        wanted = text_field(fields, "output_format", "").lower()
        if wanted and not name.lower().endswith(f".{wanted}"):
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
