"""The tools for assistants and other programs: translate texts and documents, inspect attention, check terms.

The tools use the queue, the fair scheduler and the limits of the server, without its HTTP routes.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

from starlette.concurrency import run_in_threadpool

from bitext.documents.document import shortened
from translucid.ground.atomic import write_atomically
from translucid.ground.errors import UserError
from translucid.kernels.machine import require_pytorch
from translucid.serving.catalog import AnyServed, ServedPivot, name_of
from translucid.serving.detection import detect_sources, translate_from_any
from translucid.serving.documents.document_job import Job
from translucid.serving.documents.document_jobs import DocumentJobs
from translucid.serving.edge.failures import ApiError
from translucid.serving.requests import RequestContext, RequestTask
from translucid.serving.texts import (
    TextTranslation,
    queue_sentences,
    sentences_of,
    split_texts,
    term_warnings,
    translate_texts,
    with_terminology,
)
from translucid.terminology.matching import terms_in

if TYPE_CHECKING:
    from translucid.api.translation import Translation
    from translucid.inspection.inspected import Inspected

Report = Callable[[int, int], Awaitable[None]]
"""Called with the number of finished segments of a document, and the number of all."""

CLIENT = "tools"
"""The client of all work, for the queue: only one program can write to our standard input."""
POLL_SECONDS = 0.2
"""The interval at which the progress of a document is read."""
MAX_INSPECTED = 500
"""The maximum number of characters in a text that is inspected; attention maps grow with the square of its length."""
MOST_TERMS = 200
"""The maximum number of terms that are returned."""
SOURCES = 3
"""The maximum number of source words that are returned for a word of a translation."""


@dataclass(frozen=True)
class AgentTools:
    """The tools; each returns a record for JSON, and raises an `ApiError` or a `UserError` with a clear message."""

    context: RequestContext
    jobs: DocumentJobs

    async def translate(
        self, text: str, source: str, target: str, before: str = "", terms: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        """Translate a text.

        Args:
            text: the text.
            source: a language code, or `auto`.
            target: a language code.
            before: the text before it, for a run with document context.
            terms: terms with the translations to use, instead of the server's.
        """
        self._check_length(text, self.context.options.characters)
        task = self._task()
        source_code, target_code = self._codes(source, target)
        warnings: list[str] = []

        async def translate(served: AnyServed, batch: list[str]) -> list[TextTranslation]:
            served = await run_in_threadpool(with_terminology, served, terms or {})
            with_confidence = served.translator.quality.has_confidence
            (result,) = await translate_texts(task, served, batch, context=before, with_confidence=with_confidence)
            warnings.extend(await task.run(lambda: term_warnings(served, batch, result.versions[:1])))
            return [result]

        ((code, _),), (translation,) = await translate_from_any(
            self.context.catalog,
            [text],
            source_code,
            target_code,
            translate,
            lambda unchanged: TextTranslation([unchanged]),
        )
        record: dict[str, Any] = {"translation": translation.versions[0], "source": code, "target": target_code}
        if translation.confidence is not None:
            record["confidence"] = round(translation.confidence, 4)
        if warnings:
            record["warnings"] = warnings
        return record

    async def translate_document(
        self, path: str, source: str, target: str, report: Report, *, overwrite: bool = False
    ) -> dict[str, Any]:
        """Translate a document into a new file beside it: `handbook.docx` into `handbook.es.docx`.

        Args:
            path: the path of the document, whose ending determines the format.
            source: a language code, or `auto`.
            target: a language code.
            report: called with the progress.
            overwrite: whether a file of this name may be replaced.
        """
        file = _document_file(path)
        source_code, target_code = self._codes(source, target)
        output_file = file.with_name(f"{file.stem}.{target_code}{file.suffix}")
        _refuse_to_replace(output_file, overwrite)
        job = await run_in_threadpool(self._submit, file, source_code, target_code)
        try:
            while not job.ended.is_set():
                await report(job.done, job.segments)
                await asyncio.sleep(POLL_SECONDS)
            if job.state != "done":
                raise ApiError(job.status, job.error)
            counts = await run_in_threadpool(job.files.counts)
            await run_in_threadpool(_write, job, output_file, overwrite)
        finally:  # also if the client has cancelled the call
            self.jobs.delete(job)
        record = {"file": str(output_file), "source": job.source, "target": target_code, "segments": job.segments}
        return record | {"segments_to_check": counts.doubtful, "remarks": job.remarks}

    async def look(self, text: str, source: str, target: str) -> dict[str, Any]:
        """Translate a text, and return the probability of each word and the source words with most attention.

        A translation through a pivot language has the words of both steps.
        """
        require_pytorch("looking at attention")
        self._check_length(text, MAX_INSPECTED)
        task, served = self._task(), await self._served(text, source, target)
        (layout,), _ = await split_texts(self.context, served, [text])
        translations: list[Any] = []
        if layout.sentences:
            task.count(served, layout.sentences)
            translations = await task.result(queue_sentences(task, served, sentences_of(served, [layout])))
        record = {"source": served.source, "target": served.target}
        if not isinstance(served, ServedPivot):
            return record | {"sentences": await task.run(lambda: list(map(_look_at, translations)))}
        first_steps = [translation.first for translation in translations]
        second_steps = [translation.second for translation in translations]
        record["pivot"] = served.pivot
        return record | {
            "sentences": await task.run(lambda: list(map(_look_at, first_steps))),
            "second_step": await task.run(lambda: list(map(_look_at, second_steps))),
        }

    async def terms(self, text: str, source: str, target: str, translation: str = "") -> dict[str, Any]:
        """Return the terms of the term list in a text, and whether a translation of it uses them.

        Raises:
            UserError: there is no term list for these languages.
        """
        for checked_text in (text, translation):
            self._check_length(checked_text, self.context.options.characters)
        served = await self._served(text, source, target)
        terms = None if isinstance(served, ServedPivot) else served.translator.terms
        if isinstance(served, ServedPivot) or not terms:
            what = f"there is no term list from {served.source} to {served.target}"
            raise UserError(what, fix="Start `translucid mcp` with --terms FILE; it is for the first model.")
        translator = served.translator

        def work() -> list[dict[str, Any]]:
            matches = terms_in(translator.terms, text)[:MOST_TERMS]
            rows = [{"term": match.text, "translations": list(match.targets)} for match in matches]
            if translation:
                for row, use in zip(rows, terms.uses(matches, translation), strict=True):
                    row["outcome"] = use.outcome
            return rows

        return {"source": served.source, "target": served.target, "terms": await self._task().run(work)}

    def close(self) -> None:
        """Cancel all work, and delete its files."""
        self.jobs.close()
        self.context.close()
        self.jobs.clean()  # only now: work that still ran used the folder of the jobs

    def _task(self) -> RequestTask:
        return RequestTask(self.context, None, CLIENT)

    def _check_length(self, text: str, limit: int) -> None:
        if len(text) > limit:
            raise ApiError(400, f"{len(text)} characters exceed the limit of {limit}")

    async def _served(self, text: str, source: str, target: str) -> AnyServed:
        """Return the translator for a text, whose language is detected if the source is `auto`."""
        catalog = self.context.catalog
        source_code, target_code = self._codes(source, target)
        if source_code is None:
            candidates = catalog.sources(target_code)
            ((source_code, _),) = await run_in_threadpool(detect_sources, [text], candidates)
        return catalog.find(source_code, target_code)

    def _codes(self, source: str, target: str) -> tuple[str | None, str]:
        """Return our codes of two languages, given their codes or English names; no source if it is `auto` or empty.

        Raises:
            ApiError: 400, no translator has one of the languages on its side.
        """
        codes = {name_of(code).casefold(): code for code in self.context.catalog.languages}
        source, target = (codes.get(language.strip().casefold(), language.strip()) for language in (source, target))
        return self.context.catalog.usual_codes(source, target)

    def _submit(self, file: Path, source: str | None, target: str) -> Job:
        try:
            with file.open("rb") as content:
                return self.jobs.submit(CLIENT, file.name, content, source, target)
        except OSError as error:
            raise UserError(f"can't be read ({error.strerror})", file=file, fix="Check its permissions.") from error


def _document_file(path: str) -> Path:
    """Return the file of a document, given its path or an address such as `file:///home/me/a%20b.docx`.

    Raises:
        UserError: there is none of this path, or the address is of another machine.
    """
    try:
        file = Path(path).expanduser()
        if path.lower().startswith("file:"):
            address = urlsplit(path)
            if address.netloc not in ("", "localhost"):
                fix = "Give the path of a document on this one."
                raise UserError("is on another machine", file=shortened(path, 200), fix=fix)
            file = Path(url2pathname(address.path))
        if file.name and file.is_file():
            return file
    except (OSError, RuntimeError, ValueError):  # too long, the home of nobody, or with characters that no path has
        pass
    raise UserError("is no file", file=shortened(path, 200) or "the path", fix="Give the absolute path of a document.")


def _refuse_to_replace(file: Path, overwrite: bool) -> None:
    """Check that a file may be written.

    Raises:
        UserError: it exists, and must not be replaced; or it is a link, which may lead anywhere.
    """
    if file.is_symlink():
        raise UserError("is a link, which is not followed", file=file, fix="Remove the link.")
    if os.path.lexists(file) and not overwrite:
        raise UserError("exists already", file=file, fix="Rename it, or set overwrite to true.")


def _write(job: Job, file: Path, overwrite: bool) -> None:
    """Write the result of a job."""
    parts, _ = job.files.open_result()
    content = b"".join(parts)
    _refuse_to_replace(file, overwrite)  # it may have appeared in the meantime
    write_atomically(file, content)  # which, unlike `write_output`, does not follow a link


def _look_at(translation: Translation) -> dict[str, Any]:
    """Return the words of a translated sentence; called in the worker pool."""
    words: list[dict[str, Any]] = []
    for inspected in translation.inspect():
        words += _words(inspected)
    warnings = [*translation.warnings, *translation.attention_warnings]
    return {"text": translation.source, "translation": translation.text, "words": words, "warnings": warnings}


def _words(inspected: Inspected) -> Sequence[dict[str, Any]]:
    """Return the words of a target, each with its probability and the source words with most attention."""
    rows: list[dict[str, Any]] = []
    for word, probability in inspected.word_probabilities():
        rows.append({"word": word, "probability": round(probability, 4)})
    if inspected.layers:
        weights = inspected.words().between_words  # [target words, source words]
        sources = inspected.source_words[:-1]
        for row, word_weights in zip(rows, weights, strict=True):
            strongest = word_weights.topk(min(SOURCES, len(sources)))
            row["attention"] = []
            for weight, position in zip(strongest.values.tolist(), strongest.indices.tolist(), strict=True):
                row["attention"].append({"word": sources[position], "weight": round(weight, 4)})
    return rows
