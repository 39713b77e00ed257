"""The server of the Model Context Protocol (MCP, modelcontextprotocol.io), by which assistants call the tools."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Annotated, Any

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

from translucid import __version__
from translucid.ground.errors import UserError
from translucid.serving.agent_tools import AgentTools
from translucid.serving.catalog import Catalog
from translucid.serving.edge.failures import ApiError, ServerError

Text = Annotated[str, Field(description="The text.")]
Target = Annotated[str, Field(description="The code or the English name of the target language, such as es.")]
Source = Annotated[str, Field(description="The code or the English name of the source language; auto detects it.")]
Terms = Annotated[
    dict[str, str] | None, Field(description="Words or phrases of the text with the translations that must be used.")
]

READS = ToolAnnotations(read_only_hint=True, open_world_hint=False)
WRITES = ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=True, open_world_hint=False)
"""Destructive, because `overwrite` replaces a file."""


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

    @server.tool(annotations=READS)
    async def translate(
        text: Text,
        target: Target,
        source: Source = "auto",
        before: Annotated[str, Field(description="The text before it, which some models read as context.")] = "",
        terms: Terms = None,
    ) -> dict[str, Any]:
        """Translate a text with a model on this machine; line breaks, numbers and placeholders stay."""
        return await tools.translate(text, source, target, before, terms)

    @server.tool(annotations=WRITES)
    async def translate_document(
        path: Annotated[str, Field(description="The absolute path of the document, or its file:// address.")],
        target: Target,
        context: Context[Any, Any],
        source: Source = "auto",
        overwrite: Annotated[bool, Field(description="Replace the new file if it exists already.")] = False,
    ) -> dict[str, Any]:
        """Translate a document (Word, PowerPoint, OpenDocument, HTML, Markdown, PO, XLIFF, subtitles ...).

        The translation is a new file beside it: handbook.docx becomes handbook.es.docx. Formatting, tags and everything
        but the text stay as they are.
        """
        return await tools.translate_document(path, source, target, context.report_progress, overwrite=overwrite)

    @server.tool(annotations=READS)
    async def look(text: Text, target: Target, source: Source = "auto") -> dict[str, Any]:
        """Translate a short text, and show how sure the model was of each word and which source words it attended to.

        Attention shows where the model looked, not why it wrote a word.
        """
        return await tools.look(text, source, target)

    @server.tool(annotations=READS)
    async def terms(
        text: Text,
        target: Target,
        source: Source = "auto",
        translation: Annotated[str, Field(description="Also say whether this translation uses the terms.")] = "",
    ) -> dict[str, Any]:
        """List the terms of the term list that a text contains, with the translations that must be used."""
        return await tools.terms(text, source, target, translation)

    return server


def _instructions(catalog: Catalog) -> str:
    """Return what a program should know: the languages."""
    pairs = []
    for language_pairs in catalog:
        source, target = (", ".join(side) for side in language_pairs.sides)
        pairs.append(f"{source} to {target}")
    return f"Translates on this machine, without the network. Languages: {'; '.join(pairs)}."
