"""The routes of documents on the page: progress, segments with their translations, hints for them, and corrections.

A person reads and moves the tags of a segment in the form ⟨1⟩bold⟨/1⟩, ⟨2/⟩.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, ClassVar

from fastapi import Request
from fastapi.responses import JSONResponse, Response, StreamingResponse
from pydantic import Field, PlainValidator
from starlette.concurrency import run_in_threadpool

from bitext.cancellation import between_steps
from bitext.documents.document import Target
from bitext.documents.shown_tags import read_shown, shown, tags_of
from bitext.documents.tag_projection import readable
from bitext.errors import UserError
from bitext.pair import Pair
from translucid.serving.catalog import Served
from translucid.serving.documents import DocumentJobs, Job, needs_no_translation, served_for
from translucid.serving.edge.failures import ApiError, ServerError
from translucid.serving.edge.rendering import rendered
from translucid.serving.job_files import Row
from translucid.serving.memory import WrittenEntry
from translucid.serving.requests import (
    Call,
    DocumentFields,
    Fields,
    Flag,
    FormalityName,
    Handlers,
    RequestContext,
    RequestTask,
    WholeNumber,
    are_texts,
    at_most,
    refused,
)
from translucid.terminology.matching import terms_in

MOST_ROWS = 500
"""The maximum number of segments in an answer."""

LONGEST_TAG = 1000
"""The maximum number of characters that are shown of a tag, which may contain a picture as a data URI."""

ACCEPTED = "accepted on the page"
"""The origin that a translation memory stores with pairs that a person has accepted."""


log = logging.getLogger("translucid.serving")


class UploadDocumentFields(DocumentFields):
    """A document to translate, perhaps with a certain model."""

    model: str = ""
    formality: FormalityName = ""


class DocumentQuery(Fields):
    """Fields in the query for a document. Its id is a secret, so that no key is needed."""

    @classmethod
    async def values_of(cls, request: Request, context: RequestContext) -> dict[str, Any]:
        """Return the values in the query."""
        return dict(request.query_params)

    @classmethod
    def client_of(cls, request: Request, values: dict[str, Any], context: RequestContext) -> str:
        """Return no client: that of the document counts."""
        return ""


class SegmentsFields(DocumentQuery):
    """Which segments to return."""

    first: Annotated[int, Field(ge=0), WholeNumber] = 0
    count: Annotated[int, Field(ge=0, le=MOST_ROWS), WholeNumber] = 100
    doubtful: Annotated[int, Field(ge=0, le=1), WholeNumber] = Field(0, description="1: only segments to check")


def _senses(senses: Any) -> dict[str, str]:
    """Return the targets of senses by term."""
    if not isinstance(senses, dict) or not are_texts(senses.values()):
        raise refused("Invalid request: senses does not name the targets of terms")
    return senses


class TranslateAgainFields(Fields):
    """Senses of terms that a person has chosen."""

    example: ClassVar = {}
    light: ClassVar = True

    senses: Annotated[dict[str, str], PlainValidator(_senses, json_schema_input_type=dict[str, str])] = Field(
        default_factory=dict, description="targets by term; the translation is then not stored"
    )


class AcceptFields(Fields):
    """The translation of a segment."""

    example: ClassVar = {"text": "Me gusta el fútbol"}
    light: ClassVar = True

    text: str = Field(description="the translation, with tags in place of its marks: ⟨1⟩bold⟨/1⟩")


def _numbered(texts: Any) -> dict[int, str]:
    """Return texts by the number of their segment."""
    if not isinstance(texts, dict) or not are_texts(texts.values()) or not all(map(str.strip, texts.values())):
        raise refused("Invalid request: texts does not name translations by the number of their segment")
    if len(texts) > MOST_ROWS:
        raise refused(f"Invalid request: {len(texts)} texts exceed the limit of {MOST_ROWS}")
    if not all(number.isascii() and number.isdecimal() and len(number) < 10 for number in texts):
        raise refused("Invalid request: texts does not name translations by the number of their segment")
    return {int(number): text for number, text in texts.items()}


class AcceptSeveralFields(Fields):
    """The translations of several segments."""

    example: ClassVar = {"texts": {"0": "Me gusta el fútbol"}, "rest": True}
    with_null: ClassVar = ("texts",)

    texts: Annotated[dict[int, str], PlainValidator(_numbered, json_schema_input_type=dict[str, str])] = Field(
        default_factory=dict, description="translations by number of the segment"
    )
    rest: Flag = Field(False, description="also accept all other translations unchanged")
    doubtful: Flag = Field(False, description="of the rest, also accept those that should be checked")


def _numbers(numbers: Any) -> list[int]:
    """Return numbers of segments."""
    if not isinstance(numbers, list) or not all(type(number) is int and 0 <= number < 1 << 31 for number in numbers):
        raise refused("Invalid request: numbers is not a list of numbers of segments")
    if len(numbers) > MOST_ROWS:
        raise refused(f"Invalid request: {len(numbers)} numbers exceed the limit of {MOST_ROWS}")
    return sorted({*numbers})


class WithdrawFields(Fields):
    """Accepted segments."""

    example: ClassVar = {"numbers": [0]}
    light: ClassVar = True

    numbers: Annotated[list[int], PlainValidator(_numbers, json_schema_input_type=list[int])] = Field(
        description="the numbers of the segments"
    )


@dataclass(frozen=True)
class Editing(Handlers):
    """The handlers; `routing.py` binds them to their paths.

    A client that knows a document's id has full access to it.
    """

    jobs: DocumentJobs

    async def upload(self, call: Call[UploadDocumentFields]) -> JSONResponse:
        """Accept a document for translation in the background."""
        fields, file, client = call.fields, call.fields.file, call.task.client
        languages = fields.language, fields.target
        name, model = file.filename or "", fields.model or None
        submit = partial(self.jobs.submit, formality=fields.formality or None)
        job = await run_in_threadpool(submit, client, name, file.file, *languages, model)
        return JSONResponse(_progress(job))

    async def progress(self, key: str) -> JSONResponse:
        """Return the progress of a document."""
        job = self.jobs.find(key)
        progress = _progress(job)  # before the counts: those of a document that is done must be the final ones
        if job.segments:  # before, there is no database
            progress |= (await run_in_threadpool(job.files.counts))._asdict()
        return JSONResponse(progress)

    async def delete(self, key: str) -> JSONResponse:
        """Cancel the translation of a document, and delete it."""
        await run_in_threadpool(self.jobs.delete, self.jobs.find(key))
        return JSONResponse({"state": "cancelled"})

    async def result(self, request: Request, key: str) -> StreamingResponse:
        """Return the translated document with all corrections."""
        return await self.jobs.answer(request, self.jobs.find(key))

    async def segments(self, request: Request, call: Call[SegmentsFields], key: str) -> Response:
        """Return some segments with their translations."""
        job, fields = parsed_job(self.jobs, key), call.fields
        first = at_most("first", fields.first, job.segments)

        def answer() -> Response:
            records = []
            if job.segments:
                for row in job.files.rows(first, fields.count, doubtful=bool(fields.doubtful)):
                    between_steps()
                    records.append(_record(row))
            return rendered(records)

        return await RequestTask(self.context, request, job.client).run(answer)

    async def accept(self, call: Call[AcceptFields], key: str, number: int) -> Response:
        """Store the translation of a segment that a person has accepted or written."""
        job, task, text = parsed_job(self.jobs, key), call.task, call.fields.text
        if number < 0 or number >= job.segments:
            raise ApiError(404, "There is no such segment")
        if not text.strip():
            raise ApiError(400, "The translation is empty")

        def answer() -> tuple[dict[str, Any], dict[int, Pair]]:
            pairs, problems = self._accept(job, {number: text})
            if problems:
                raise ApiError(400, problems[number])
            (row,) = job.files.rows(number, 1)
            return _record(row), pairs

        row, pairs = await task.run(answer)
        remembered = await remember(task, job, pairs)
        return await run_in_threadpool(JSONResponse, {**row, "remembered": remembered})

    async def accept_several(self, call: Call[AcceptSeveralFields], key: str) -> JSONResponse:
        """Accept the translations of a person (texts, by segment), and the others unchanged (rest).

        Returns the number of accepted translations, their numbers, and the errors in texts, by segment.
        """
        job, fields = parsed_job(self.jobs, key), call.fields
        if any(number >= job.segments for number in fields.texts):
            raise ApiError(404, "There is no such segment")
        pairs, problems = await call.task.run(
            lambda: self._accept(job, fields.texts, rest=fields.rest, doubtful=fields.doubtful)
        )
        remembered = await remember(call.task, job, pairs)
        answer = {"accepted": len(pairs), "numbers": sorted(pairs), "problems": problems, "remembered": remembered}
        return await run_in_threadpool(JSONResponse, answer)

    async def withdraw(self, call: Call[WithdrawFields], key: str) -> Response:
        """Undo the acceptance of segments: their translations, and the entries of the memory, are those from before.

        Returns the segments, and how many entries of the memory stay, as they were changed since then, or the memory
        can't be written to.
        """
        job, task, numbers = parsed_job(self.jobs, key), call.task, call.fields.numbers
        if numbers and numbers[-1] >= job.segments:
            raise ApiError(404, "There is no such segment")
        entries = await task.run(lambda: self.jobs.withdraw(job, numbers))
        staying = await _take_back(task, job, entries)

        def answer() -> Response:
            rows = [row for number in numbers for row in job.files.rows(number, 1)]
            return rendered({"segments": list(map(_record, rows)), "staying": staying})

        return await task.run(answer)

    async def translate_again(self, call: Call[TranslateAgainFields], key: str, number: int) -> JSONResponse:
        """Translate a segment again after corrections, unless a person has accepted it, and return it.

        With senses of its terms, it is only returned.
        """
        job = parsed_job(self.jobs, key)
        if number < 0 or number >= job.segments:
            raise ApiError(404, "There is no such segment")

        def answer() -> dict[str, Any]:
            if call.fields.senses:
                return _record(self.jobs.with_senses(job, number, call.fields.senses))
            self.jobs.translate_again(job, number)
            (row,) = job.files.rows(number, 1)
            return _record(row)

        return JSONResponse(await call.task.run(answer))

    async def hints(self, request: Request, key: str, number: int) -> JSONResponse:
        """Return the fuzzy matches of a segment in the translation memory, and the terms in it."""
        job = parsed_job(self.jobs, key)
        if number < 0 or number >= job.segments:
            raise ApiError(404, "There is no such segment")
        task = RequestTask(self.context, request, job.client)
        return JSONResponse(await task.run(lambda: self._hints(job, number)))

    def _accept(
        self, job: Job, texts: Mapping[int, str], *, rest: bool = False, doubtful: bool = False
    ) -> tuple[dict[int, Pair], dict[int, str]]:
        """Store translations; return them as pairs, and the errors in texts, by segment."""
        targets: dict[int, Target] = {}
        pairs: dict[int, Pair] = {}
        problems: dict[int, str] = {}
        for number, text in texts.items():
            (row,) = job.files.rows(number, 1)
            try:
                targets[number] = _reviewed(row, text)
                pairs[number] = as_pair(row, targets[number])
            except UserError as error:
                problems[number] = str(error)
        if rest:
            for row in _all_rows(job):
                if row.target and not row.accepted and row.number not in texts and (doubtful or not row.is_doubtful):
                    targets[row.number] = row.target
                    pairs[row.number] = as_pair(row, row.target)
        between_steps()
        if targets:
            self.jobs.correct(job, targets)
        return dict(sorted(pairs.items())), problems

    def _hints(self, job: Job, number: int) -> dict[str, Any]:
        (row,) = job.files.rows(number, 1)
        text = readable(row.segment.source).text
        matches: list[dict[str, Any]] = []
        terms: list[dict[str, Any]] = []
        if not job.source or needs_no_translation(self.context.catalog, job.source, job.target):
            return {"matches": matches, "terms": terms}
        served = served_for(self.context, job)
        if served.memory:
            matches = [match.record() for match in served.memory.recall.suggestions(text)]
        # With a pivot language, the terms are not of the source.
        term_matches = terms_in(served.translator.terms, text) if isinstance(served, Served) else []
        for match in term_matches:
            records: list[dict[str, Any]] = [{"source": match.text, "target": target} for target in match.targets]
            if match.sense:
                senses = [(sense[0].target or match.text, sense[0].domain) for sense in match.senses]
                records[0]["sense"] = match.sense.record()
                records[0]["senses"] = [{"target": target, "domain": domain} for target, domain in senses]
            terms += records
        return {"matches": matches, "terms": terms}


def parsed_job(jobs: DocumentJobs, key: str) -> Job:
    """Return a document that has been parsed, so that its segments are known."""
    job = jobs.find(key)
    if not job.segments and not job.ended.is_set():
        raise ApiError(503, job.error or "The document is not read yet", retry_after=2)
    return job


async def remember(task: RequestTask, job: Job, pairs: Mapping[int, Pair], who: str = ACCEPTED) -> bool:
    """Add accepted pairs to the translation memory, if there is one that grows; return whether that succeeded.

    Corrections are stored with the document even if the memory fails.
    """
    memory = task.context.memory_of(task.client)
    if not memory or not job.source or not pairs:
        return False
    try:
        entries = await task.result(memory.add(job.source, job.target, list(pairs.values()), who))
        await run_in_threadpool(job.files.store_entries, zip(pairs, entries, strict=True))
    except ApiError:
        return False
    except ServerError:
        log.exception("a correction did not go into the memory")
        return False
    return True


async def _take_back(task: RequestTask, job: Job, entries: Sequence[WrittenEntry]) -> int:
    """Take back what acceptance has written into the translation memory; return how many entries stay."""
    memory = task.context.memory_of(task.client)
    if not memory or not job.source or not entries:
        return 0
    try:
        return await task.result(memory.take_back(job.source, job.target, entries))
    except ApiError:
        return len(entries)
    except ServerError:
        log.exception("a correction stays in the memory")
        return len(entries)


def _reviewed(row: Row, text: str) -> Target:
    """Return the translation that a person has accepted: unchanged with its origin and its quality, else a new one."""
    marked = read_shown(row.segment.source, text)
    if row.target and marked == row.target.marked:
        return row.target
    return Target(marked, "person")


def as_pair(row: Row, target: Target) -> Pair:
    """Return a segment as a pair for the memory, which looks texts up as the model reads them."""
    return Pair(readable(row.segment.source).text, readable(target.marked).text)


def _all_rows(job: Job) -> Iterator[Row]:
    """Yield all segments, some at a time, between which other requests may have their turn."""
    first = 0
    while rows := job.files.rows(first, MOST_ROWS):
        between_steps()
        yield from rows
        first = rows[-1].number + 1


def _progress(job: Job) -> dict[str, Any]:
    return {
        "id": job.id,
        "name": job.name,
        "kind": job.kind.name,
        "source": job.source,
        "target": job.target,
        "state": job.state,
        "error": job.error,
        "remarks": job.remarks,
        "segments": job.segments,
        "done": job.done,
        "accepted": 0,
        "doubtful": 0,
        "seconds_left": job.seconds_left,
    }


def _record(row: Row) -> dict[str, Any]:
    segment, target = row.segment, row.target
    record = {
        "number": row.number,
        "place": segment.place,
        "note": segment.note,
        "longest": segment.longest,
        "source": shown(segment.source, segment.source),
        "tags": {tag: _shortened(mark.raw) for tag, mark in tags_of(segment.source).items()},
        "existing": segment.existing and shown(segment.source, segment.existing),
        "target": None,
        "origin": None,
        "confidence": None,
        "doubts": [],
    }
    if target:
        record |= {"target": shown(segment.source, target.marked), "origin": target.origin}
        record |= {"confidence": target.confidence, "doubts": target.doubts}
        if target.retrieved:
            record["retrieved"] = [word.record() for word in target.retrieved]
    return record | {"accepted": row.accepted}


def _shortened(tag: str) -> str:
    if len(tag) > LONGEST_TAG:
        return f"{tag[:LONGEST_TAG]}…"
    return tag
