"""`translucid serve`."""

from __future__ import annotations

import re
import socket
import sys
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from translucid.ground.console import Console
from translucid.ground.errors import UserError
from translucid.ground.interruption import die_of_sigterm


def _option(help_text: str, name: str, **more: Any) -> Any:
    """An option that may also be given in the environment."""
    flag = f"--{name.lower().replace('_', '-')}"
    return typer.Option(flag, help=help_text, envvar=f"TRANSLUCID_{name}", **more)


def serve(
    runs: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN...", help="Run folders; en-es=FOLDER where the run does not say it.", envvar="TRANSLUCID_RUNS"
        ),
    ],
    host: Annotated[str, _option("The address to listen on; 0.0.0.0 is the whole network.", "HOST")] = "127.0.0.1",
    port: Annotated[int, _option("The port.", "PORT", min=1, max=65535)] = 5000,
    url_prefix: Annotated[str, _option("What stands before every path, such as /translate-app.", "URL_PREFIX")] = "",
    characters: Annotated[int, _option("Characters in one request, at most.", "CHARACTERS", min=1)] = 5000,
    queue: Annotated[int, _option("Sentences that may wait; then 503.", "QUEUE", min=1)] = 512,
    image_bytes: Annotated[int, _option("Bytes of an image, at most.", "IMAGE_BYTES", min=1000, max=32 << 20)] = 8
    << 20,
    file_bytes: Annotated[int, _option("Bytes of a document, at most.", "FILE_BYTES", min=1000, max=32 << 20)] = 20
    << 20,
    document_seconds: Annotated[
        float, _option("Time that the translation of a document may take.", "DOCUMENT_SECONDS", min=1)
    ] = 3600.0,
    seconds: Annotated[float, _option("Time that a request may take.", "SECONDS", min=0.1)] = 60.0,
    per_minute: Annotated[
        int, _option("Requests a minute from one address or key; 0 is no limit.", "PER_MINUTE", min=0)
    ] = 0,
    per_day: Annotated[int, _option("Requests a day from one address or key; 0 is no limit.", "PER_DAY", min=0)] = 0,
    api_keys: Annotated[
        Path | None,
        _option(
            "A file with one API key a line, its limits behind it if it has some; a key is needed then.", "API_KEYS"
        ),
    ] = None,
    hosts: Annotated[
        str,
        _option(
            "Names that clients may call it by, besides localhost: example.org,10.0.0.5; * is any. "
            "If not given, any where --host is not this machine alone.",
            "HOSTS",
        ),
    ] = "",
    origins: Annotated[
        str,
        _option(
            "Sites whose pages may use it: https://example.org,https://other.example; * is any. "
            "If not given, any where --host is not this machine alone.",
            "ORIGINS",
        ),
    ] = "",
    proxies: Annotated[
        str, _option("Addresses of proxies, whose X-Forwarded-For says who asks: 127.0.0.1,10.0.0.0/8.", "PROXIES")
    ] = "",
    metrics: Annotated[
        Literal["key", "open", "off"], _option("/metrics for who has a key (if there are keys), all, none.", "METRICS")
    ] = "key",
    log_format: Annotated[
        Literal["text", "json", "off"], _option("The log of requests; no text is ever in it.", "LOG_FORMAT")
    ] = "text",
    memory: Annotated[
        Path | None,
        _option("A translation memory, or a corpus such as a .tmx, which is used for documents and tags.", "MEMORY"),
    ] = None,
    suggestions: Annotated[
        bool,
        _option("Take into the memory what clients suggest and what is accepted on the page.", "SUGGESTIONS"),
    ] = False,
    terms: Annotated[
        Path | None,
        _option("Terms with their translations, one a line, which translations of the first model keep to.", "TERMS"),
    ] = None,
    device: Annotated[str, _option("auto, cpu, cuda, cuda:1, mps.", "DEVICE")] = "auto",
    engine: Annotated[
        Literal["auto", "torch", "ctranslate2"],
        _option("What searches: our own code, CTranslate2, or the faster one of those that can.", "ENGINE"),
    ] = "auto",
) -> None:
    """Serve models: a web page and an HTTP API for clients of LibreTranslate and DeepL.

    Models that write about images, classify texts or go on with them are served beside translators, or alone (POST
    /caption, /classify, /generate).

    A model of many languages is offered between all of them, by their usual codes; en-es=FOLDER offers one pair, en-*
    all that English is translated to. Where many are written and one is read, en-* also says which that is.

    Needs the packages of the extra `serve`. Every option can stand in the environment, as TRANSLUCID_PORT=8080.

    **Examples**

        translucid serve runs/demo

        translucid serve runs/small runs/rnn --port 8080

        translucid serve runs/small runs/eyes --image-bytes 2000000

        translucid serve en-de=runs/mine --host 0.0.0.0 --api-keys keys.txt --per-minute 60 --per-day 5000

        translucid serve runs/mine --memory mine.memory --suggestions

        translucid serve runs/mine --terms terms.tsv

        translucid serve runs/m2m 'en-*=runs/opus-mt-en-roa'

        translucid serve runs/mine --hosts translate.example.org --proxies 127.0.0.1
    """
    from translucid.ground.errors import missing_package

    try:
        import uvicorn

        from translucid.lessons.beside import recorded_routes
        from translucid.serving.app import create_app
        from translucid.serving.catalogue import load
        from translucid.serving.edge.connections import AT_ONCE, Connection, Listening, most_connections
        from translucid.serving.edge.host_check import ANY, is_loopback
        from translucid.serving.edge.rate_limits import trusted_proxies
        from translucid.serving.routes.memory import MemoryRoutes
        from translucid.serving.server_options import Quota, ServerOptions, read_keys
        from translucid.terminology.term import read_terms
    except ModuleNotFoundError as error:
        raise missing_package("the server", error.name, "serve") from error
    if not re.fullmatch(r"(/[\w.~-]+)*", url_prefix, re.ASCII):
        raise UserError(f"--url-prefix {url_prefix!r} is no beginning of a path", fix="Write it as /translate-app.")
    if suggestions and memory is None:
        raise UserError("--suggestions is for --memory", fix="Say where they go: --memory mine.memory.")
    forwarding = trusted_proxies(_listed(proxies))
    quota = Quota(per_minute, per_day)
    anybody = () if is_loopback(host) else (ANY,)  # who opens it to a network means others to use it
    options = ServerOptions(
        characters=characters,
        image_bytes=image_bytes,
        file_bytes=file_bytes,
        document_seconds=document_seconds,
        queue=queue,
        seconds=seconds,
        quota=quota,
        api_keys=read_keys(api_keys, quota) if api_keys else {},
        metrics=metrics,
        log=log_format,
        hosts=tuple(name.lower() for name in _listed(hosts)) or anybody,
        origins=_listed(origins) or anybody,
        url_prefix=url_prefix,
    )
    if log_format == "json":
        Console.log_format = "json"
    with bound(host, port) as listening:
        catalogue = load(runs, device, options, engine, read_terms(terms) if terms else ())
        if terms and not catalogue.models:
            raise UserError("--terms is for translators", fix="Leave it out.")
        opened = None
        if memory:
            if not catalogue.models:
                raise UserError("--memory is for translators", fix="Leave it out.")
            opened = MemoryRoutes.open(memory, next(iter(catalogue)).pair, grows=suggestions)
        app = create_app(catalogue, options, opened, lambda _: recorded_routes())
        _log_requests()
        console = Console(stderr=True)
        for served in catalogue:
            sides = (", ".join(side) if len(side) < 4 else f"{len(side)} languages" for side in served.sides)
            console.print(f"{' → '.join(sides)}: {served.name}", soft_wrap=True)
            if note := served.translator.estimator_note:
                console.print(f"warning: {note}", soft_wrap=True)
        for writer in catalogue.captioners:
            console.print(f"images: {writer.name}", soft_wrap=True)
        for judge in catalogue.classifiers:
            console.print(f"labels: {judge.name}", soft_wrap=True)
        for generator in catalogue.generators:
            console.print(f"prompts: {generator.name}", soft_wrap=True)
        try:
            listening.listen(2048)
        except OSError as error:  # another one that was loading too has been quicker
            raise _not_ours(host, port, error.strerror) from error
        address = f"[{host}]" if ":" in host else host
        where = f"http://{address}:{port}{url_prefix}/"
        console.print(f"page and API on {where} (documentation on {where}docs); Ctrl-C ends it", soft_wrap=True)
        die_of_sigterm()  # in order, which the server sees to; service managers expect that
        Connection.most = most_connections()
        config = uvicorn.Config(
            app,
            http=Connection,
            ws="none",
            log_level="error",
            access_log=False,
            backlog=AT_ONCE,
            proxy_headers=bool(proxies),
            forwarded_allow_ips=forwarding,
            server_header=False,
            timeout_graceful_shutdown=30,
        )
        Listening(config).run(sockets=[listening])


def _listed(given: str) -> tuple[str, ...]:
    return tuple(part for part in given.replace(",", " ").split() if part)


def bound(host: str, port: int) -> socket.socket:
    """Return a socket that has the address, before any model is loaded.

    Raises:
        UserError: it is taken, or none of this machine's.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        found = socket.socket(family, kind, protocol)
        if sys.platform == "win32":  # where a second server could use the same port, with the other option even more
            found.setsockopt(socket.SOL_SOCKET, socket.SO_EXCLUSIVEADDRUSE, 1)
        else:
            found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind(address)
    except OSError as error:
        raise _not_ours(host, port, error.strerror) from error
    except ValueError as error:  # Python's own, of names that can't be looked up
        raise _not_ours(host, port, "no name of a host") from error
    return found


def _not_ours(host: str, port: int, why: str | None) -> UserError:
    return UserError(f"can't listen on {host} port {port} ({why})", fix="Choose another --port or --host.")


def _log_requests() -> None:
    import logging

    from translucid.serving.edge.measuring import requests

    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(message)s"))
    requests.addHandler(handler)
    requests.setLevel(logging.INFO)
    requests.propagate = False
