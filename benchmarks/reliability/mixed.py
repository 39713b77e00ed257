"""Many clients use all routes of a server at once; each response must equal the one for the request alone.

python -m benchmarks.reliability.mixed RUN [--minutes 10] [--clients 32] [--engine torch]
"""

import itertools
import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from benchmarks.reliability.siege import Server, ask, at_once, by_hand, send_file, serving
from benchmarks.serving_load import memory
from tests.probes.common import Finding
from translucid.corpora.phrasebook import generate

NEAR = 2e-3
"""Tolerance for numbers: their last digits depend on the batch."""


Request = TypeVar("Request")


def requests(texts: list[str]) -> list[tuple[str, dict[str, object]]]:
    """Return requests of every kind."""
    all_requests: list[tuple[str, dict[str, object]]] = []
    for i in range(0, len(texts) - 9, 10):
        batch = texts[i : i + 10]
        all_requests += [("/translate", {"q": text}) for text in batch]
        all_requests += [("/translate", {"q": batch}), ("/translate", {"q": batch[0], "alternatives": 3})]
        all_requests += [("/translate", {"q": f"<p>{batch[1]} <b>{batch[2]}</b></p>", "format": "html"})]
        all_requests += [("/translate_file", {"q": "\n".join(texts[i : i + 100])})]
        all_requests += [
            ("/look", {"q": " ".join(batch[:2])}),
            ("/beam", {"q": batch[3]}),
            ("/continue", {"q": batch[4], "prefix": []}),
        ]
        all_requests += [("/look", {"q": batch[5], "explain": method}) for method in ("erasure", "lime", "gradients")]
        all_requests += [("/detect", {"q": batch[6]})]
    return all_requests


def send(server: Server, path: str, fields: dict[str, object]) -> object:
    """Send a request; return the parts of the response that must not change."""
    if path == "/translate_file":
        return sent_file(server, str(fields["q"]))
    status, body = ask(server, path, fields)
    if status != 200:
        raise ValueError(f"{path}: {status} {body[:200]!r}")
    response = json.loads(body)
    return len(response["trees"]) if path == "/beam" else response  # an SVG contains random names


def sent_file(server: Server, text: str) -> str:
    connection = server.connect()
    url = json.loads(send_file(connection, text.encode()))["translatedFileUrl"]
    connection.request("GET", "/download_file/" + url.rsplit("/", 1)[1])
    translated = connection.getresponse().read().decode()
    connection.close()
    return translated


def same(first: object, second: object) -> bool:
    """Whether two responses are equal up to the last digits of their numbers."""
    if isinstance(first, dict) and isinstance(second, dict):
        return first.keys() == second.keys() and all(same(first[key], second[key]) for key in first)
    if isinstance(first, list) and isinstance(second, list):
        return len(first) == len(second) and all(map(same, first, second))
    if isinstance(first, float) and isinstance(second, int | float):
        return abs(first - second) < NEAR
    return first == second


def again(
    all_requests: Sequence[Request],
    expected: Sequence[object],
    ask: Callable[[Request], object],
    clients: int,
    seconds: float,
) -> tuple[Counter[int], list[str]]:
    """Repeat all requests from many clients at once.

    Returns:
        The number of times each request was sent, and the responses that differ from those alone.
    """
    numbers, wrong, counts = itertools.count(), [], Counter[int]()
    end = time.monotonic() + seconds

    def client() -> None:
        while time.monotonic() < end:
            i = next(numbers) * 11 % len(all_requests)
            try:
                if not same(expected[i], ask(all_requests[i])):
                    wrong.append(f"{str(all_requests[i])[:200]} had another answer")
            except Exception as error:
                wrong.append(f"{str(all_requests[i])[:200]}: {error!r}")
            counts[i] += 1

    at_once([threading.Thread(target=client) for _ in range(clients)])
    return counts, wrong


def mixed(run: Path, work: Path, minutes: float, clients: int = 32, engine: str = "auto") -> Finding:
    """Send each request alone, then all of them from many clients at once."""
    finding = Finding(f"{clients} clients at once, all routes, --engine {engine}")
    all_requests = requests([pair.source for pair in generate(300, split="test", max_words=10)])
    with serving(run, work, "--engine", engine, "--queue", "4096") as server:
        expected = [send(server, path, fields) for path, fields in all_requests]
        before = memory(server.pid)
        counts, wrong = again(all_requests, expected, lambda request: send(server, *request), clients, 60 * minutes)
        time.sleep(4)
        after = memory(server.pid)
        if "Traceback" in server.log.read_text():
            finding.fail(server.log.read_text()[-500:])
    by_path = Counter[str]()
    for i, count in counts.items():
        by_path[all_requests[i][0]] += count
    finding.figures = {
        "minutes": minutes,
        "responses": ", ".join(f"{count:,} {path}" for path, count in sorted(by_path.items())),
        "errors or different responses": len(wrong),
        "memory": f"{before:.0f} → {after:.0f} MiB",
    }
    finding.failures += [failure[:300] for failure in wrong[:3]]
    return finding


if __name__ == "__main__":
    by_hand(__doc__, lambda *given: [mixed(*given)], minutes=10.0, clients=32)
