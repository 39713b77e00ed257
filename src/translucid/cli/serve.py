"""`translucid serve`.

**Examples**

    translucid serve runs/demo

    translucid serve runs/small runs/rnn runs/eyes --port 8080

    translucid serve en-de=runs/mine --host 0.0.0.0 --api-keys keys.txt --rate-limit 60/minute,5000/day

    translucid serve runs/mine --memory mine.memory --suggestions --terms terms.tsv

    translucid serve runs/mine --memory mine.memory --suggestions --knn

    translucid serve runs/m2m 'en-*=runs/opus-mt-en-roa'

    translucid serve runs/es-en runs/en-fr runs/fr-en runs/en-es

    translucid serve runs/mine --hosts translate.example.org --proxies 127.0.0.1
"""

from __future__ import annotations

import re
import socket
import sys
from collections.abc import Callable, Collection, Mapping
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

from typer import Argument, Option

from translucid.cli import option
from translucid.cli.printing import with_examples
from translucid.ground.console import Console
from translucid.ground.errors import UserError
from translucid.ground.interruption import die_of_sigterm
from translucid.kernels.machine import limit_threads, release_freed_memory

if TYPE_CHECKING:
    from fastapi import FastAPI

    from translucid.serving.catalog import Catalog
    from translucid.serving.memory import ServerMemory
    from translucid.serving.requests import RequestContext
    from translucid.serving.server_options import ApiKey, Quota, ServerOptions

_NONE = "none"
"""The value of `--hosts` and `--origins` that allows no others."""


class Address(NamedTuple):
    """Address."""

    host: Annotated[str, Option(help="The address to listen on; 0.0.0.0 is the whole network.")] = "127.0.0.1"
    port: Annotated[int, Option(help="The port.", min=1, max=65535)] = 5000
    url_prefix: Annotated[str, Option(help="The prefix of every path, such as /translate-app.")] = ""

    @property
    def url(self) -> str:
        """The address of the page."""
        host = f"[{self.host}]" if ":" in self.host else self.host  # an IPv6 address
        return f"http://{host}:{self.port}{self.url_prefix}/"


class Access(NamedTuple):
    """Access."""

    api_keys: Annotated[
        Path | None, Option(help="API keys with their limits, one per line; then a key is required.")
    ] = None
    hosts: Annotated[
        str,
        Option(
            help="Host names that clients may use besides localhost: example.org,10.0.0.5; none, or * for any, "
            "the default if --host is a network."
        ),
    ] = ""
    origins: Annotated[
        str,
        Option(
            help="Sites whose pages may use the API: https://example.org,https://other.example; none, or * for any, "
            "the default if --host is a network."
        ),
    ] = ""
    proxies: Annotated[str, Option(help="Proxies whose X-Forwarded-For is trusted: 127.0.0.1,10.0.0.0/8.")] = ""
    share_models: Annotated[
        bool,
        Option(
            "--share-models",
            help="Let browsers load the weights of models, for the figure Pass; the default for you alone.",
        ),
    ] = False


class Limits(NamedTuple):
    """Limits."""

    characters: Annotated[int, Option(help="Maximum characters in one request.", min=1)] = 5000
    queue: Annotated[int, Option(help="Maximum waiting sentences; beyond them, status 503.", min=1)] = 512
    image_bytes: Annotated[int, Option(help="Maximum bytes of an image.", min=1000, max=32 << 20)] = 8 << 20
    file_bytes: Annotated[int, Option(help="Maximum bytes of a document.", min=1000, max=32 << 20)] = 20 << 20
    document_seconds: Annotated[float, Option(help="Maximum seconds for a document.", min=1)] = 3600.0
    seconds: Annotated[float, Option(help="Maximum seconds for any other request.", min=0.1)] = 60.0
    rate_limit: Annotated[
        str,
        Option(help="Maximum requests of an address or key: 60/minute, 5000/day, or both, as 60/minute,5000/day."),
    ] = ""

    def quota(self) -> Quota:
        """Return the maximum number of requests.

        Raises:
            UserError: a part is no number per minute or day, or there are two for the same time.
        """
        from translucid.serving.server_options import Quota

        counts: dict[str, int] = {}
        for part in _split_list(self.rate_limit):
            match = re.fullmatch(r"(\d{1,9})/(minute|day)", part, re.ASCII)
            if not match or match[2] in counts:
                what = f"--rate-limit {self.rate_limit!r} is no number of requests per time"
                raise UserError(what, fix="Write 60/minute, 5000/day, or 60/minute,5000/day.")
            counts[match[2]] = int(match[1])
        return Quota(counts.get("minute", 0), counts.get("day", 0))


class Models(NamedTuple):
    """Translation."""

    memory: Annotated[Path | None, Option(help="A translation memory or corpus, for documents and tags.")] = None
    knn: Annotated[
        bool, Option("--knn", help="Let similar segments of the memory change the probabilities of words (kNN-MT).")
    ] = False
    suggestions: Annotated[bool, Option("--suggestions", help="Add suggestions and corrections to the memory.")] = False
    learn: Annotated[
        int, Option(metavar="N", help="Update an adapter in the background after N corrections; 0: never.", min=0)
    ] = 0
    terms: Annotated[Path | None, Option(help="A term list, which translations of the first model apply.")] = None
    device: option.Device = "auto"
    engine: option.Engine = "auto"
    threads: Annotated[int | None, Option(help="Threads of all models; by default one per core.", min=1)] = None


class Logs(NamedTuple):
    """Logs and metrics."""

    metrics: Annotated[
        Literal["key", "open", "off"], Option(help="Who may read /metrics: users with a key, all, nobody.")
    ] = "key"
    log_format: Annotated[Literal["text", "json", "off"], Option(help="The log of requests.")] = "text"


@with_examples(__doc__)
def serve(
    runs: Annotated[
        list[str],
        Argument(
            metavar="RUN...",
            help="Run folders; en-es=FOLDER if the run does not name its languages.",
            envvar="TRANSLUCID_RUNS",
        ),
    ],
    *,
    address: Address,
    access: Access,
    limits: Limits,
    models: Models,
    logs: Logs,
) -> None:
    """Serve models: a web page and an HTTP API for clients of LibreTranslate and DeepL.

    Captioners, text classifiers and language models are served beside translators, or alone (POST /caption, /classify,
    /generate).

    If no model has a language pair, two of them translate it through another language: runs/es-en and runs/en-fr from
    Spanish through English into French.

    A multilingual model translates between all its languages, by their usual codes. en-es=FOLDER offers one pair, en-*
    all targets of English. If a model reads one language, which it does not name, en-* names it.

    Every option can be an environment variable, as TRANSLUCID_PORT=8080.
    """
    from translucid.lessons.beside import recorded_routes
    from translucid.serving.app import create_app
    from translucid.serving.catalog import load
    from translucid.serving.edge.rate_limits import trusted_proxies

    if not re.fullmatch(r"(/[\w.~-]+)*", address.url_prefix, re.ASCII):
        what = f"--url-prefix {address.url_prefix!r} is no beginning of a path"
        raise UserError(what, fix="Write it as /translate-app.")
    if models.threads:
        limit_threads(models.threads)
    trusted = trusted_proxies(_split_list(access.proxies))
    options = _server_options(address, access, limits, logs)
    if models.memory is None and not memory_files(options.api_keys):
        if models.suggestions:
            raise UserError("--suggestions is for --memory", fix="Say where they go: --memory mine.memory.")
        if models.knn:
            raise UserError("--knn is for --memory", fix="Add --memory, or leave --knn out.")
    if models.learn and not models.suggestions:
        raise UserError("--learn is for --suggestions", fix="Add --suggestions, or leave --learn out.")
    if logs.log_format == "json":
        Console.log_format = "json"
    # The port is taken before models are loaded, which may take minutes.
    with bound(address.host, address.port) as listener:
        catalog = load(runs, models.device, options, models.engine, models.terms or ())
        release_freed_memory()  # of conversions, which need several times the memory of the model
        opened = partial(_opened, catalog, grows=models.suggestions, knn=models.knn, learn=models.learn)
        memory = open_memory_of(catalog, models.memory, models.terms, opened)
        key_memories: dict[Path, ServerMemory] = {}

        def open_memories(keys: Mapping[str, ApiKey | None]) -> None:
            for file in memory_files(keys) - key_memories.keys():
                key_memories[file] = opened(file)

        open_memories(options.api_keys)
        app = create_app(catalog, options, memory, lambda _: recorded_routes(), key_memories)
        _log_requests()
        announce(catalog)
        _warn_if_open(address, options)
        try:
            listener.listen(2048)
        except OSError as error:  # another server on this port, which loaded its models sooner
            raise _cannot_listen(address.host, address.port, error.strerror) from error
        page = f"page and API on {address.url} (documentation on {address.url}docs); Ctrl-C ends it"
        Console(stderr=True).print(page, soft_wrap=True)
        if access.api_keys and not sys.stderr.isatty():
            _reload_keys_on_sighup(access.api_keys, options, open_memories)
        _run(app, listener, trusted, behind_proxy=bool(access.proxies))


def _server_options(address: Address, access: Access, limits: Limits, logs: Logs) -> ServerOptions:
    from translucid.serving.edge.middleware import ANY, is_loopback
    from translucid.serving.server_options import ServerOptions, read_keys

    settings = limits._asdict()
    settings.pop("rate_limit")
    quota = limits.quota()
    # A server that listens to a network is meant to be used by others.
    default = () if is_loopback(address.host) else (ANY,)
    # Behind a proxy, a server on this machine is for others, too; it then has names, proxies, keys or a prefix.
    is_private = is_loopback(address.host) and not (
        access.hosts or access.origins or access.proxies or access.api_keys or address.url_prefix
    )
    return ServerOptions(
        **settings,
        quota=quota,
        api_keys=read_keys(access.api_keys, quota) if access.api_keys else {},
        metrics=logs.metrics,
        log=logs.log_format,
        hosts=_names("--hosts", access.hosts.lower(), default),
        origins=_names("--origins", access.origins, default),
        url_prefix=address.url_prefix,
        share_models=access.share_models or is_private,
    )


def _names(flag: str, text: str, default: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names of a list; `none` is an empty one, and an empty text is the default."""
    names = _split_list(text)
    if _NONE not in names:
        return names or default
    if len(names) > 1:
        raise UserError(f"{flag} {text!r} has other values beside {_NONE}", fix="Leave one of them out.")
    return ()


def _warn_if_open(address: Address, options: ServerOptions) -> None:
    """Warn if people in the network, and the pages that they visit, may use the server without a key."""
    from translucid.serving.edge.middleware import ANY, is_loopback

    if options.api_keys or is_loopback(address.host):
        return
    users = "everyone who reaches it"
    if ANY in options.origins:
        users += ", and any web page that they visit,"
    warning = f"warning: there are no API keys: {users} may use this server. See --api-keys, --hosts and --origins."
    Console(stderr=True).print(warning, soft_wrap=True)


def memory_files(keys: Mapping[str, ApiKey | None]) -> set[Path]:
    """Return the files of the translation memories of API keys."""
    return {key.memory for key in keys.values() if key and key.memory}


def open_memory_of(
    catalog: Catalog,
    memory: Path | None,
    terms: Path | None,
    opened: Callable[[Path], ServerMemory] | None = None,
) -> ServerMemory | None:
    """Open the memory, if a file is given, with the function `opened`; by default for look-up only.

    Raises:
        UserError: no translator is served that could use the memory or the terms, or as `opened`.
    """
    for flag, file in (("--terms", terms), ("--memory", memory)):
        if file and not catalog.models:
            raise UserError(f"{flag} is for translators", fix="Leave it out.")
    if memory is None:
        return None
    return opened(memory) if opened else _opened(catalog, memory)


def _opened(catalog: Catalog, file: Path, *, grows: bool = False, knn: bool = False, learn: int = 0) -> ServerMemory:
    """Open a memory, and load what changes translations (PyTorch, an adapter) before the first request.

    Args:
        catalog: the models.
        file: the memory.
        grows: whether clients may change it.
        knn: whether translators retrieve from it.
        learn: the number of corrections after which an adapter is learned; 0 is never.
    """
    from translucid.serving.memory import ServerMemory

    if not catalog.models:
        raise UserError("a memory is for translators", file=file, fix="Leave it out.")
    memory = ServerMemory.open(file, next(iter(catalog)).pair, grows=grows, knn=knn)
    for pairs in catalog.models:
        if all(pairs.find(side, code or "") for side, code in zip(pairs.sides, memory.languages, strict=True)):
            served = pairs.between(*map(str, memory.languages))
            if served and learn and not memory.learner:
                memory.learn(served.translator, learn)
            if served:
                memory.changed(served.translator)
    return memory


def announce(catalog: Catalog) -> None:
    """Print what is served."""
    console = Console(stderr=True)
    for served in catalog.models:
        source, target = map(_language_list, served.sides)
        console.print(f"{source} → {target}: {served.name}", soft_wrap=True)
        if note := served.translator.quality.estimator_note:
            console.print(f"warning: {note}", soft_wrap=True)
    for pivot in catalog.pivots:
        source, target = map(_language_list, pivot.sides)
        console.print(f"{source} → {target}: {pivot.name}, through {pivot.pivot}", soft_wrap=True)
    for served_task, models in catalog.served_others():
        for model in models:
            console.print(f"{served_task.shows}: {model.name}", soft_wrap=True)


def _language_list(languages: Collection[str]) -> str:
    return ", ".join(languages) if len(languages) < 4 else f"{len(languages)} languages"


def _reload_keys_on_sighup(
    file: Path, options: ServerOptions, open_memories: Callable[[Mapping[str, ApiKey | None]], None]
) -> None:
    """Read the API keys again when the signal SIGHUP arrives; a terminal sends it too, when it closes."""
    import signal

    from translucid.serving.server_options import reload_keys

    def reload(*_: object) -> None:
        try:
            reload_keys(options, file, open_memories)
        except UserError as error:
            Console(stderr=True).print(f"warning: the API keys stay as they were: {error}", soft_wrap=True)
        else:
            Console(stderr=True).print(f"read {len(options.api_keys)} API keys", soft_wrap=True)

    if hasattr(signal, "SIGHUP"):  # not on Windows
        signal.signal(signal.SIGHUP, reload)


def _run(app: FastAPI, listener: socket.socket, trusted: list[str], *, behind_proxy: bool) -> None:
    """Serve until a signal ends it."""
    import uvicorn

    from translucid.serving.edge.connections import BACKLOG, Connection, Listening, max_connections

    context: RequestContext = app.state.context
    die_of_sigterm()  # after the server has shut down in order, as service managers expect
    Connection.max_connections = max_connections()
    config = uvicorn.Config(
        app,
        http=Connection,
        ws="websockets-sansio" if find_spec("websockets") else "none",
        ws_max_size=12 * context.options.characters + 20_000,
        ws_per_message_deflate=False,
        log_level="error",
        access_log=False,
        backlog=BACKLOG,
        proxy_headers=behind_proxy,
        forwarded_allow_ips=trusted,
        server_header=False,
        timeout_graceful_shutdown=30,
    )
    server = Listening(config)
    server.on_shutdown = context.live_sessions.close
    server.run(sockets=[listener])


def _split_list(text: str) -> tuple[str, ...]:
    """Split a list at commas and spaces."""
    return tuple(text.replace(",", " ").split())


def bound(host: str, port: int) -> socket.socket:
    """Return a socket that is bound to an address.

    Raises:
        UserError: the address is taken, or does not belong to this machine.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        bound_socket = socket.socket(family, kind, protocol)
        if sys.platform == "win32":  # where SO_REUSEADDR would let a second server use the same port
            bound_socket.setsockopt(socket.SOL_SOCKET, socket.SO_EXCLUSIVEADDRUSE, 1)
        else:
            bound_socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound_socket.bind(address)
    except OSError as error:
        raise _cannot_listen(host, port, error.strerror) from error
    except ValueError as error:  # from Python, for names that can't be looked up, such as too long ones
        raise _cannot_listen(host, port, "no name of a host") from error
    return bound_socket


def _cannot_listen(host: str, port: int, reason: str | None) -> UserError:
    return UserError(f"can't listen on {host} port {port} ({reason})", fix="Choose another --port or --host.")


def _log_requests() -> None:
    import logging

    from translucid.serving.edge.middleware import requests

    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(message)s"))
    requests.addHandler(handler)
    requests.setLevel(logging.INFO)
    requests.propagate = False
