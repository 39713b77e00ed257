"""Many clients use a running server at once: no response is lost or mixed up; speed and memory.

    translucid serve runs/eng-spa &
    python benchmarks/serving_load.py lines.txt [--address http://127.0.0.1:5000] [--clients 32] [--seconds 120]

Each client sends one line after another. First every line is translated alone; each later response must equal that one.
With --pid, the server's resident memory is read from /proc.
"""

import argparse
import itertools
import json
import statistics
import threading
import time
import urllib.request
from pathlib import Path


def load(
    address: str,
    texts: list[str],
    *,
    clients: int,
    seconds: float,
    languages: tuple[str, str] = ("en", "es"),
    pid: int | None = None,
) -> tuple[list[str], dict[str, float]]:
    """Translate each text alone, then all of them from many clients at once.

    Returns:
        a line of figures for each, and counts: answers, wrong (errors, and responses that differ from those
        alone), memory_before and memory_after in MiB.
    """

    def ask(text: str) -> str:
        body = json.dumps({"q": text, "source": languages[0], "target": languages[1]}).encode()
        request = urllib.request.Request(f"{address}/translate", body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=120) as response:
            return json.load(response)["translatedText"]

    started, sequential_times, expected = time.perf_counter(), [], {}
    for text in texts:
        before = time.perf_counter()
        expected[text] = ask(text)
        sequential_times.append(time.perf_counter() - before)
    memory_before = memory(pid)
    lines = [report("one at a time", sequential_times, time.perf_counter() - started, memory_before)]

    numbers, times, wrong = itertools.count(), [], []
    end = time.perf_counter() + seconds

    def client() -> None:
        while time.perf_counter() < end:
            text = texts[next(numbers) % len(texts)]
            before = time.perf_counter()
            try:
                response = ask(text)
            except OSError as error:
                wrong.append(str(error))
                continue
            times.append(time.perf_counter() - before)
            if response != expected[text]:
                wrong.append(text)

    started = time.perf_counter()
    threads = [threading.Thread(target=client) for _ in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    memory_after = memory(pid)
    lines.append(report(f"{clients} clients", times, time.perf_counter() - started, memory_after))
    lines.append(f"errors or answers that differ: {len(wrong)} {wrong[:3]}")
    counts = {"answers": len(times), "wrong": len(wrong), "memory_before": memory_before, "memory_after": memory_after}
    return lines, counts


def memory(pid: int | None) -> float:
    """Return the resident memory of a process in MiB."""
    if pid is None:
        return float("nan")
    return int(Path(f"/proc/{pid}/status").read_text().split("VmRSS:")[1].split()[0]) / 1024


def report(name: str, seconds: list[float], whole: float, mebibytes: float) -> str:
    """Return one row."""
    ordered = sorted(seconds)
    p50, p95 = statistics.median(ordered), ordered[int(0.95 * len(ordered))]
    rate, times = len(ordered) / whole, f"p50 {1000 * p50:.0f} ms, p95 {1000 * p95:.0f} ms"
    return f"{name}: {len(ordered):,} answers, {rate:.1f} a second, {times}, {mebibytes:.0f} MiB"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("lines", type=Path, help="texts to translate")
    parser.add_argument("--address", default="http://127.0.0.1:5000")
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--texts", type=int, default=500, help="number of distinct lines")
    parser.add_argument("--source", default="en")
    parser.add_argument("--target", default="es")
    parser.add_argument("--pid", type=int, help="process id of the server")
    arguments = parser.parse_args()
    texts = arguments.lines.read_text(encoding="utf-8").split("\n")[: arguments.texts]
    languages = arguments.source, arguments.target
    lines, _ = load(
        arguments.address,
        texts,
        clients=arguments.clients,
        seconds=arguments.seconds,
        languages=languages,
        pid=arguments.pid,
    )
    print("\n".join(lines))


if __name__ == "__main__":
    main()
