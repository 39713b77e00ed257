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
    found: list[tuple[str, dict[str, object]]] = []
    for i in range(0, len(texts) - 9, 10):
        own = texts[i : i + 10]
        found += [("/translate", {"q": text}) for text in own]
        found += [("/translate", {"q": own}), ("/translate", {"q": own[0], "alternatives": 3})]
        found += [("/translate", {"q": f"<p>{own[1]} <b>{own[2]}</b></p>", "format": "html"})]
        found += [("/translate_file", {"q": "\n".join(texts[i : i + 100])})]
        found += [
            ("/look", {"q": " ".join(own[:2])}),
            ("/beam", {"q": own[3]}),
            ("/continue", {"q": own[4], "prefix": []}),
        ]
        found += [("/look", {"q": own[5], "explain": method}) for method in ("erasure", "lime", "gradients")]
        found += [("/detect", {"q": own[6]})]
    return found


def answer(server: Server, path: str, fields: dict[str, object]) -> object:
    """Send a request; return the parts of the response that must not change."""
    if path == "/translate_file":
        return sent_file(server, str(fields["q"]))
    status, body = ask(server, path, fields)
    if status != 200:
        raise ValueError(f"{path}: {status} {body[:200]!r}")
    said = json.loads(body)
    return len(said["trees"]) if path == "/beam" else said  # an SVG contains random names


def sent_file(server: Server, text: str) -> str:
    connection = server.connect()
    url = json.loads(send_file(connection, text.encode()))["translatedFileUrl"]
    connection.request("GET", "/download_file/" + url.rsplit("/", 1)[1])
    translated = connection.getresponse().read().decode()
    connection.close()
    return translated


def same(one: object, other: object) -> bool:
    """Whether two responses are equal up to the last digits of their numbers."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, float) and isinstance(other, int | float):
        return abs(one - other) < NEAR
    return one == other


def again(
    asked: Sequence[Request], alone: Sequence[object], ask: Callable[[Request], object], clients: int, seconds: float
) -> tuple[Counter[int], list[str]]:
    """Repeat all requests from many clients at once.

    Returns:
        The number of times each request was sent, and the responses that differ from those alone.
    """
    numbers, wrong, answers = itertools.count(), [], Counter[int]()
    end = time.monotonic() + seconds

    def client() -> None:
        while time.monotonic() < end:
            at = next(numbers) * 11 % len(asked)
            try:
                if not same(alone[at], ask(asked[at])):
                    wrong.append(f"{str(asked[at])[:200]} had another answer")
            except Exception as error:
                wrong.append(f"{str(asked[at])[:200]}: {error!r}")
            answers[at] += 1

    at_once([threading.Thread(target=client) for _ in range(clients)])
    return answers, wrong


def mixed(run: Path, work: Path, minutes: float, clients: int = 32, engine: str = "auto") -> Finding:
    """Send each request alone, then all of them from many clients at once."""
    finding = Finding(f"{clients} clients at once, all routes, --engine {engine}")
    asked = requests([pair.source for pair in generate(300, split="test", max_words=10)])
    with serving(run, work, "--engine", engine, "--queue", "4096") as server:
        alone = [answer(server, path, fields) for path, fields in asked]
        before = memory(server.pid)
        answers, wrong = again(asked, alone, lambda request: answer(server, *request), clients, 60 * minutes)
        time.sleep(4)
        after = memory(server.pid)
        if "Traceback" in server.said.read_text():
            finding.fail(server.said.read_text()[-500:])
    by_path = Counter[str]()
    for at, count in answers.items():
        by_path[asked[at][0]] += count
    finding.figures = {
        "minutes": minutes,
        "responses": ", ".join(f"{count:,} {path}" for path, count in sorted(by_path.items())),
        "errors or different responses": len(wrong),
        "memory": f"{before:.0f} → {after:.0f} MiB",
    }
    finding.failures += [one[:300] for one in wrong[:3]]
    return finding


if __name__ == "__main__":
    by_hand(__doc__, lambda *given: [mixed(*given)], minutes=10.0, clients=32)
