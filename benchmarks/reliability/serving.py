"""A server under load for minutes: no request is lost or mixed up, and memory stays constant."""

import signal
import socket
import time
import urllib.request
from pathlib import Path

from benchmarks.serving_load import load
from tests.probes.common import Finding, output_of, translucid
from translucid.corpora.phrasebook import generate


def under_load(model: Path, minutes: float, clients: int = 32) -> Finding:
    """Send requests from many clients at once; each response must equal the one for the text alone."""
    finding = Finding(f"{clients} clients at once")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = translucid(
        "serve", f"en-es={model}", "--port", str(port), "--log-format", "off"
    )  # unread output must not block the server
    address = f"http://127.0.0.1:{port}"
    try:
        _wait(f"{address}/languages")
        texts = [pair.source for pair in generate(300, split="test", max_words=12)]
        lines, counts = load(address, texts, clients=clients, seconds=60 * minutes, pid=server.pid)
    finally:
        server.send_signal(signal.SIGINT)
        output = output_of(server, 60)
    if counts["wrong"]:
        finding.fail(lines[-1])
    if "Traceback" in output:
        finding.fail(output[-500:])
    finding.figures = {
        "minutes": minutes,
        "responses": int(counts["answers"]),
        "errors or wrong responses": int(counts["wrong"]),
        "memory": f"{counts['memory_before']:.0f} MiB before, {counts['memory_after']:.0f} MiB after",
    }
    return finding


def _wait(address: str) -> None:
    end = time.monotonic() + 60
    while True:
        try:
            urllib.request.urlopen(address, timeout=5).close()
            return
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.2)
