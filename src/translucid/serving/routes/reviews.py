"""The routes of review files: a document of the page as a table or as XLIFF 2.1 for a reviewer, and what comes back."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Literal

from fastapi import Request
from fastapi.responses import JSONResponse, Response
from starlette.concurrency import run_in_threadpool

from bitext.cancellation import between_steps
from bitext.documents.document import Document, Target, kind_of, read_document
from bitext.documents.shown_tags import shown
from bitext.pair import Pair
from bitext.review.review import Review, corrected, review_of
from bitext.review.review_file import read_review, written_review
from translucid.serving.documents import DocumentJobs, Job, disposition
from translucid.serving.edge.failures import ApiError
from translucid.serving.job_files import Row
from translucid.serving.requests import Call, Choice, Handlers, RequestTask, UploadFields
from translucid.serving.routes.editing import DocumentQuery, as_pair, parsed_job, remember

MOST_LINES = 100
"""The maximum number of problems, and of warnings, in an answer."""


class ReviewFileFields(DocumentQuery):
    """Which file to write."""

    format: Annotated[Literal["docx", "xlf"], Choice] = "docx"


class UploadReviewFields(UploadFields):
    """A review file that comes back, named .docx, .xlf or .xliff."""


@dataclass
class _Outcome:
    """What a review has changed, by the number of the segment."""

    targets: dict[int, Target] = field(default_factory=dict)
    pairs: dict[str, dict[int, Pair]] = field(default_factory=dict)
    """By reviewer."""
    corrected: int = 0
    problems: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Reviews(Handlers):
    """The handlers; `routing.py` binds them to their paths."""

    jobs: DocumentJobs

    async def review(self, request: Request, call: Call[ReviewFileFields], key: str) -> Response:
        """Return a file for a reviewer, with accepted translations as reviewed: a Word table, or XLIFF 2.1 (xlf)."""
        job = self._translated(key)
        name = f"{job.file_name.rpartition('.')[0] or job.file_name}.review.{call.fields.format}"
        kind = kind_of(name)
        assert kind is not None

        def written() -> bytes:
            document = _document(job)
            return written_review(name, review_of(job.name, document, job.files.targets(), (job.source, job.target)))

        task = RequestTask(self.context, request, job.client, self.jobs.options.document_seconds)
        headers = {"Content-Disposition": disposition(name), "X-Content-Type-Options": "nosniff"}
        return Response(await task.run(written), media_type=kind.media, headers=headers)

    async def upload_review(self, call: Call[UploadReviewFields], key: str) -> JSONResponse:
        """Accept what a reviewer has corrected or approved.

        Returns the numbers of the accepted segments, how many of them were corrected, the problems of rows, which are
        not used, and what to check in others.
        """
        job, task, file = self._translated(key), call.task, call.fields.file
        content = await run_in_threadpool(file.file.read)

        def read() -> _Outcome:
            review = read_review(file.filename or "", content)
            outcome = _outcome(job, _document(job), review, file.filename or "")
            between_steps()
            if outcome.targets:
                self.jobs.correct(job, outcome.targets)
            return outcome

        outcome = await RequestTask(self.context, task.request, task.client, self.jobs.options.document_seconds).run(
            read
        )
        remembered = [await remember(task, job, pairs, who) for who, pairs in outcome.pairs.items()]
        answer = {
            "numbers": sorted(outcome.targets),
            "corrected": outcome.corrected,
            "problems": outcome.problems[:MOST_LINES],
            "warnings": outcome.warnings[:MOST_LINES],
            "remembered": bool(remembered) and all(remembered),
        }
        return await run_in_threadpool(JSONResponse, answer)

    def _translated(self, key: str) -> Job:
        """Return a document whose translation is done."""
        job = parsed_job(self.jobs, key)
        if job.state != "done":
            raise ApiError(503, job.error or "The document is not translated yet", retry_after=5)
        return job


def _document(job: Job) -> Document:
    return read_document(job.name, job.files.content, (job.source, job.target))


def _outcome(job: Job, document: Document, review: Review, name: str) -> _Outcome:
    """Return what a review changes in a document as it is now; `name` is the author of corrections without a name."""
    result = corrected(document, review, name)
    outcome = _Outcome(problems=result.problems, warnings=result.warnings)
    reviewed = {row.number - 1: row for row in review.rows}
    rows = {row.number: row for row in job.files.rows()}
    for number, target in result.targets.items():
        between_steps()
        if target.origin != "person":
            continue
        row, reviewed_row = rows[number], reviewed[number]
        is_corrected = reviewed_row.target != reviewed_row.machine
        is_later = _text(row) != reviewed_row.machine
        if not is_corrected and (row.accepted or is_later or row.target is None):
            continue
        if row.target and row.target.marked == target.marked:
            target = row.target
        elif is_corrected and is_later and reviewed_row.machine is not None:
            warning = "the translation was changed after the review file was written; the reviewer's replaces it"
            outcome.warnings.append(f"row {number + 1}: {warning}")
        outcome.targets[number] = target
        outcome.corrected += is_corrected
        outcome.pairs.setdefault(reviewed_row.who or name, {})[number] = as_pair(row, target)
    return outcome


def _text(row: Row) -> str | None:
    """Return the translation of a segment as a review file has it."""
    marked = row.target.marked if row.target else row.segment.existing
    return shown(row.segment.source, marked) if marked else None
