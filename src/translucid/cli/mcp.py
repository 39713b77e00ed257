"""`translucid mcp`.

**Examples**

    translucid mcp runs/demo

    translucid mcp runs/es-en runs/en-fr --memory mine.memory

    translucid mcp en-de=runs/mine --terms terms.tsv --characters 50000
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, NamedTuple

from typer import Argument, Option

from translucid.cli import option
from translucid.cli.printing import with_examples
from translucid.cli.serve import announce, open_memory_of
from translucid.ground.console import Console
from translucid.ground.errors import UserError, missing_package


class Models(NamedTuple):
    """Translation."""

    memory: Annotated[Path | None, Option(help="A translation memory or corpus.")] = None
    terms: Annotated[Path | None, Option(help="A term list, which translations of the first model apply.")] = None
    device: option.Device = "auto"
    engine: option.Engine = "auto"


class Limits(NamedTuple):
    """Limits."""

    characters: Annotated[int, Option(help="Maximum characters of a text.", min=1)] = 20_000
    file_bytes: Annotated[int, Option(help="Maximum bytes of a document.", min=1000, max=32 << 20)] = 20 << 20
    document_seconds: Annotated[float, Option(help="Maximum seconds for a document.", min=1)] = 3600.0
    seconds: Annotated[float, Option(help="Maximum seconds for any other call.", min=0.1)] = 60.0


@with_examples(__doc__)
def mcp(
    runs: Annotated[
        list[str],
        Argument(metavar="RUN...", help="Run folders; en-es=FOLDER if the run does not name its languages."),
    ],
    *,
    models: Models,
    limits: Limits,
) -> None:
    """Let assistants and other programs translate: a server of the Model Context Protocol on standard input and output.

    The program starts this command and calls its tools: translate, translate_document, look and terms. Standard output
    has nothing but the protocol. A document's translation is a new file beside it; no file is replaced unless the
    program asks for it.

    Runs are named as for `translucid serve`. Needs the packages of the extra `mcp`.
    """
    try:
        from translucid.serving.catalog import load
        from translucid.serving.documents import DocumentJobs
        from translucid.serving.edge.rate_limits import RateLimits
        from translucid.serving.mcp_server import AgentTools, make_server
        from translucid.serving.requests import RequestContext
        from translucid.serving.server_options import ServerOptions
    except ModuleNotFoundError as error:
        raise missing_package("the server for assistants", error.name, "mcp") from error

    options = ServerOptions(**limits._asdict())
    catalog = load(runs, models.device, options, models.engine, models.terms or ())
    if not catalog.models:
        raise UserError("none of the runs translates texts", fix="Name at least one translator.")
    memory = open_memory_of(catalog, models.memory, models.terms)
    announce(catalog)
    context = RequestContext(catalog, options, RateLimits(options), memory)
    tools = AgentTools(context, DocumentJobs(context))
    Console(stderr=True).print("waiting for a program on standard input; Ctrl-C ends it", soft_wrap=True)
    try:
        make_server(tools).run("stdio")
    finally:
        tools.close()
