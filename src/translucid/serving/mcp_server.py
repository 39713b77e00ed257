"""The server of the Model Context Protocol (MCP, modelcontextprotocol.io), by which assistants call tools.

The tools translate texts and documents, inspect attention and check terms. They use the queue, the fair scheduler and
the limits of the server, without its HTTP routes.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

import anyio
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from mcp.types import (
    INVALID_REQUEST,
    PARSE_ERROR,
    CallToolResult,
    ErrorData,
    InputRequiredResult,
    JSONRPCError,
    ToolAnnotations,
)
from pydantic import Field, ValidationError
from starlette.concurrency import run_in_threadpool

from bitext.documents.document import shortened
from translucid import __version__
from translucid.ground import special
from translucid.ground.atomic import write_atomically
from translucid.ground.errors import UserError
from translucid.kernels.machine import require_pytorch
from translucid.serving.catalog import AnyServed, Catalog, ServedPivot, name_of
from translucid.serving.documents import DocumentJobs, Job
from translucid.serving.edge.failures import ApiError, ServerError
from translucid.serving.requests import RequestContext, RequestTask
from translucid.serving.texts import (
    TextTranslation,
    detect_sources,
    queue_sentences,
    request_warnings,
    sentences_of,
    split_texts,
    translate_from_any,
    translate_texts,
    with_terminology,
)
from translucid.terminology.matching import terms_in

if TYPE_CHECKING:
    from translucid.api.translation import Translation
    from translucid.inspection.inspected import Inspected

Text = Annotated[str, Field(description="The text.")]
Target = Annotated[str, Field(description="The code or the English name of the target language, such as es.")]
Source = Annotated[str, Field(description="The code or the English name of the source language; auto detects it.")]
Terms = Annotated[
    dict[str, str] | None, Field(description="Words or phrases of the text with the translations that must be used.")
]
Formality = Annotated[
    special.Formality, Field(description="How the translation addresses its reader, if the model has learned that.")
]

READS = ToolAnnotations(read_only_hint=True, open_world_hint=False)
WRITES = ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=True, open_world_hint=False)
"""Destructive, because `overwrite` replaces a file."""
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
    """The tools; each returns a record for JSON, and raises an `ApiError` or a `UserError` with a clear message.

    Programs get their signatures and docstrings.
    """

    context: RequestContext
    jobs: DocumentJobs

    async def translate(
        self,
        text: Text,
        target: Target,
        source: Source = "auto",
        before: Annotated[str, Field(description="The text before it, which some models read as context.")] = "",
        terms: Terms = None,
        formality: Formality | None = None,
    ) -> dict[str, Any]:
        """Translate a text with a model on this machine; line breaks, numbers and placeholders stay."""
        self._check_length(text, self.context.options.characters)
        task = self._task()
        source_code, target_code = self._codes(source, target)
        warnings: list[str] = []

        async def translate(served: AnyServed, batch: list[str]) -> list[TextTranslation]:
            served = self.context.catalog.addressing(served, formality)
            served = await run_in_threadpool(with_terminology, served, terms or {})
            with_confidence = served.translator.quality.has_confidence
            (result,) = await translate_texts(task, served, batch, context=before, with_confidence=with_confidence)
            warnings.extend(await task.run(lambda: request_warnings(served, batch, result.versions[:1])))
            return [result]

        ((code, _),), (translation,) = await translate_from_any(
            task,
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
        self,
        path: Annotated[str, Field(description="The absolute path of the document, or its file:// address.")],
        target: Target,
        context: Context[Any, Any],
        source: Source = "auto",
        overwrite: Annotated[bool, Field(description="Replace the new file if it exists already.")] = False,
        formality: Formality | None = None,
    ) -> dict[str, Any]:
        """Translate a document (Word, PowerPoint, OpenDocument, HTML, Markdown, PO, XLIFF, subtitles ...).

        The translation is a new file beside it: handbook.docx becomes handbook.es.docx. Formatting, tags and everything
        but the text stay as they are.
        """
        file = _document_file(path)
        source_code, target_code = self._codes(source, target)
        output_file = file.with_name(f"{file.stem}.{target_code}{file.suffix}")
        _refuse_to_replace(output_file, overwrite)
        job = await run_in_threadpool(self._submit, file, source_code, target_code, formality)
        try:
            while not job.ended.is_set():
                await context.report_progress(job.done, job.segments)
                await asyncio.sleep(POLL_SECONDS)
            if job.state != "done":
                raise ApiError(job.status, job.error)
            counts = await run_in_threadpool(job.files.counts)
            await run_in_threadpool(_write, job, output_file, overwrite)
        finally:  # also if the client has cancelled the call
            self.jobs.delete(job)
        record = {"file": str(output_file), "source": job.source, "target": target_code, "segments": job.segments}
        return record | {"segments_to_check": counts.doubtful, "remarks": job.remarks}

    async def look(self, text: Text, target: Target, source: Source = "auto") -> dict[str, Any]:
        """Translate a short text, and show how sure the model was of each word and which source words it attended to.

        Attention shows where the model looked, not why it wrote a word.
        """
        require_pytorch("looking at attention")
        self._check_length(text, MAX_INSPECTED)
        task, served = self._task(), await self._served(text, source, target)
        (layout,), _ = await split_texts(served, [text])
        translations: list[Any] = []
        if layout.sentences:
            task.count(served, layout.sentences)
            translations = await task.result(queue_sentences(task, served, sentences_of(served, [layout])))
        record = {"source": served.source, "target": served.target}
        if not isinstance(served, ServedPivot):
            return record | {"sentences": await task.run(lambda: list(map(_look_at, translations)))}
        # A translation through a pivot language has the words of both steps.
        first_steps = [translation.first for translation in translations]
        second_steps = [translation.second for translation in translations]
        record["pivot"] = served.pivot
        return record | {
            "sentences": await task.run(lambda: list(map(_look_at, first_steps))),
            "second_step": await task.run(lambda: list(map(_look_at, second_steps))),
        }

    async def terms(
        self,
        text: Text,
        target: Target,
        source: Source = "auto",
        translation: Annotated[str, Field(description="Also say whether this translation uses the terms.")] = "",
    ) -> dict[str, Any]:
        """List the terms of the term list that a text contains, with the translations that must be used."""
        for checked_text in (text, translation):
            self._check_length(checked_text, self.context.options.characters)
        served = await self._served(text, source, target)
        term_list = None if isinstance(served, ServedPivot) else served.translator.terms
        if not term_list:
            what = f"there is no term list from {served.source} to {served.target}"
            raise UserError(what, fix="Start `translucid mcp` with --terms FILE; it is for the first model.")

        def work() -> list[dict[str, Any]]:
            matches = terms_in(term_list, text)[:MOST_TERMS]
            rows = [{"term": match.text, "translations": list(match.targets)} for match in matches]
            if translation:
                for row, use in zip(rows, term_list.uses(matches, translation), strict=True):
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
        return self._task().with_memory(catalog.find(source_code, target_code))

    def _codes(self, source: str, target: str) -> tuple[str | None, str]:
        """Return our codes of two languages, given their codes or English names; no source if it is `auto` or empty."""
        codes = {name_of(code).casefold(): code for code in self.context.catalog.languages}
        source, target = (codes.get(language.strip().casefold(), language.strip()) for language in (source, target))
        return self.context.catalog.usual_codes(source, target)

    def _submit(self, file: Path, source: str | None, target: str, formality: Formality | None) -> Job:
        try:
            with file.open("rb") as content:
                return self.jobs.submit(CLIENT, file.name, content, source, target, formality=formality)
        except OSError as error:
            raise UserError(f"can't be read ({error.strerror})", file=file, fix="Check its permissions.") from error


def _document_file(path: str) -> Path:
    """Return the file of a document, given its path or an address such as `file:///home/me/a%20b.docx`."""
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
    """Check that a file may be written."""
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


class _Server(MCPServer[Any]):
    """A server whose errors are one clear line each, and which also answers lines that are no messages."""

    async def run_stdio_async(self) -> None:
        """Serve on standard input and output."""
        server = self._lowlevel_server
        async with stdio_server() as (lines, answers):
            messages, valid_messages = anyio.create_memory_object_stream[SessionMessage | Exception](0)

            async def check() -> None:
                async with messages:
                    async for line in lines:
                        if isinstance(line, Exception):
                            await answers.send(SessionMessage(_refusal(line)))
                        else:
                            await messages.send(line)

            async with anyio.create_task_group() as group:
                group.start_soon(check)
                await server.run(valid_messages, answers, server.create_initialization_options())

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        """Call a tool.

        Raises:
            ToolError: the arguments are wrong, or the tool can't do it.
        """
        try:
            return await super().call_tool(name, arguments, context)
        except ToolError as error:
            cause = error.__cause__
            if isinstance(cause, ValidationError):
                raise ToolError(_first_problem(cause)) from error
            if isinstance(cause, ApiError | UserError | ServerError):
                raise ToolError(str(cause)) from error
            raise  # a wrong name of a tool, or an error of ours, whose traceback is logged


def _refusal(error: Exception) -> JSONRPCError:
    """Return the answer to a line that is no message, with the id of its request if it states one."""
    code, message, number = PARSE_ERROR, "The line is no JSON that can be read", None
    problems = error.errors() if isinstance(error, ValidationError) else []
    for problem in problems:
        whole = problem["input"]
        if problem["type"] == "json_invalid":  # such as half of a surrogate pair, which Python's own parser accepts
            with suppress(ValueError, RecursionError):
                whole = json.loads(whole)
        else:
            code, message = INVALID_REQUEST, "The line is no request and no notification of JSON-RPC 2.0"
        if isinstance(whole, dict) and isinstance(whole.get("id"), str | int):
            number = whole["id"]
    return JSONRPCError(jsonrpc="2.0", id=number, error=ErrorData(code=code, message=message))


def _first_problem(error: ValidationError) -> str:
    """Return what is wrong with the arguments of a tool, in one line."""
    problem = error.errors()[0]
    place = ".".join(map(str, problem["loc"]))
    return f"{place}: {problem['msg']}"


def make_server(tools: AgentTools) -> MCPServer[Any]:
    """Return the server of these tools."""
    server = _Server(
        "translucid",
        title="Translucid",
        version=__version__,
        instructions=_instructions(tools.context.catalog),
        log_level="WARNING",
    )
    server.add_tool(tools.translate, annotations=READS)
    server.add_tool(tools.translate_document, annotations=WRITES)
    server.add_tool(tools.look, annotations=READS)
    server.add_tool(tools.terms, annotations=READS)
    return server


def _instructions(catalog: Catalog) -> str:
    """Return what a program should know: the languages."""
    pairs = []
    for language_pairs in catalog:
        source, target = (", ".join(side) for side in language_pairs.sides)
        pairs.append(f"{source} to {target}")
    return f"Translates on this machine, without the network. Languages: {'; '.join(pairs)}."
