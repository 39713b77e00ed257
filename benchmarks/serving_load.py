"""Many clients at once against a running server: nothing lost, nothing mixed up, how fast, how much memory.

    translucid serve runs/eng-spa &
    python benchmarks/serving_load.py lines.txt [--address http://127.0.0.1:5000] [--clients 32] [--seconds 120]

Each client sends one line after the other. First every line is translated alone; each later answer must equal that one.
The server's resident memory is read from /proc where --pid is given.
"""

import argparse
import itertools
import json
import statistics
import threading
import time
import urllib.request
from pathlib import Path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("lines", type=Path, help="texts to translate")
    parser.add_argument("--address", default="http://127.0.0.1:5000")
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--texts", type=int, default=500, help="different lines")
    parser.add_argument("--source", default="en")
    parser.add_argument("--target", default="es")
    parser.add_argument("--pid", type=int, help="of the server")
    arguments = parser.parse_args()
    texts = arguments.lines.read_text(encoding="utf-8").split("\n")[: arguments.texts]

    def ask(text: str) -> str:
        body = json.dumps({"q": text, "source": arguments.source, "target": arguments.target}).encode()
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(f"{arguments.address}/translate", body, headers)
        with urllib.request.urlopen(request, timeout=120) as answer:
            return json.load(answer)["translatedText"]

    def memory() -> str:
        if arguments.pid is None:
            return "unknown"
        status = Path(f"/proc/{arguments.pid}/status").read_text()
        return f"{int(status.split('VmRSS:')[1].split()[0]) / 1024:.0f} MiB"

    started, alone, expected = time.perf_counter(), [], {}
    for text in texts:
        before = time.perf_counter()
        expected[text] = ask(text)
        alone.append(time.perf_counter() - before)
    report("one at a time", alone, time.perf_counter() - started, memory())

    numbers, seconds, wrong = itertools.count(), [], []
    end = time.perf_counter() + arguments.seconds

    def client() -> None:
        while time.perf_counter() < end:
            text = texts[next(numbers) % len(texts)]
            before = time.perf_counter()
            try:
                answer = ask(text)
            except OSError as error:
                wrong.append(str(error))
                continue
            seconds.append(time.perf_counter() - before)
            if answer != expected[text]:
                wrong.append(text)

    started = time.perf_counter()
    threads = [threading.Thread(target=client) for _ in range(arguments.clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    report(f"{arguments.clients} clients", seconds, time.perf_counter() - started, memory())
    print(f"errors or answers that differ: {len(wrong)} {wrong[:3]}")


def report(name: str, seconds: list[float], whole: float, memory: str) -> None:
    """Print one row."""
    ordered = sorted(seconds)
    p50, p95 = statistics.median(ordered), ordered[int(0.95 * len(ordered))]
    rate, times = len(ordered) / whole, f"p50 {1000 * p50:.0f} ms, p95 {1000 * p95:.0f} ms"
    print(f"{name}: {len(ordered):,} answers, {rate:.1f} a second, {times}, {memory}")


if __name__ == "__main__":
    main()
