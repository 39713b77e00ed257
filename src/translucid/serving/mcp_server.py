"""The server of the Model Context Protocol (MCP, modelcontextprotocol.io), by which assistants call the tools."""

from __future__ import annotations

from typing import Annotated, Any

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import CallToolResult, InputRequiredResult, ToolAnnotations
from pydantic import Field, ValidationError

from translucid import __version__
from translucid.ground.errors import UserError
from translucid.serving.agent_tools import AgentTools
from translucid.serving.catalogue import Catalogue
from translucid.serving.edge.failures import ApiError, ServerError

Text = Annotated[str, Field(description="The text.")]
Target = Annotated[str, Field(description="The code of the target language, such as es.")]
Source = Annotated[str, Field(description="The code of the source language; auto detects it.")]
Terms = Annotated[
    dict[str, str] | None, Field(description="Words or phrases of the text with the translations that must be used.")
]

READS = ToolAnnotations(read_only_hint=True, open_world_hint=False)
WRITES = ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=True, open_world_hint=False)
"""Destructive, because `overwrite` replaces a file."""


class _Server(MCPServer[Any]):
    """A server whose errors are one clear line each."""

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
        instructions=_instructions(tools.context.catalogue),
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
        path: Annotated[str, Field(description="The absolute path of the document.")],
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


def _instructions(catalogue: Catalogue) -> str:
    """Return what a program should know: the languages."""
    pairs = []
    for language_pairs in catalogue:
        source, target = (", ".join(side) for side in language_pairs.sides)
        pairs.append(f"{source} to {target}")
    return f"Translates on this machine, without the network. Languages: {'; '.join(pairs)}."
