"""`translucid serve`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from translucid.cli.options import EngineOption


def serve(
    runs: Annotated[
        list[str], typer.Argument(metavar="RUN...", help="Run folders; en-es=FOLDER where the run does not say it.")
    ],
    host: Annotated[str, typer.Option(help="The address to listen on; 0.0.0.0 is the whole network.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port.", min=1, max=65535)] = 5000,
    characters: Annotated[int, typer.Option(help="Characters in one request, at most.", min=1)] = 5000,
    queue: Annotated[int, typer.Option(help="Sentences that may wait; then 503.", min=1)] = 512,
    seconds: Annotated[float, typer.Option(help="Time that a request may take.", min=0.1)] = 60.0,
    per_minute: Annotated[int, typer.Option(help="Requests a minute from one address; 0 is no limit.", min=0)] = 0,
    api_keys: Annotated[Path | None, typer.Option(help="A file with one API key a line; then a key is needed.")] = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1, mps.")] = "auto",
    engine: EngineOption = "auto",
) -> None:
    """Serve models: a web page, and an API that LibreTranslate's clients can use (POST /translate).

    Needs the packages of the extra `serve`.

    **Examples**

        translucid serve runs/demo

        translucid serve runs/small runs/rnn --port 8080

        translucid serve en-de=runs/mine --host 0.0.0.0 --api-keys keys.txt --per-minute 60
    """
    from translucid.errors import UserError, missing_package

    try:
        import uvicorn

        from translucid.serving.app import create_app
        from translucid.serving.catalogue import load
    except ModuleNotFoundError as error:
        raise missing_package("the server", error.name, "serve") from error
    from translucid.data.corpus import read_lines
    from translucid.serving.options import ServerOptions

    keys = frozenset(line.strip() for line in read_lines(api_keys) if line.strip()) if api_keys else frozenset()
    if api_keys and not keys:
        raise UserError("holds no API key", file=api_keys, fix="Write one a line.")
    options = ServerOptions(characters=characters, queue=queue, seconds=seconds, per_minute=per_minute, api_keys=keys)
    catalogue = load(runs, device, options, engine)
    console = Console(stderr=True, highlight=False)
    for served in catalogue:
        console.print(f"{served.source} → {served.target}: {served.name}")
    console.print(f"page and API on http://{host}:{port}/ (documentation on /docs); Ctrl-C ends it")
    uvicorn.run(create_app(catalogue, options), host=host, port=port, log_level="warning", timeout_graceful_shutdown=30)
