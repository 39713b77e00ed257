"""A server under attack: honest clients notice little, work ends when its client leaves, and memory is freed.

    python -m benchmarks.reliability.siege RUN [--seconds 10] [--engine torch]

During each attack, honest clients translate one sentence after another and request attention for some; before it, they
do so undisturbed. The 95th percentiles of their response times are compared.
"""

import argparse
import contextlib
import http.client
import json
import multiprocessing
import multiprocessing.process
import os
import signal
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from benchmarks.serving_load import memory
from tests.probes.common import Finding, translucid
from translucid.corpora.phrasebook import generate

TWICE = 2.0
"""The maximum ratio of honest clients' response times under attack and without."""
LOOP = "the dog and the dog and " * 25
"""A text that makes models loop until the length limit."""


@dataclass
class Server:
    """A running server."""

    address: str
    pid: int
    log: Path

    def connect(self, seconds: float = 60) -> http.client.HTTPConnection:
        return http.client.HTTPConnection(urlsplit(self.address).netloc, timeout=seconds)

    def cpu(self) -> float:
        """CPU seconds of all threads."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@dataclass
class Times:
    """Response times of honest clients, by route."""

    seconds: dict[str, list[float]] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)

    def p95(self, what: str) -> float:
        ordered = sorted(self.seconds.get(what, [])) or [float("inf")]
        return ordered[int(0.95 * len(ordered))]


def ask(server: Server, path: str, fields: dict[str, object], seconds: float = 60) -> tuple[int, bytes]:
    connection = server.connect(seconds)
    try:
        body = json.dumps({"source": "en", "target": "es", **fields})
        connection.request("POST", path, body, {"Content-Type": "application/json"})
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def abandon(server: Server, path: str, fields: dict[str, object], after: float) -> None:
    """Send a request, and disconnect before the response."""
    with contextlib.suppress(OSError):
        ask(server, path, fields, after)


def send_file(connection: http.client.HTTPConnection, text: bytes) -> bytes:
    """Send a file to translate; return the response."""
    parts = [b"--x", b'Content-Disposition: form-data; name="source"', b"", b"en"]
    parts += [b"--x", b'Content-Disposition: form-data; name="target"', b"", b"es"]
    parts += [b"--x", b'Content-Disposition: form-data; name="file"; filename="a.txt"', b"", text, b"--x--", b""]
    kind = {"Content-Type": "multipart/form-data; boundary=x"}
    connection.request("POST", "/translate_file", b"\r\n".join(parts), kind)
    return connection.getresponse().read()


def upload(server: Server, text: bytes, after: float) -> None:
    """Send a file, and disconnect before the response."""
    connection = server.connect(after)
    with contextlib.suppress(OSError, http.client.HTTPException):
        send_file(connection, text)
    connection.close()


def unfinished(server: Server, count: int, size: int, end: float, head: bytes | None = None) -> None:
    """Open connections, send part of a request on each, and keep them open."""
    if head is None:
        head = b"POST /translate_file HTTP/1.1\r\nHost: localhost\r\nContent-Type: multipart/form-data; boundary=x\r\n"
        head += b"Content-Length: %d\r\n\r\n" % 1_000_000
    connections = []
    address = urlsplit(server.address)
    for _ in range(count):
        connection = socket.socket()
        connection.settimeout(1)
        connections.append(connection)
        with contextlib.suppress(OSError):
            connection.connect((address.hostname, address.port))
            connection.sendall(head + b"x" * size)
    time.sleep(max(0.0, end - time.monotonic()))
    for connection in connections:
        connection.close()


def leaving(server: Server, end: float) -> None:
    """Send part of a request and disconnect, fifteen at a time."""
    while time.monotonic() < end:
        unfinished(server, 15, 1000, 0)
        time.sleep(0.05)


def _loops(server: Server, end: float) -> None:
    upload(server, "\n".join([LOOP] * 70).encode(), 1)


def _longest_prefix(server: Server, end: float) -> None:
    for length in (1999, 300):
        abandon(server, "/continue", {"q": "I like the sea. " * 30, "prefix": [5] * length}, 2)


def at_once(workers: Sequence[threading.Thread | multiprocessing.process.BaseProcess]) -> None:
    """Start all tasks, and wait for all."""
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


def _several(count: int, attack: Callable[[Server, float], None]) -> Callable[[Server, float], None]:
    def run(server: Server, end: float) -> None:
        at_once([threading.Thread(target=attack, args=(server, end)) for _ in range(count)])

    return run


LONG = "The children are reading a book in the garden and I like soccer. " * 7

ATTACKS: dict[str, Callable[[Server, float], None]] = {
    "files of 1 MB of line breaks": lambda server, end: upload(server, b"\n" * 999_000, 30),
    "files of 1 MB of full stops": lambda server, end: upload(server, b"." * 999_000, 30),
    "files of 70 lines that make the model loop, cancelled after a second": _loops,
    "prefixes of 300 and 1,999 tokens to continue": _longest_prefix,
    "gradient explanations, cancelled after a second": lambda server, end: abandon(
        server, "/look", {"q": LONG, "explain": "gradients"}, 1
    ),
    "eight gradient explanations at once": _several(
        8, lambda server, end: abandon(server, "/look", {"q": LONG, "explain": "gradients"}, end - time.monotonic())
    ),
    "400 uploads that never end": lambda server, end: unfinished(server, 400, 900_000, end),
    "1,200 silent connections": lambda server, end: unfinished(server, 1200, 0, end, b""),
    "300 clients per second that disconnect during a request": lambda server, end: leaving(server, end),
}


def honest(server: Server, seconds: float, times: Times, texts: list[str]) -> None:
    """Translate one sentence after another, and request attention for every fourth."""
    end = time.monotonic() + seconds
    i = 0
    while time.monotonic() < end:
        i += 1
        path = "/translate" if i % 4 else "/look"
        started = time.monotonic()
        try:
            status, body = ask(server, path, {"q": texts[i % len(texts)]})
        except OSError as error:
            status, body = 0, str(error).encode()
        if status == 200:
            times.seconds.setdefault(path, []).append(time.monotonic() - started)
        else:
            times.failed.append(f"{path}: {status} {body[:200]!r}")
        time.sleep(0.02)  # a person types slowly


def measured(server: Server, seconds: float, clients: int, attack: Callable[[Server, float], None] | None) -> Times:
    """Measure honest clients, alone or during an attack."""
    texts = [pair.source for pair in generate(100, split="test", max_words=10)]
    times = Times()
    end = time.monotonic() + seconds

    def attacking() -> None:
        while attack and time.monotonic() < end - 1:
            attack(server, end)
            time.sleep(0.2)

    # In a separate process, so that the cost of attacking does not slow down the honest clients.
    attacker = multiprocessing.get_context("fork").Process(target=attacking)
    threads = [threading.Thread(target=honest, args=(server, seconds, times, texts)) for _ in range(clients)]
    at_once([attacker, *threads])
    return times


@contextlib.contextmanager
def serving(run: Path, work: Path, *options: str, languages: str | None = "en-es") -> Iterator[Server]:
    """Start a server as a user does; `languages` is the pair of a translation model."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = translucid(
        "serve",
        f"{languages}={run}" if languages else str(run),
        "--port",
        str(port),
        "--log-format",
        "off",
        *options,
        log=work / "said",
    )
    server = Server(f"http://127.0.0.1:{port}", process.pid, work / "said")
    try:
        wait(server)
        if languages:  # the first response of each kind is the slowest
            ask(server, "/look", {"q": "I sing.", "explain": "erasure"})
        yield server
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(60)


def wait(server: Server) -> None:
    end = time.monotonic() + 60
    while True:
        try:
            connection = server.connect()
            connection.request("GET", "/health")
            connection.getresponse().read()
            connection.close()
            return
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.2)


def under_attack(run: Path, work: Path, seconds: float, clients: int = 4, engine: str = "auto") -> Iterator[Finding]:
    """Yield a finding for each attack."""
    with serving(run, work, "--engine", engine, "--seconds", "20") as server:
        measured(server, seconds, clients, None)
        for name, attack in ATTACKS.items():
            yield one_attack(server, f"{name}, --engine {engine}", attack, seconds, clients)


def one_attack(
    server: Server, name: str, attack: Callable[[Server, float], None], seconds: float, clients: int
) -> Finding:
    finding = Finding(f"attack: {name}")
    quiet = measured(server, seconds, clients, None)
    before, log_size = memory(server.pid), server.log.stat().st_size
    during = measured(server, seconds, clients, attack)
    most = memory(server.pid)
    time.sleep(1)
    cpu_before = server.cpu()
    time.sleep(2)
    burnt = server.cpu() - cpu_before
    after = memory(server.pid)
    for what in ("/translate", "/look"):
        quiet_p95, attack_p95 = quiet.p95(what), during.p95(what)
        finding.figures[what] = f"{1000 * quiet_p95:.0f} → {1000 * attack_p95:.0f} ms ({attack_p95 / quiet_p95:.1f}×)"
        if attack_p95 > TWICE * quiet_p95:
            finding.fail(f"{what} took {attack_p95 / quiet_p95:.1f} times as long")
    finding.figures["memory"] = f"{before:.0f} → {most:.0f} → {after:.0f} MiB"
    finding.figures["CPU use a second later"] = f"{burnt / 2:.0%}"
    finding.figures["bytes logged"] = server.log.stat().st_size - log_size
    finding.failures += sorted(set(during.failed + quiet.failed))[:3]
    if burnt > 0.2:
        finding.fail(f"{burnt:.1f} s of work in the 2 s from a second after the last client on")
    if after > before + 64:
        finding.fail(f"{after - before:.0f} MiB more than before")
    return finding


def by_hand(about: str, trial: Callable[..., Iterable[Finding]], **usual: float) -> None:
    """Run a trial, `trial(run, work, *usual, engine)`, with the command line's options; `usual` has defaults."""
    parser = argparse.ArgumentParser(description=about.split("\n")[0])
    parser.add_argument("run", type=Path)
    for name, value in usual.items():
        parser.add_argument(f"--{name}", type=type(value), default=value)
    parser.add_argument("--engine", default="auto")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        for finding in trial(
            arguments.run, Path(work), *(getattr(arguments, name) for name in usual), arguments.engine
        ):
            print(finding.trial, json.dumps(finding.figures, ensure_ascii=False), *finding.failures, sep="\n    ")


if __name__ == "__main__":
    by_hand(__doc__, under_attack, seconds=10.0, clients=4)
