"""Accepting many translations of a document at once, and hints for a segment: fuzzy matches and terms."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse

from translucid.data.readers.corpus import Pair
from translucid.documents.document import Target
from translucid.documents.tag_projection import readable
from translucid.ground.cancellation import between_steps
from translucid.ground.errors import UserError
from translucid.serving import schemas
from translucid.serving.edge.failures import ApiError
from translucid.serving.edge.incoming import flag_field
from translucid.serving.queue.job_files import Row
from translucid.serving.queue.request_context import RequestContext
from translucid.serving.queue.request_task import RequestTask
from translucid.serving.routes.document_jobs import DocumentJobs, Job
from translucid.serving.routes.editing import MOST_ROWS, begun, corrected, remember


@dataclass(frozen=True)
class DocumentReview:
    """The handlers; `routes` binds them to their paths."""

    context: RequestContext
    jobs: DocumentJobs

    def routes(self) -> APIRouter:
        """Return the routes."""
        routes = APIRouter(prefix="/documents", tags=["documents"], responses=schemas.ERRORS)
        routes.post("/{key}/accept")(self.accept)
        routes.get("/{key}/segments/{number}/hints")(self.hints)
        return routes

    async def accept(self, request: Request, key: str) -> JSONResponse:
        """Accept translations that a person has written (texts, by segment), and the others unchanged (rest).

        Returns the number of accepted translations, and the errors in texts, by segment.
        """
        fields, task = await self.context.fields(request)
        job = begun(self.jobs, key)
        texts = _texts(fields, job.segments)
        rest, doubtful = flag_field(fields, "rest"), flag_field(fields, "doubtful")
        work = self.context.worker_pool.submit(task, lambda: self._accept(job, texts, rest=rest, doubtful=doubtful))
        pairs, problems = await task.result(request, work)
        remembered = await remember(self.context, request, task, job, pairs)
        return JSONResponse({"accepted": len(pairs), "problems": problems, "remembered": remembered})

    async def hints(self, request: Request, key: str, number: int) -> JSONResponse:
        """Return the fuzzy matches of a segment in the translation memory, and the terms in it."""
        job = begun(self.jobs, key)
        if number < 0 or number >= job.segments:
            raise ApiError(404, "There is no such segment")
        task = RequestTask(job.client, self.context.options.seconds)
        work = self.context.worker_pool.submit(task, lambda: self._hints(job, number))
        return JSONResponse(await task.result(request, work))

    def _accept(
        self, job: Job, texts: Mapping[int, str], *, rest: bool, doubtful: bool
    ) -> tuple[list[Pair], dict[int, str]]:
        """Store translations; return them as pairs, and the errors in texts, by segment."""
        targets: dict[int, Target] = {}
        pairs: list[Pair] = []
        problems: dict[int, str] = {}
        for number, text in texts.items():
            (row,) = job.files.rows(number, 1)
            try:
                targets[number] = corrected(row, text)
                pairs.append(Pair(row.segment.source.text, targets[number].marked.text))
            except UserError as error:
                problems[number] = str(error)
        if rest:
            for row in _every(job):
                if row.target and not row.accepted and row.number not in texts and (doubtful or not row.is_doubtful):
                    targets[row.number] = Target(row.target.marked, "person")
                    pairs.append(Pair(row.segment.source.text, row.target.marked.text))
        between_steps()
        self.jobs.correct(job, targets)
        return pairs, problems

    def _hints(self, job: Job, number: int) -> dict[str, Any]:
        (row,) = job.files.rows(number, 1)
        text = readable(row.segment.source).text
        matches: list[dict[str, Any]] = []
        terms: list[dict[str, Any]] = []
        if not job.source or self.jobs.same(job.source, job.target):
            return {"matches": matches, "terms": terms}
        if self.context.memory and (recall := self.context.memory.recall(job.source, job.target)):
            matches = [match.record() for match in recall.shown(text)]
        for match in self.jobs.translator_of(job).terms_in(text):
            terms += [{"source": match.text, "target": target} for target in match.targets]
        return {"matches": matches, "terms": terms}


def _every(job: Job) -> Iterator[Row]:
    """Yield all segments, some at a time, between which other requests may have their turn."""
    first = 0
    while rows := job.files.rows(first, MOST_ROWS):
        between_steps()
        yield from rows
        first = rows[-1].number + 1


def _texts(fields: Mapping[str, Any], segments: int) -> dict[int, str]:
    """Return the texts of a request by the number of their segment.

    Raises:
        ApiError: 400, the field is no object of texts by number; 404, there is no such segment.
    """
    texts = fields.get("texts", {})
    if not isinstance(texts, dict) or not all(isinstance(text, str) and text.strip() for text in texts.values()):
        raise ApiError(400, "Invalid request: texts does not name translations by the number of their segment")
    if len(texts) > MOST_ROWS:
        raise ApiError(400, f"Invalid request: {len(texts)} texts exceed the limit of {MOST_ROWS}")
    if not all(number.isascii() and number.isdecimal() and len(number) < 10 for number in texts):
        raise ApiError(400, "Invalid request: texts does not name translations by the number of their segment")
    numbered = {int(number): text for number, text in texts.items()}
    if any(number >= segments for number in numbered):
        raise ApiError(404, "There is no such segment")
    return numbered
